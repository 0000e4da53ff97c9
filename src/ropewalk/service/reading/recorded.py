"""One execution as its log tells it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

import msgspec

from ropewalk.core import log
from ropewalk.core.errors import NotFound, RunError, VersionLost, reading_of
from ropewalk.core.events import (
    Event,
    ExecutionAccepted,
    ItemFailed,
    ItemSucceeded,
    NodeFailed,
    NodesCarriedOver,
    NodeSucceeded,
    RoundEnded,
    RunFailed,
)
from ropewalk.core.execution import Execution
from ropewalk.core.outline import IsWanted, nothing, outline
from ropewalk.core.plan import Plan, load_plan
from ropewalk.core.rows import Rows, rows
from ropewalk.core.trace import trace_id
from ropewalk.engines.base import Version
from ropewalk.engines.fair_turns import FairTurns
from ropewalk.store import executions, workflows
from ropewalk.store import log as stored_log
from ropewalk.store.access import Blobs, Reader

Json = dict[str, Any]
Made = TypeVar("Made")

LARGE: Final = 256 * 1024
SMALL: Final = 16 * 1024
MOST_PLANS: Final = 100
MANY_EVENTS: Final = 2_000
AT_ONCE: Final = 2
"""How many reads that compute go on at once."""
# Threads of our own: however many callers read, those that write values and resolve names stay free.
_readers: Final = ThreadPoolExecutor(AT_ONCE, "reading")
_turns: Final = FairTurns(AT_ONCE)
MOST_WAITING: Final = 32
"""How many reads that compute a caller may have waiting at once."""
NO_CALLER: Final = ("", "")
current_caller: Final[ContextVar[tuple[str, str]]] = ContextVar("current_caller", default=NO_CALLER)
"""The workspace and the caller something is read for; NO_CALLER if it is for this process itself."""


CachedVersion = Callable[[str, int], Version | None]
"""Gives the version of a workflow by its number, if it need not be read."""


def no_cached_version(workflow: str, version: int) -> None:
    """Every version is read."""


class Recorded(msgspec.Struct):
    """One execution as its log tells it; `version_bounded_by` saved its version with less reach than the workspace."""

    id: str
    plan: Plan
    events: list[Event]
    version_bounded_by: str | None = None

    @property
    def accepted(self) -> ExecutionAccepted:
        return log.acceptance(self.events)

    @property
    def trace_id(self) -> str:
        """The trace its spans are in."""
        return trace_id(self.id, self.accepted.trace)

    @property
    def source(self) -> str | None:
        """The execution it does again, as a whole or in part."""
        second = self.events[1] if len(self.events) > 1 else None
        return second.source if isinstance(second, NodesCarriedOver) else None

    def folded(self) -> Execution:
        execution = Execution(self.plan)
        with reading_of(self.id):
            execution.apply(self.events)
        return execution

    def projected(self) -> Rows:
        """Every row the log stands for."""
        with reading_of(self.id):
            return rows(self.plan, self.events)

    async def rows(self) -> Rows:
        """The same, in a thread if the log is long."""
        return await offload(self.projected, is_large=len(self.events) > MANY_EVENTS)


async def recorded(reader: Reader, execution: str) -> Recorded:
    """The log of an execution and the plan it follows; Unreadable if one of them is damaged."""
    return await _told(reader, execution, log.decode)


async def outlined(
    reader: Reader, execution: str, is_wanted: IsWanted = nothing, cached_version: CachedVersion = no_cached_version
) -> Recorded:
    """The same without inputs and outputs, but for those of the events that are wanted."""
    return await _told(reader, execution, lambda entry: outline(entry, is_wanted), cached_version)


async def _told(
    reader: Reader, execution: str, decode: Callable[[bytes], tuple[int, list[Event]]],
    cached_version: CachedVersion = no_cached_version,
) -> Recorded:  # fmt: skip
    events: list[Event] = []
    async for page in stored_log.pages(reader, execution):
        with reading_of(execution):
            for some in await offload(partial(_all, decode, page), is_large=sum(map(len, page)) > LARGE):
                events += some
    if not events and await executions.load(reader, execution) is None:
        raise NotFound(f"there is no execution {execution}")
    with reading_of(execution):
        accepted = log.acceptance(events)
        known = cached_version(accepted.workflow, accepted.version)
        # By its hash too: a database that went back in time may have given the number to another version.
        if known is not None and known.hash == accepted.hash:
            return Recorded(execution, known.plan, events, known.bounded_by)
        version = await _version(reader, accepted)
        return Recorded(execution, await _plan(version), events, version.bounded_by)


def _all(decode: Callable[[bytes], tuple[int, list[Event]]], page: list[bytes]) -> list[list[Event]]:
    return [decode(entry)[1] for entry in page]


async def _version(reader: Reader, accepted: ExecutionAccepted) -> workflows.Version:
    version = await workflows.get_version(reader, accepted.workflow, accepted.version)
    if version is None:
        raise VersionLost(f"version {accepted.version} of workflow {accepted.workflow} is missing")
    return version


async def _plan(version: workflows.Version) -> Plan:
    if len(version.document) <= SMALL:
        return _small_plan(version.document)
    document = version.document.encode()
    return await offload(lambda: load_plan(document), is_large=len(document) > LARGE)


@lru_cache(maxsize=MOST_PLANS)
def _small_plan(document: str) -> Plan:
    """The same document is the same plan: executions of one workflow are read many times a second."""
    return load_plan(document.encode())


async def offload(work: Callable[[], Made], *, is_large: bool) -> Made:
    """What the work gives; large work is done in a thread, in the turn of the caller.

    TooManyWaiting if too many reads of this caller wait already.
    """
    if not is_large:
        return work()
    caller = current_caller.get()
    async with _turns.turn(*caller, None if caller == NO_CALLER else MOST_WAITING):
        return await asyncio.get_running_loop().run_in_executor(_readers, work)


async def last_event(reader: Reader, execution: str) -> Event | None:
    """The newest fact of a log."""
    heads = await stored_log.heads(reader, [execution])
    entries = await stored_log.entries(reader, execution, start=heads[execution]) if heads else []
    with reading_of(execution):
        return log.decode(entries[-1][1])[1][-1] if entries else None


async def value_of(blobs: Blobs, digest: str) -> Any:
    """A value that was too large for the log."""
    return msgspec.json.decode(await blobs.get(digest))


def tokens_of(event: Event) -> int | None:
    """What an attempt said it used up of a language model's, if this is how it ended and it said so."""
    match event:
        case NodeSucceeded() | ItemSucceeded() | RoundEnded():
            return event.tokens
        case RunFailed() | NodeFailed() | ItemFailed():
            return event.error.tokens
    return None


def error_of(error: RunError | None) -> Json:
    """What a failure tells beyond its message, as an answer has it."""
    return {
        "errorDetail": None if error is None else error.detail,
        "errorStatus": None if error is None else error.status,
        "errorBody": None if error is None else error.body,
    }


def milliseconds(since: int | None, until: int | None) -> float | None:
    """How long something took, if it has begun and ended."""
    return None if since is None or until is None else (until - since) / 1000

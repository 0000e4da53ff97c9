"""Holds a store to the guarantees: every log to the invariants, every table to what the logs make of it.

Reads one execution at a time and keeps of it only what executions share, so the size of the store does not matter.
Works on a live store: what is read of one execution counts only if its log is the same before and after.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.checker import Effect, History, Limits, Sharing, Violation, check
from ropewalk.checker.graph_rules import results_stay_in_the_workspace
from ropewalk.checker.trace import TERMINAL
from ropewalk.core import log
from ropewalk.core.errors import NotFound, RopewalkError, Unavailable, Unreadable
from ropewalk.core.events import Blob, Event, ExecutionSucceeded, NodesCarriedOver
from ropewalk.core.execution import Execution
from ropewalk.core.execution.view import blobs_of
from ropewalk.core.plan import Plan, load_plan
from ropewalk.engines.base import Custody
from ropewalk.engines.custody import STORED
from ropewalk.service.audited_files import AuditedFiles, ReadFile
from ropewalk.service.comparing import differences
from ropewalk.service.reading import Recorded, recorded
from ropewalk.service.requests import Requests
from ropewalk.store import auditing, workflows
from ropewalk.store import log as stored_log
from ropewalk.store.access import Reader

ROWS: Final = "I-36"
"""What the tables say other than the logs is filed under."""
BLOBS: Final = "I-39"
"""What is wrong with a large value is filed under."""

LoadBlob = Callable[[str], Awaitable[bytes]]

_TRIES: Final = 20
_MOST_PLANS: Final = 1_000
_MOST_STRAYS: Final = 1_000


class Audited(Struct, frozen=True):
    """One execution, looked at; without a history if it could not be read."""

    id: str
    violations: list[Violation]
    history: History | None = None


class Audit:
    """One walk through a store.

    `at_rest` says that no worker executes on it and nothing was cut off, so that nothing may be half done; `limits` are
    the slots of workspaces; `effects` is what the outside world saw, by execution; `load_blob` reads a large value
    by its hash, `read_file` the content of a file in parts; `custody` is that of the engine.
    """

    def __init__(self, reader: Reader, *, at_rest: bool = False, limits: Limits | None = None,
                 effects: Mapping[str, Sequence[Effect]] | None = None,
                 load_blob: LoadBlob | None = None, read_file: ReadFile | None = None,
                 custody: Custody = STORED) -> None:  # fmt: skip
        self._reader = reader
        self._at_rest = at_rest
        self._effects = effects or {}
        self._load_blob = load_blob
        self._files = AuditedFiles(reader, read_file)
        self._sharing = Sharing(limits or {})
        self._custody = custody
        self._requests = Requests(reader, custody)
        self._plans: dict[tuple[str, int], Plan] = {}

    async def executions(self) -> AsyncIterator[Audited]:
        """Every execution there is, newest first, each held to its own log."""
        await self._requests.open()
        async for execution in auditing.every_execution(self._reader):
            found = await self._audited(execution)
            if found is not None:
                yield found

    async def together(self) -> list[Violation]:
        """What the executions seen so far show together, and what belongs to none that is there."""
        return [*self._sharing.violations(), *await self._strays(), *await self._requests.violations()]

    def most_slots(self) -> dict[str, int]:
        """How many slots of each limited workspace were held at most at one moment."""
        return self._sharing.most_slots()

    # One execution

    async def _audited(self, execution: str) -> Audited | None:
        try:
            entries, kept = await self._settled(execution)
            if not entries and kept is None:
                return None  # it was removed as a whole, since its id was read
            told = _decoded(entries)
            history = await self._history(execution, told, entries)
            found = [*check(history), *(Violation(ROWS, each, execution, 0) for each in told.misnumbered)]
            if not found:
                found = [each async for each in self._beyond_the_log(execution, history, kept)]
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 -- what one is ill with is told, and keeps no other from being looked at
            why = str(error) if isinstance(error, RopewalkError) else f"{type(error).__name__}: {error}"
            return Audited(execution, [Violation(ROWS, f"cannot be read: {why}", execution, 0)])
        self._sharing.add(history)
        self._requests.add(execution, history)
        return Audited(execution, found, history)

    async def _settled(self, execution: str) -> tuple[list[tuple[int, bytes]], auditing.Kept | None]:
        """The log, and the tables as they were with exactly this log; None for these if it never stood still."""
        for _ in range(_TRIES):
            before = await stored_log.entries(self._reader, execution)
            kept = await auditing.kept(self._reader, execution)
            after = await stored_log.entries(self._reader, execution, start=before[-1][0] if before else 1)
            if after == before[-1:]:
                return before, kept
        return before, None

    async def _history(self, execution: str, told: "_Told", entries: list[tuple[int, bytes]]) -> History:
        accepted = log.acceptance(told.events)
        plan = await self._plan(accepted.workflow, accepted.version)
        is_over = isinstance(told.events[-1], TERMINAL)
        effects = self._effects.get(execution, ())
        return History(plan, told.events, told.seqs, effects, is_quiescent=is_over, entries=entries)

    async def _plan(self, workflow: str, version: int) -> Plan:
        plan = self._plans.get((workflow, version))
        if plan is None:
            found = await workflows.get_version(self._reader, workflow, version)
            if found is None:
                raise NotFound(f"version {version} of workflow {workflow} is missing")
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            plan = self._plans[workflow, version] = load_plan(found.document.encode())
        return plan

    async def _beyond_the_log(
        self, execution: str, history: History, kept: auditing.Kept | None
    ) -> AsyncIterator[Violation]:
        """A log that breaks the rules need not be foldable, so all this is for those that do not."""
        story = Recorded(execution, history.plan, list(history.events))
        machine = story.folded()
        blobs = {blob.hash: blob for blob in _blobs(machine, story.events)}
        if kept is not None:
            for difference in differences(kept, story, machine, self._custody, at_rest=self._at_rest):
                yield Violation(ROWS, difference, execution, len(history.events))
        for blob in blobs.values():
            if trouble := await self._trouble_with(execution, blob):
                yield Violation(BLOBS, f"blob {blob.hash}: {trouble}", execution, len(history.events))
        workspace = log.acceptance(story.events).workspace
        async for trouble in self._files.troubles(execution, workspace, history.entries, bool(blobs)):
            yield Violation(BLOBS, trouble, execution, len(history.events))
        for event in history.events[:2]:
            if isinstance(event, NodesCarriedOver):
                for violation in await self._taken_over(execution, history, event.source):
                    yield violation

    async def _trouble_with(self, execution: str, blob: Blob) -> str | None:
        if not await auditing.is_named(self._reader, execution, blob):
            return "the store does not know that it is of this size, and of this execution"
        if self._load_blob is None:
            return None
        try:
            size = len(await self._load_blob(blob.hash))
        except RopewalkError as error:
            return str(error)
        return None if size == blob.size else f"{size} bytes were kept, {blob.size} were recorded"

    async def _taken_over(self, execution: str, history: History, source: str) -> Iterable[Violation]:
        try:
            story = await recorded(self._reader, source)
        except (NotFound, Unreadable):
            return ()  # what was taken over is in the log, and outlives where it came from
        return list(results_stay_in_the_workspace({execution: history, source: History(story.plan, story.events)}))

    # What belongs to none

    async def _strays(self) -> list[Violation]:
        found = await self._strangers()
        if found and not self._at_rest:
            # Between two readings an execution may come or go as a whole; what is seen twice was left.
            again = await self._strangers()
            found = [each for each in found if each in again]
        return [Violation(ROWS, f"{table}: it has rows and does not exist", name, 0) for table, name in found]

    async def _strangers(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for table in auditing.TABLES:
            async for name in auditing.strays(self._reader, table):
                found.append((table, name))
                if len(found) == _MOST_STRAYS:
                    return found
        return found


class _Told(Struct):
    """A log as it is kept: events, the numbers they are kept under, and where entries say they have another."""

    seqs: list[int] = []
    events: list[Event] = []
    misnumbered: list[str] = []


def _decoded(entries: list[tuple[int, bytes]]) -> _Told:
    told = _Told()
    for kept_as, entry in entries:
        first, added = log.decode(entry)
        told.seqs += range(kept_as, kept_as + len(added))
        told.events += added
        if first != kept_as:
            told.misnumbered.append(f"log: the entry kept as {kept_as} says it is {first}")
    return told


def _blobs(machine: Execution, events: list[Event]) -> Iterator[Blob]:
    """The large values among what nodes were given, and those its outputs are made of, the items of maps among them."""
    for event in events:
        if (given := getattr(event, "inputs_blob", None)) is not None:
            yield given
    last = events[-1]
    for output in machine.outputs.values():
        yield from blobs_of(output)
    if isinstance(last, ExecutionSucceeded) and last.blob is not None:
        yield last.blob

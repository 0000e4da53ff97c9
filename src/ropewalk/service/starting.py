"""Starts: one, or up to a thousand in one transaction; under an idempotency key the same request is done once."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.canonical import JSON, content_hash
from ropewalk.core.errors import Conflict, InvalidInput, Problem, RopewalkError, Unavailable, Unfinished
from ropewalk.core.schema import Allowance
from ropewalk.engines.base import Engine, StartRequest
from ropewalk.engines.computing import Computing
from ropewalk.store import idempotency
from ropewalk.store.access import Reader, Transaction
from ropewalk.store.rows import IdempotencyEntry

LARGEST_BATCH: Final = 1_000
CHECKED_AT_ONCE: Final = 100
"""After so many small inputs everything else on the loop has its turn."""
MOST_PROBLEMS: Final = 100
LONGEST_KEY: Final = 255
KeysUnderWay = dict[tuple[str, str, str], "asyncio.Future[None]"]
"""The idempotency keys (workspace, route, key) under which something is being accepted here; each is done when that
is."""


class Once(Struct, frozen=True):
    """A request that is done once: its key, what was asked, in the caller's words, and by which route."""

    key: str
    asked: JSON
    route: str = "start"


async def check_inputs(computing: Computing, requests: Mapping[int, StartRequest]) -> list[Problem]:
    """What is wrong with the inputs of a batch, by their places in it; they have one allowance together.

    What is not done in a moment is done beside the loop, in the caller's turn.
    """
    problems: list[Problem] = []
    try:
        for place in _checked(requests, Allowance(is_brief=True), problems):
            if place % CHECKED_AT_ONCE == CHECKED_AT_ONCE - 1:
                await asyncio.sleep(0)
    except Unfinished:
        problems.clear()
        first = next(iter(requests.values()))
        checked = _checked(requests, Allowance(), problems)
        await computing.of_caller(first.workspace, first.actor, lambda: list(checked))
    return problems


def _checked(requests: Mapping[int, StartRequest], allowance: Allowance, problems: list[Problem]) -> Iterator[int]:
    """The places of those whose inputs were looked at, one after the other."""
    for place, request in requests.items():
        try:
            request.version.plan.definition.check_input(request.input, allowance)
        except InvalidInput as error:
            problems += [Problem(("starts", place, *each.path), each.message) for each in error.problems]
        yield place


async def answered(reader: Reader, workspace: str, once: Once, now: int) -> list[str] | None:
    """What this request was answered before, if it was; Conflict if its key came with another one."""
    _check_key(once.key)
    known = await idempotency.answer(reader, workspace, once.route, once.key, content_hash(once.asked), now)
    return None if known is None else msgspec.json.decode(known, type=list[str])


async def start_all(engine: Engine, keys: KeysUnderWay, requests: Sequence[StartRequest],
                    once: Once | None = None) -> list[str]:  # fmt: skip
    """Accept them, all or none; their ids. What was asked before under the key gets the ids it got then."""
    if len(requests) > LARGEST_BATCH:
        raise InvalidInput([Problem(("starts",), f"has {len(requests)} entries, {LARGEST_BATCH} are allowed at once")])
    if once is not None:
        _check_key(once.key)
    if not requests:
        return []
    if once is not None and len(requests) == 1:
        return [await _start_once(engine, keys, requests[0], once)]
    return await _together(engine, requests, once)


async def _together(engine: Engine, requests: Sequence[StartRequest], once: Once | None) -> list[str]:
    """Accept them in a transaction of their own."""
    try:
        ids = await _accepted(engine, requests, once)
    except Conflict:
        if once is None:
            raise
        # A request with the same key was faster: now its answer is there, or the request is another one.
        ids = await _accepted(engine, requests, once)
    engine.accepted()
    return ids


async def _start_once(engine: Engine, under_way: KeysUnderWay, request: StartRequest, once: Once) -> str:
    """Accept one execution under its key, with the next commit; one request at a time has the key here."""
    async with alone(engine, under_way, (request.workspace, once.route, once.key)) as was_free:
        return await _start_first(engine, request, once, is_known_free=was_free and engine.store.is_shared)


@asynccontextmanager
async def alone(engine: Engine, under_way: KeysUnderWay, name: tuple[str, str, str]) -> AsyncIterator[bool]:
    """One caller at a time has this key in this process; gives whether it was free at once."""
    was_free = True
    while (other := under_way.get(name)) is not None:
        was_free = False
        await asyncio.shield(other)
    under_way[name] = asyncio.get_running_loop().create_future()
    try:
        yield was_free
    except asyncio.CancelledError:
        # The commit may be on its way: the next request under the key is to find what became of it.
        engine.spawn(_free_later(engine, under_way, name))
        raise
    except BaseException:
        under_way.pop(name).set_result(None)
        raise
    under_way.pop(name).set_result(None)


async def _free_later(engine: Engine, under_way: KeysUnderWay, name: tuple[str, str, str]) -> None:
    try:
        with suppress(RopewalkError):  # then nothing was written, and the next request finds the key free
            await engine.settled()
    finally:
        under_way.pop(name).set_result(None)


async def _start_first(engine: Engine, request: StartRequest, once: Once, *, is_known_free: bool) -> str:
    """Write the key with the execution if the commit can be refused to no other start; else in a transaction of its
    own.

    An embedded store is written by this process alone: a key that is free stays free until we write it. On a shared
    store the insert decides, in a commit of such starts alone; what it refuses is judged by the transaction.
    """
    if is_known_free or await idempotency.is_free(engine.store, request.workspace, once.route, once.key):
        body_hash, now = content_hash(once.asked), engine.store.now()
        about = (request.workspace, once.route, once.key, body_hash)

        def remember(execution: str) -> list[tuple[str, IdempotencyEntry]]:
            return [("insert_idempotency", IdempotencyEntry(*about, msgspec.json.encode([execution]).decode(), now))]

        try:
            return await engine.start(replace(request, once=once_of(*about)), remember=remember)
        except Unavailable:
            if not engine.store.is_shared:
                raise
    return (await _together(engine, [request], once))[0]


def _check_key(key: str) -> None:
    if not (0 < len(key) <= LONGEST_KEY and key.isprintable()):
        raise InvalidInput([Problem(("key",), f"must be 1 to {LONGEST_KEY} printable characters")])


async def _accepted(engine: Engine, requests: Sequence[StartRequest], once: Once | None) -> list[str]:
    async with engine.store.transaction() as tx:
        return await (engine.accept(tx, requests) if once is None else _once(engine, tx, requests, once))


async def _once(engine: Engine, tx: Transaction, requests: Sequence[StartRequest], once: Once) -> list[str]:
    workspace, now = requests[0].workspace, engine.store.now()
    known = await answered(tx, workspace, once, now)
    if known is not None:
        return known
    body_hash = content_hash(once.asked)
    mark = once_of(workspace, once.route, once.key, body_hash)
    ids = await engine.accept(tx, [replace(request, once=mark) for request in requests])
    answer = msgspec.json.encode(ids).decode()
    entry = IdempotencyEntry(workspace, once.route, once.key, body_hash, answer, now)
    await idempotency.remember(tx, entry)
    return ids


def once_of(workspace: str, route: str, key: str, body_hash: str) -> str:
    """What an execution says of the key it was started under: half of it is about the key, half about the request."""
    return content_hash([workspace, route, key])[:16] + body_hash[:16].ljust(16)


def said(request: StartRequest) -> JSON:
    """A start in the words of a caller that names the version."""
    version = request.version
    return [version.workflow, version.version, request.input, dict(request.vars), request.priority]

"""A worker that has lost its lease: whoever asks it for something meanwhile is to try again, and nothing is lost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec import Struct

from ropewalk.core.errors import Unavailable
from ropewalk.core.events import SlotReleased
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import StartRequest, Version
from ropewalk.engines.native.ownership import OwnedElsewhere
from ropewalk.service.verbs import NewStart
from tests.engines.worlds import ONCE, World, act, at_most, flow, node
from tests.postgres import ask

FINE = flow(act("a", 1), name="fine")
BROKEN = flow(act("a", fails=1, retry=ONCE), name="broken")
ASKING = flow(node("ask", "approval", title="Really?"), name="asking")


class Known(Struct):
    """What there is to ask about."""

    version: Version
    done: str
    failed: str
    letter: str
    asking: str


Verb = Callable[[World, Known], Awaitable[Any]]
VERBS: dict[str, Verb] = {
    "save": lambda world, known: world.save(flow(act("new"), name="new")),
    "start": lambda world, known: world.service.start(known.version),
    "start under a key": lambda world, known: world.service.start(known.version, key="k"),
    "start a batch": lambda world, known: world.service.start_batch([NewStart(known.version)] * 3),
    "rerun": lambda world, known: world.service.rerun(known.done, "a"),
    "cancel": lambda world, known: world.service.cancel(known.asking),
    "pause": lambda world, known: world.service.pause(known.asking),
    "signal": lambda world, known: world.service.signal(known.asking, "go"),
    "decide": lambda world, known: world.service.decide(known.asking, "ask", approved=True),
    "retry": lambda world, known: world.service.retry(known.failed),
    "requeue": lambda world, known: world.service.requeue(known.letter),
    "fix": lambda world, known: world.service.fix(known.letter, 7),
    "discard": lambda world, known: world.service.discard(known.letter),
    "note": lambda world, known: world.service.note(known.letter, "hm"),
    "publish": lambda world, known: world.service.publish("paid"),
}


class Expulsion:
    """Someone has taken over from the worker; it does not come back before it may."""

    def __init__(self, world: World) -> None:
        self._db = world.db
        self._may = asyncio.Event()
        self._is_back = asyncio.Event()
        self._rejoin = world.service.store.rejoin
        world.service.store.rejoin = self._late  # type: ignore[method-assign]  # held up, and then as it is

    async def _late(self) -> None:
        await self._may.wait()
        await self._rejoin()
        self._is_back.set()

    async def begin(self) -> None:
        await ask(self._db, "update worker set epoch = epoch + 1")

    async def end(self) -> None:
        self._may.set()
        await self._is_back.wait()


async def prepared(world: World) -> Known:
    version = await world.save(FINE)
    done = (await world.run(FINE)).execution
    failed = (await world.run(BROKEN)).execution
    [letter] = await world.letters(failed)
    asking = await world.start(ASKING)
    await world.until(asking, SlotReleased)
    return Known(version, done, failed, letter["id"], asking)


@pytest.mark.parametrize("verb", VERBS.values(), ids=list(VERBS))
async def test_whoever_asks_a_worker_that_is_about_to_come_back_is_to_try_again(shared_world: World, verb: Verb):
    known = await prepared(shared_world)
    expulsion = Expulsion(shared_world)
    await expulsion.begin()
    for _ in ("noticed by this", "known by then"):
        with pytest.raises(Unavailable):
            await at_most(10, verb(shared_world, known))
    await at_most(10, expulsion.end())

    await at_most(20, verb(shared_world, known))


async def test_what_was_refused_meanwhile_has_done_nothing_and_is_done_once(shared_world: World):
    known = await prepared(shared_world)
    before = await ask(shared_world.db, "select count(*) from execution")
    expulsion = Expulsion(shared_world)
    await expulsion.begin()
    with pytest.raises(Unavailable):
        await shared_world.service.start(known.version, key="k")
    between = await ask(shared_world.db, "select count(*) from execution")
    await at_most(10, expulsion.end())

    ids = [await shared_world.service.start(known.version, key="k") for _ in range(2)]
    ended = await at_most(20, shared_world.ended(ids[0]))

    assert (between, len(set(ids)), ended.state) == (before, 1, ExecutionState.SUCCESS)


async def test_a_commit_made_before_its_worker_came_back_as_another_is_not_written(shared_world: World):
    version = await shared_world.save(FINE)
    engine = shared_world.service.engine
    live = await engine.memory.accept(StartRequest(version=version), engine.store.now())
    engine.deciding.take_slot(live)
    made = engine.commit._next()
    await engine.store.rejoin()

    refused = await engine.commit._commit(made)

    assert "has come back as" in str(refused.error)
    assert await ask(shared_world.db, f"select count(*) from log where execution = '{live.id}'") == [(0,)]


async def test_what_is_claimed_by_one_who_came_back_meanwhile_is_its_own(
    shared_world: World, monkeypatch: pytest.MonkeyPatch
):
    await shared_world.restart(claims=False)
    execution = await shared_world.start(FINE)
    engine = shared_world.service.engine
    transaction = engine.store.transaction

    @asynccontextmanager
    async def late() -> AsyncIterator[Any]:
        monkeypatch.undo()
        await engine.store.rejoin()
        async with transaction() as tx:
            yield tx

    monkeypatch.setattr(engine.store, "transaction", late)
    await engine.claims.claim()

    assert (await at_most(10, shared_world.ended(execution))).state is ExecutionState.SUCCESS


async def test_what_was_taken_under_the_old_name_does_not_come_into_memory(shared_world: World):
    execution = await shared_world.start(ASKING)
    await shared_world.until(execution, SlotReleased)
    engine = shared_world.service.engine
    await engine.ownership.acquire(execution)
    await engine.store.rejoin()

    with pytest.raises(OwnedElsewhere):
        await engine.memory.load(execution, is_ours=True)
    await ask(shared_world.db, "update live set owner = null")  # as others do, who take over from the old one

"""Many parked executions that are due together are woken together."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from ropewalk.core import log
from ropewalk.core.events import Event, NodesStarted, NodeSucceeded, RunWaiting, SlotTaken
from ropewalk.core.execution import settling
from ropewalk.core.state import ExecutionState
from ropewalk.engines.native import memory, waking
from ropewalk.engines.native.record import in_pieces
from ropewalk.store import live
from ropewalk.store import log as stored_log
from tests.engines.worlds import World, act, at_most, flow, node
from tests.polling import until

PATIENCE = 60
SHORT = flow(node("d", "delay", **{"for": "200ms"}), act("b", 1), edges="d->b")


@pytest.fixture(autouse=True)
def parks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every wait is long enough to be parked."""
    monkeypatch.setattr(settling, "PARK_AFTER", 0)


class Asked:
    """Counts what a store is asked."""

    def __init__(self, world: World) -> None:
        self.names: Counter[str] = Counter()
        store = world.service.store
        self._fetch = store.fetch
        store.fetch = self  # type: ignore[method-assign]  # counts, and hands on

    async def __call__(self, name: str, *arguments: Any) -> Any:
        self.names[name] += 1
        return await self._fetch(name, *arguments)


async def start(world: World, count: int) -> list[str]:
    version = await world.save(SHORT)
    return await asyncio.gather(*[world.service.start(version) for _ in range(count)])


async def park(world: World, count: int) -> list[str]:
    """So many that wait, and that only the test wakes."""
    await world.restart(claims=True, hands=5_000)
    started = await start(world, count)
    for each in started:
        await at_most(PATIENCE, world.until(each, RunWaiting))
    await world.restart(claims=False)
    return started


async def wake_all(world: World) -> None:
    engine = world.service.engine

    async def is_done() -> bool:
        await at_most(PATIENCE, engine.claims.waking.wake())
        return await live.next_wake(engine.store) is None

    await until(is_done, "all that waits is awake")


async def entries_of(world: World, execution: str) -> list[list[type[Event]]]:
    """What was written together, by kind."""
    found = await stored_log.whole(world.service.store, [execution])
    return [[type(event) for event in log.decode(entry)[1]] for entry in found[execution]]


async def test_those_that_are_due_together_are_read_together(place: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(waking, "BATCH", 20)
    # Long enough that all of them are parked before the first is due.
    monkeypatch.setitem(SHORT["nodes"][0], "with", {"for": "3s"})
    await park(place, 70)
    asked = Asked(place)

    await wake_all(place)

    assert 4 <= asked.names["whole_logs"] <= 20
    await place.restart(claims=True)


async def test_where_nothing_limits_a_workspace_a_wait_ends_and_the_next_node_starts_in_one_commit(place: World):
    [started] = await start(place, 1)
    await at_most(PATIENCE, place.ended(started))

    entries = await entries_of(place, started)

    assert [NodeSucceeded, SlotTaken, NodesStarted] in entries


async def test_a_workspace_with_few_slots_wakes_as_many_as_it_has_slots_for(place: World):
    await place.restart(default_slots=2)

    started = await start(place, 30)

    states = [(await at_most(PATIENCE, place.ended(each))).state for each in started]
    assert states == [ExecutionState.SUCCESS] * 30


async def test_large_logs_are_woken_a_few_at_a_time(place: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "in_pieces", lambda found: in_pieces(found, most=1))
    in_memory: list[int] = []
    tell = waking.Waking._tell

    async def telling(self: waking.Waking, due: Any, *, is_limited: bool) -> None:
        in_memory.append(len(place.service.engine.memory.lives))
        await tell(self, due, is_limited=is_limited)

    await park(place, 12)
    monkeypatch.setattr(waking.Waking, "_tell", telling)

    await wake_all(place)

    assert len(in_memory) == 12
    assert max(in_memory) <= 3
    await place.restart(claims=True)


async def test_one_that_stays_due_is_put_off_and_keeps_no_other_waiting(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(waking, "AGAIN", 3_600_000_000)
    await park(world, 3)
    engine = world.service.engine
    monkeypatch.setattr(
        engine.deciding, "signal", lambda due, signal: []
    )  # a fault of ours: nothing comes of being told

    async def are_put_off() -> bool:
        await at_most(PATIENCE, engine.claims.waking.wake())
        return (await live.next_wake(engine.store) or 0) > engine.store.now()

    await until(are_put_off, "all three are put off")

    monkeypatch.undo()
    await world.restart(claims=False)


async def test_a_worker_that_leaves_lets_go_of_those_it_is_waking(place: World, monkeypatch: pytest.MonkeyPatch):
    started = await park(place, 5)
    engine = place.service.engine
    engine.begin_closing()

    async def is_none_due() -> bool:
        await at_most(PATIENCE, engine.claims.waking.wake())
        return not await live.due(engine.store, engine.store.now(), 9)

    await until(is_none_due, "none is due any more")
    await place.restart(claims=True, hands=5_000)

    assert [(await at_most(PATIENCE, place.ended(each))).state for each in started] == [ExecutionState.SUCCESS] * 5

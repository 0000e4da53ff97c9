"""Group commit: who is written with whom, how many at once, and what is left when it stops."""

import asyncio
import gc
from collections.abc import Awaitable

import pytest

from ropewalk.core.signals import Retry
from ropewalk.core.state import ExecutionState
from ropewalk.engines.native.live import Live
from ropewalk.store.access import Batch
from ropewalk.store.errors import StoreUnavailable
from tests.engines.scenarios.children import FRAGILE, parent
from tests.engines.worlds import World, act, at_most, flow, node
from tests.polling import until


class Written:
    """The executions that each commit adds to the log of, in the order of the commits."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commits: list[list[str]] = []
        self._write = world.service.engine.store.write
        monkeypatch.setattr(world.service.engine.store, "write", self)

    def __call__(self, batch: Batch) -> Awaitable[None]:
        self.commits.append([row[0] for row in dict(batch).get("insert_log", ())])
        return self._write(batch)


async def test_an_execution_that_is_over_is_let_go_of_before_the_next_one_comes(place: World):
    ended = await at_most(20, place.run(flow(act("a"))))

    def is_let_go() -> bool:
        return not any(type(each) is Live and each.id == ended.execution for each in gc.get_objects())

    # The commit that told its end has its last turns yet.
    await until(is_let_go, "the engine has let go of the execution", 20)


async def test_a_crowd_is_written_in_two_halves(place: World, monkeypatch: pytest.MonkeyPatch):
    version = await place.save(flow(act("a")))
    await at_most(20, place.run(flow(act("a"))))
    place.service.engine.commit.limit(8)
    written = Written(place, monkeypatch)

    started = await at_most(20, asyncio.gather(*(place.service.start(version) for _ in range(6))))
    await at_most(20, asyncio.gather(*(place.ended(each) for each in started)))

    first, second, *_ = map(set, written.commits)
    assert (len(first), len(second), first | second) == (3, 3, set(started))


@pytest.mark.parametrize("most", [1, 3])
async def test_no_commit_has_more_than_the_most(place: World, most: int, monkeypatch: pytest.MonkeyPatch):
    version = await place.save(flow(node("a", "gate")))
    started = [await place.service.start(version) for _ in range(20)]
    await at_most(20, place.outside.gate().arrived(20))
    place.service.engine.commit.limit(most)
    written = Written(place, monkeypatch)

    place.outside.gate().open()
    await at_most(20, asyncio.gather(*(place.ended(each) for each in started)))

    assert max(map(len, written.commits)) == most


async def test_a_reopened_child_and_its_parent_are_one_commit_however_small(
    place: World, monkeypatch: pytest.MonkeyPatch
):
    await place.save(FRAGILE)
    failed = await at_most(20, place.run(parent()))
    (child,) = await place.children(failed.execution)
    place.service.engine.commit.limit(1)
    written = Written(place, monkeypatch)

    assert await place.service.retry(child)
    ended = await at_most(20, place.ended(failed.execution))

    assert (failed.state, ended.state) == (ExecutionState.FAILED, ExecutionState.SUCCESS)
    assert sorted(next(filter(None, written.commits))) == sorted([child, failed.execution])


async def test_a_reopened_child_is_forgotten_with_its_parent(place: World):
    await place.save(FRAGILE)
    failed = await at_most(20, place.run(parent()))
    (child,) = await place.children(failed.execution)
    engine = place.service.engine
    live, above = await engine.telling.with_parent(child)
    assert above is not None

    assert engine.telling.tell(live, above, Retry("ann"), "ann")
    engine.setbacks.give_up([above], StoreUnavailable("it is gone"))
    assert (live.is_dropped, above.is_dropped) == (True, True)

    assert await at_most(20, place.service.retry(child))
    assert (await at_most(20, place.ended(failed.execution))).state is ExecutionState.SUCCESS


async def test_what_is_being_written_when_it_stops_is_written(place: World, monkeypatch: pytest.MonkeyPatch):
    engine = place.service.engine
    version = await place.save(flow(act("a")))
    write, is_let, began, ended = engine.store.write, asyncio.Event(), asyncio.Event(), []

    async def slow(batch: Batch) -> None:
        began.set()
        await is_let.wait()
        await write(batch)
        ended.append(batch)

    monkeypatch.setattr(engine.store, "write", slow)
    starting = asyncio.ensure_future(place.service.start(version))
    await at_most(20, began.wait())
    closing = asyncio.ensure_future(engine.commit.close())
    await asyncio.sleep(0)
    is_let.set()

    await at_most(20, asyncio.gather(starting, closing))
    engine.commit.open()
    assert ended

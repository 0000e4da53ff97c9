"""A clock that was a day ahead: it is told, and the store can be made to go by the right one again."""

import time
from pathlib import Path

import pytest

from ropewalk.core.duration import DAY, SECOND
from ropewalk.core.errors import Conflict
from ropewalk.core.events import RunWaiting
from ropewalk.store.errors import StoreInUse
from ropewalk.store.sqlite import SqliteStore, reset_clock
from ropewalk.store.sqlite import store as embedded
from tests.engines.worlds import World, at_most, flow, node

ASK = flow(node("ask", "approval", title="?"), name="asked")
AHEAD = "ahead of this machine's clock"


def wall() -> int:
    return time.time_ns() // 1000


async def a_day_ahead(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine starts again while the clock of the machine is a day ahead."""
    with monkeypatch.context() as clock:
        clock.setattr(embedded, "_time_of_day", lambda given: wall() + DAY)
        await world.restart()


async def test_a_store_that_is_ahead_of_the_clock_says_so_when_it_is_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path = str(tmp_path / "a.db")
    for moment in (wall() + DAY, None):
        store = await SqliteStore.open(path, wall=moment)
        await store.close()

    assert caplog.text.count(AHEAD) == 1
    assert "86,400 s" in caplog.text or "86,399 s" in caplog.text
    assert "`ropewalk reset-clock`" in caplog.text


async def test_a_store_that_is_hardly_ahead_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    for moment in (wall() + 4 * SECOND, None):
        store = await SqliteStore.open(str(tmp_path / "a.db"), wall=moment)
        await store.close()

    assert AHEAD not in caplog.text


async def test_after_a_reset_the_store_goes_by_the_clock_of_the_machine(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    await a_day_ahead(world, monkeypatch)
    await world.run(flow(node("a", "noop")))
    with pytest.raises(StoreInUse):
        reset_clock(world.db)
    await world.close()

    done = reset_clock(world.db)
    caplog.clear()
    await world.open()

    assert DAY - 60 * SECOND < done.ahead < DAY + 60 * SECOND
    assert done.executions == 0
    assert abs(world.service.store.now() - wall()) < 60 * SECOND
    assert AHEAD not in caplog.text


async def test_executions_of_the_future_are_named_and_keep_their_order_if_it_is_forced(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    await a_day_ahead(world, monkeypatch)
    execution = await world.start(ASK)
    await world.until(execution, RunWaiting)
    await world.close()

    with pytest.raises(Conflict, match="1 unfinished executions have events of the future"):
        reset_clock(world.db)
    reset_clock(world.db, is_forced=True)
    await world.open()
    await world.service.decide(execution, "ask", approved=True)
    ended = await at_most(20, world.ended(execution))
    moments = [event.at for event in await world.events(execution)]

    assert ended.state == "SUCCESS"
    assert moments == sorted(moments)
    assert abs(world.service.store.now() - wall()) < 60 * SECOND


async def test_a_wait_until_a_moment_ends_at_that_moment_again(world: World, monkeypatch: pytest.MonkeyPatch):
    await a_day_ahead(world, monkeypatch)
    await world.close()
    reset_clock(world.db)
    await world.open()
    moment = wall() + SECOND

    execution = await world.start(flow(node("w", "wait", until=_rfc3339(moment)), name="waits"))
    await at_most(20, world.ended(execution))

    assert moment - SECOND // 2 < wall()


def _rfc3339(moment: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment // SECOND)) + f".{moment % SECOND:06d}Z"

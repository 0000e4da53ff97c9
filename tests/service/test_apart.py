"""Reading what is large: beside the loop, and beside the threads by which values are written."""

import asyncio
import threading

import pytest

from ropewalk.core.execution import Execution
from ropewalk.service import facts
from ropewalk.service.explaining import explain
from ropewalk.service.reading.recorded import Recorded, apart
from tests.engines.worlds import World, flow, node

CROWD = 100
PATIENCE = 10.0


async def test_a_crowd_that_reads_much_keeps_no_caller_from_writing():
    door = threading.Event()
    crowd = [asyncio.ensure_future(apart(door.wait, is_large=True)) for _ in range(CROWD)]

    try:
        written = await asyncio.wait_for(asyncio.to_thread(lambda: "written"), PATIENCE)
    finally:
        door.set()

    assert written == "written"
    assert all(await asyncio.gather(*crowd))


async def test_a_long_history_is_explained_beside_the_loop(world: World, monkeypatch: pytest.MonkeyPatch):
    threads: list[threading.Thread] = []
    fold = Recorded.folded

    def noting(story: Recorded) -> Execution:
        threads.append(threading.current_thread())
        return fold(story)

    execution = await world.start(flow(node("ask", "approval", title="Really?")))
    monkeypatch.setattr(facts, "MANY_EVENTS", 0)
    monkeypatch.setattr(Recorded, "folded", noting)
    await explain(world.service.store, "default", execution, world.service.store.now(), alive=lambda _: True)

    assert threads
    assert threading.main_thread() not in threads

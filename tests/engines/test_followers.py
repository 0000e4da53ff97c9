"""Those who follow an execution hear of everything in its log, whoever wrote it."""

import asyncio
from pathlib import Path

import pytest

from ropewalk.core import log
from ropewalk.core.errors import NotFound
from ropewalk.core.events import Event, ExecutionPaused, ExecutionStarted, SlotReleased
from ropewalk.engines.base import Appended, StartRequest
from ropewalk.engines.native.engine import NativeEngine
from ropewalk.engines.native.live import Live
from ropewalk.wiring import Settings, open_service
from tests.engines.worlds import World, at_most, flow, node
from tests.postgres import ask

PATIENCE = 10.0


async def written(engine: NativeEngine, live: Live, seq: int, event: Event) -> None:
    """An entry of the log that another owner has made."""
    await engine.store.write([("insert_log", [(live.id, seq, log.encode(seq, [event]))])])


async def test_what_an_earlier_owner_wrote_last_is_told_before_what_the_new_one_commits(tmp_path: Path):
    async with open_service(Settings(db=str(tmp_path / "ropewalk.db"))) as service:
        engine = service.engine
        version = await service.save({"ropewalk": 1, "name": "one", "nodes": [{"id": "a", "type": "noop"}]})
        live = engine.memory.new(StartRequest(version=version, workspace="default"), 1)
        await written(engine, live, 1, live.accepted)
        following = engine.watching.follow(live.id)
        told = [(await anext(following))[0]]
        next_one = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)

        await written(engine, live, 2, ExecutionStarted(2))
        paused = ExecutionPaused(3, "somebody")
        await written(engine, live, 3, paused)
        engine.watching.publish(Appended(live.accepted, live.execution, 3, [paused], is_ended=False))
        async with asyncio.timeout(PATIENCE):
            told += [(await next_one)[0], (await anext(following))[0]]

    assert told == [1, 2, 3]


async def test_whoever_has_missed_an_end_that_is_removed_waits_no_longer(shared_world: World):
    execution = await shared_world.start(flow(node("ask", "approval", title="?")))
    await shared_world.until(execution, SlotReleased)
    waiting = asyncio.create_task(shared_world.ended(execution))
    following = asyncio.create_task(shared_world.until(execution, ExecutionPaused))
    await asyncio.sleep(0)
    for table in ("log", "live", "run"):
        await ask(shared_world.db, f"delete from {table} where execution = '{execution}'")
    await ask(shared_world.db, f"delete from execution where id = '{execution}'")

    with pytest.raises(NotFound, match="any more"):
        await at_most(PATIENCE, waiting)
    with pytest.raises(AssertionError, match="ended without"):
        await at_most(PATIENCE, following)

"""An execution that its workers die of is set aside, and the others go on."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ropewalk.core.errors import InvalidTransition
from ropewalk.core.state import ExecutionState
from ropewalk.nodes.base import NodeContext, NodeType, Output, Registry
from ropewalk.service.explaining import explain
from ropewalk.store import suspicion
from ropewalk.wiring import Settings, open_service
from tests.engines.worlds import flow, node

# Three lives of a worker: in the first, two executions are under way; in the others it dies when it reads the victim.
WORKER = """
import asyncio, json, os, sys
from ropewalk.engines.native.folding import Folding
from ropewalk.store import suspicion
from ropewalk.wiring import Settings, open_service
from tests.engines.test_set_aside import types

database, victim, document = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
folded = Folding.folded

async def deadly(memory, execution, written, entries):
    if execution == victim:
        os._exit(9)
    return await folded(memory, execution, written, entries)

async def main():
    Folding.folded = deadly
    suspicion.HEAVY = int(sys.argv[4])
    async with open_service(Settings(db=database), types()) as service:
        if victim == "-":
            version = await service.save(document)
            started = [await service.start(version), await service.start(version)]
            for each in started:
                async for _, event in service.follow(each):
                    if type(event).__name__ == "NodesStarted":
                        break
            print(json.dumps(started), flush=True)
            os._exit(9)
        print("open", flush=True)
        os._exit(0)

asyncio.run(main())
"""
DOCUMENT = flow(node("long", "long", retry={"maxAttempts": 10}))


class Long(NodeType):
    """Is under way until its process ends."""

    name = "long"

    async def run(self, parameters: Any, context: NodeContext) -> Output:
        await asyncio.Event().wait()
        return Output()


def types() -> Registry:
    found = Registry.builtin()
    found.register(Long())
    return found


def life(database: str, victim: str = "-", heavy: int = 0) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", WORKER, database, victim, json.dumps(DOCUMENT), str(heavy)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("place", [0, 1])
async def test_an_execution_under_way_in_two_deaths_of_its_worker_is_set_aside_and_touches_no_other(
    tmp_path: Path, place: int
):
    database = str(tmp_path / "ropewalk.db")
    began = life(database)
    started: list[str] = json.loads(began.stdout or "null") or pytest.fail(began.stderr)
    victim, other = started[place], started[1 - place]

    codes = [life(database, victim).returncode for _ in range(2)]

    assert codes == [9, 0], "the worker dies of it alone, and then leaves it alone"
    async with open_service(Settings(db=database), types()) as service:
        store = service.store
        assert await suspicion.all_set_aside(store) == [victim]
        (reason,) = (await _explained(store, victim))["reasons"]
        assert (reason["code"], reason["waitsFor"]["deaths"]) == ("SET_ASIDE", 2)
        assert "resume" in reason["command"]
        assert {each["code"] for each in (await _explained(store, other))["reasons"]} <= {"RUNNING", "RETRY"}
        with pytest.raises(InvalidTransition, match="set aside"):
            await service.pause(victim)

        assert await service.resume(victim)
        assert await suspicion.all_set_aside(store) == []
        assert [each["code"] for each in (await _explained(store, victim))["reasons"]] == ["RUNNING"]
        for each in started:
            assert await service.cancel(each)
            assert (await service.ended(each)).state is ExecutionState.CANCELLED


async def test_an_execution_that_has_stored_little_is_never_set_aside(tmp_path: Path):
    database = str(tmp_path / "ropewalk.db")
    victim, _ = json.loads(life(database).stdout)

    codes = [life(database, victim, heavy=suspicion.HEAVY).returncode for _ in range(4)]

    assert codes == [9] * 4
    assert life(database, "nobody").returncode == 0


async def _explained(store: Any, execution: str) -> Any:
    return await explain(store, "default", execution, store.now(), alive=lambda _: True)

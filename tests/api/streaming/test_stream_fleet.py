"""Live streams of executions that another process executes."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ropewalk.access import keys
from ropewalk.access.rights import Role
from ropewalk.api.app import create_app
from ropewalk.api.backend import Backend
from ropewalk.engines.settings import WorkerSettings
from ropewalk.wiring import Settings, open_service
from tests.api.house import KEY, House
from tests.api.streaming.test_stream_crowd import chain, microseconds
from tests.api.streaming.test_streams import path
from tests.api.streams import PATIENCE, Listener, numbers, served

NODES = 40


@asynccontextmanager
async def idle_house(db: str) -> AsyncIterator[House]:
    """A server that executes nothing itself."""
    async with open_service(Settings(db=db, worker=WorkerSettings(claims=False))) as service:
        backend = await Backend.open(service.store, service.of, key=KEY)
        async with service.store.transaction() as tx:
            wanted = keys.Wanted(workspace="default", name="root", role=Role.ADMIN, is_root=True)
            _, root = await keys.make(tx, wanted, "test", service.store.now())
        yield House(create_app(backend, "test"), backend, service, root)


@asynccontextmanager
async def worker(db: str) -> AsyncIterator[None]:
    """Another process that executes what there is."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ropewalk", "worker", "--db", db,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def begun(house: House) -> str:
    """An execution in the hands of the other process, at its wait."""
    workflow = await house.save(chain(NODES, type="noop"))
    execution = await house.service.start(await house.service.engine.versions.version(workflow, 1))
    async with asyncio.timeout(PATIENCE):
        async for _, event in house.service.follow(execution):
            if type(event).__name__ == "RunWaiting":
                break
    return execution


async def test_what_another_process_executes_is_told_just_the_same(database: str, record_property: Any):
    async with idle_house(database) as house, worker(database), served(house) as url:
        execution = await begun(house)
        listeners = [await Listener.connect(url, path(execution), house.root) for _ in range(3)]
        ((snapshot,), *_) = [await listener.take(1) for listener in listeners]
        late: list[float] = []

        async def listen(listener: Listener) -> list[int]:
            told = []
            async for each in listener.said():
                if each.kind == "message":
                    told.append(each.data["seq"])
                    late.append((house.service.store.now() - microseconds(each.data["at"])) / 1e3)
            return told

        reading = asyncio.gather(*(listen(listener) for listener in listeners))
        await house.service.signal(execution, "go")
        seen = await reading

    late.sort()
    report = f"p50 {late[len(late) // 2]:.1f} ms, p95 {late[len(late) * 95 // 100]:.1f} ms"
    record_property("another process to client", report)
    sys.stdout.write(f"\nanother process to client: {report}\n")
    first = snapshot.data["seq"] + 1
    assert seen == [list(range(first, first + len(seen[0])))] * 3
    assert len(seen[0]) > 2 * NODES


@pytest.mark.parametrize("stream", ["workflow", "workspace"])
async def test_rooms_tell_of_what_other_processes_execute(database: str, stream: str):
    async with idle_house(database) as house, worker(database), served(house) as url:
        before = await begun(house)
        workflow = await house.save(chain(NODES, type="noop"))
        place = f"/workflow/definitions/{workflow}/stream" if stream == "workflow" else "/workspaces/default/stream"
        listener = await Listener.connect(url, place, house.root)
        (snapshot,) = await listener.take(1)
        after = await begun(house)
        for execution in (before, after):
            await house.service.signal(execution, "go")
            await house.service.ended(execution)
        lengths = {each: len([1 async for _ in house.service.follow(each)]) for each in (before, after)}
        known = {each["executionId"]: each["seq"] for each in snapshot.data["executions"]}

        said = await listener.take(sum(lengths.values()) - known[before])

    for execution, start in ((before, known[before]), (after, 0)):
        told = [each.data["seq"] for each in said if each.data["executionId"] == execution]
        assert told == list(range(start + 1, lengths[execution] + 1))


async def test_a_stream_goes_on_when_its_execution_moves_to_another_owner(database: str):
    async with idle_house(database) as house, served(house) as url:
        async with worker(database):
            execution = await begun(house)
            listener = await Listener.connect(url, path(execution), house.root)
            (snapshot,) = await listener.take(1)
            await house.service.pause(execution)
            paused = await listener.take(1)
        async with worker(database):
            await house.service.resume(execution)
            await house.service.signal(execution, "go")
            said = await listener.everything()

    seen = numbers([*paused, *said])
    assert seen == list(range(snapshot.data["seq"] + 1, seen[-1] + 1))
    assert said[-1].data["reason"] == "finished"

"""Files on their way through executions, on both kinds of store: named in logs, counted, and no result to reuse."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from ropewalk.core.duration import DAY
from ropewalk.core.errors import ExecutionEnded
from ropewalk.engines.settings import WorkerSettings
from ropewalk.local import LocalEngine
from ropewalk.nodes.base import NodeContext, NodeType, Output, Registry
from ropewalk.nodes.files import as_value, file_of
from ropewalk.nodes.inputs import Inputs
from ropewalk.service import Service
from ropewalk.service.auditing import Audit
from ropewalk.store import blobs as stored_blobs
from ropewalk.store import files as stored_files
from ropewalk.store import retention
from ropewalk.store.retention import Cutoffs
from ropewalk.store.sqlite import SqliteStore
from ropewalk.wiring import Settings, open_service

MIB = 2**20
BLOBS = "I-39"


class Make(NodeType):
    """Writes so many bytes, and hands the file on, perhaps inside a large value."""

    name = "make"

    class Parameters(Inputs):
        size: int
        letter: str = "a"
        beside: int = 0

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        async def content() -> AsyncIterator[bytes]:
            for at in range(0, parameters.size, MIB):
                yield parameters.letter.encode() * min(MIB, parameters.size - at)

        file = await context.files.write(content(), "made.txt", "text/plain")
        return Output({"beside": "x" * parameters.beside, "file": as_value(file)})


class Count(NodeType):
    """Reads a file, and says how long it is."""

    name = "count"

    class Parameters(Inputs):
        file: dict[str, Any]

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        file = file_of(parameters.file)
        assert file is not None
        return Output(sum([len(chunk) async for chunk in context.files.read(file)]))


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "test.db") if request.param == "sqlite" else str(request.getfixturevalue("database"))


def opened(place: str, mib: int = 1024) -> AbstractAsyncContextManager[Service]:
    types = Registry.builtin()
    types.register(Make())
    types.register(Count())
    settings = Settings(db=place, worker=WorkerSettings(execution_bytes=mib * MIB), file_bytes=64 * MIB)
    return open_service(settings, types)


def made_and_counted(**make: Any) -> dict[str, Any]:
    return {
        "name": "files",
        "nodes": [
            {"id": "make", "type": "make", "with": make},
            {"id": "count", "type": "count", "with": {"file": "{{ nodes.make.output.file }}"}},
        ],
        "edges": [{"from": "make", "to": "count"}],
        "output": {"size": "{{ nodes.count.output }}", "file": "{{ nodes.make.output.file }}"},
    }


@pytest.mark.parametrize("beside", [0, 70_000], ids=["in the log", "inside a large value"])
async def test_a_file_goes_from_node_to_node_and_is_named_by_its_execution(place: str, beside: int):
    async with opened(place) as service:
        execution = await LocalEngine(service).start(made_and_counted(size=3 * MIB + 1, beside=beside))
        result = await execution.result()
        file = file_of(result["file"])

        assert result["size"] == 3 * MIB + 1
        assert file is not None
        assert await stored_files.is_named(service.store, file.hash, execution.id)


async def test_a_file_that_only_a_large_value_names_is_named_by_the_execution(place: str):
    document = {"name": "one", "nodes": [{"id": "make", "type": "make", "with": {"size": 9, "beside": 70_000}}]}
    async with opened(place) as service:
        execution = await LocalEngine(service).start(document)
        file = file_of((await execution.result())["make"]["file"])

        assert file is not None
        assert await stored_files.is_named(service.store, file.hash, execution.id)
        assert not await stored_files.is_named(service.store, file.hash, "another")


async def test_files_count_into_what_an_execution_may_store(place: str):
    nodes = [{"id": f"n{n}", "type": "make", "with": {"size": 3 * MIB, "letter": "ab"[n]}} for n in range(2)]
    document = {"name": "two", "nodes": nodes, "edges": [{"from": "n0", "to": "n1"}]}
    async with opened(place, mib=5) as service:
        execution = await LocalEngine(service).start(document)
        with pytest.raises(ExecutionEnded, match=r"execution\.max_mib"):
            await execution.result()


@pytest.mark.parametrize("beside", [0, 70_000], ids=["in the log", "inside a large value"])
async def test_files_count_after_a_restart_too(place: str, beside: int):
    nodes = [
        {"id": "first", "type": "make", "with": {"size": 3 * MIB, "beside": beside}},
        {"id": "wait", "type": "wait", "with": {"signal": "go"}},
        {"id": "second", "type": "make", "with": {"size": 3 * MIB, "letter": "b"}},
    ]
    edges = [{"from": "first", "to": "wait"}, {"from": "wait", "to": "second"}]
    async with opened(place, mib=5) as service:
        execution = await LocalEngine(service).start({"name": "late", "nodes": nodes, "edges": edges})
        async for each in execution.events():
            if each["type"] == "RunWaiting":
                break
    async with opened(place, mib=5) as service:
        again = LocalEngine(service).execution(execution.id)
        await again.signal("go")
        with pytest.raises(ExecutionEnded, match=r"execution\.max_mib"):
            await again.result()


async def test_a_result_that_names_a_file_is_made_anew(place: str, monkeypatch: pytest.MonkeyPatch):
    made, run = [], Make.run

    async def counted(self: Make, parameters: Make.Parameters, context: NodeContext) -> Output:
        made.append(context.execution)
        return await run(self, parameters, context)

    monkeypatch.setattr(Make, "run", counted)
    document = {"name": "kept", "nodes": [{"id": "make", "type": "make", "with": {"size": 9}, "cache": {"ttl": "1h"}}]}
    async with opened(place) as service:
        first = await LocalEngine(service).start(document)
        await first.result()
        second = await LocalEngine(service).start(document)
        await second.result()

    assert made == [first.id, second.id]


async def audited(service: Service) -> list[str]:
    audit = Audit(service.store, load_blob=service.store.blobs.get, read_file=service.store.blobs.chunks)
    return [each.invariant async for found in audit.executions() for each in found.violations]


@pytest.mark.parametrize("beside", [0, 70_000], ids=["in the log", "inside a large value"])
async def test_a_check_finds_a_file_whose_content_is_gone(place: str, beside: int):
    document = {"name": "one", "nodes": [{"id": "make", "type": "make", "with": {"size": 2 * MIB, "beside": beside}}]}
    async with opened(place) as service:
        execution = await LocalEngine(service).start(document)
        file = file_of((await execution.result())["make"]["file"])
        assert file is not None
        before = await audited(service)
        if isinstance(service.store, SqliteStore):
            (Path(f"{place}.blobs") / file.hash[:2] / file.hash).unlink()
        else:
            async with service.store.transaction() as tx:
                await tx.execute("remove_blob_parts", file.hash)

        assert (before, await audited(service)) == ([], [BLOBS])


async def test_a_check_finds_a_file_that_the_store_does_not_know_to_be_named(place: str):
    async with opened(place) as service:
        execution = await LocalEngine(service).start(made_and_counted(size=9))
        await execution.result()
        async with service.store.transaction() as tx:
            await tx.execute("remove_references_of", execution.id)

        assert await audited(service) == [BLOBS]


async def test_a_value_that_only_claims_to_be_a_file_is_no_fault_of_the_store(place: str):
    claim = {"$file": {"hash": "0" * 64, "size": 10**15, "name": "x", "type": "y"}}
    async with opened(place) as service:
        execution = await LocalEngine(service).start({"name": "c", "nodes": [{"id": "a", "type": "noop"}]}, claim)
        await execution.result()

        assert await audited(service) == []


async def swept(service: Service, now: int) -> tuple[int, int]:
    """How many executions and blobs a sweep removes at this moment, if executions are kept for a day."""
    store = service.store
    cut = Cutoffs(now=now, executions=now - DAY, letters=now - DAY, blobs=now - DAY)
    assert isinstance(store.blobs, retention.RemovableBlobs)
    async with store.transaction() as tx:
        gone, _ = await retention.remove_executions(tx, "", cut, 100)
    removed = 0
    for _ in range(2):  # what a blob has named goes after it
        async with store.transaction() as tx:
            removed += (await retention.remove_blobs(tx, store.blobs, "", cut, 100))[0]
    return len(gone), removed


@pytest.mark.parametrize("beside", [0, 70_000], ids=["in the log", "inside a large value"])
async def test_a_file_goes_after_the_last_execution_that_names_it(
    place: str, beside: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stored_blobs, "LATELY", -60)
    document = {"name": "one", "nodes": [{"id": "make", "type": "make", "with": {"size": 2 * MIB, "beside": beside}}]}
    async with opened(place) as service:
        execution = await LocalEngine(service).start(document)
        file = file_of((await execution.result())["make"]["file"])
        assert file is not None
        now, found = service.store.now(), []
        for days in (0.5, 2, 2.5, 5):
            executions, _ = await swept(service, now + int(days * DAY))
            found.append((executions, await stored_files.size_of(service.store, file.hash, "default") is not None))

    # Half a day old it is there with its execution; that goes, and what it named a day later.
    assert found == [(0, True), (1, True), (0, True), (0, False)]

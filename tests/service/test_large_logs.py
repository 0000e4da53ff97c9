"""Reading an execution costs what is answered, not what its log holds."""

import sqlite3
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ropewalk.core import log
from ropewalk.core.events import ItemSucceeded
from ropewalk.service import reading
from ropewalk.service.explaining import explain
from ropewalk.store import log as stored_log
from ropewalk.store.access import Reader
from ropewalk.store.sqlite import SqliteReader
from ropewalk.wiring import Settings, open_service
from tests.engines.worlds import flow, node

MIB = 2**20
ITEMS = 60
LARGE = "x" * 600_000
Ask = Callable[[Reader, str], Awaitable[Any]]


@pytest.fixture
async def large(tmp_path: Path) -> tuple[Reader, str]:
    """An execution of an earlier version, which wrote what each item was given into the log, 36 MB in all."""
    database = str(tmp_path / "large.db")
    document = flow(node("each", "set", forEach="{{ input }}", values={"of": "{{ item }}"}))
    async with open_service(Settings(db=database)) as service:
        ended = await service.ended(await service.start(await service.save(document), list(range(ITEMS))))
    with closing(sqlite3.connect(database)) as connection, connection:
        for seq, entry in connection.execute("select seq, entry from log").fetchall():
            first, events = log.decode(entry)
            grown = [
                msgspec.structs.replace(event, inputs={"values": {"of": LARGE}})
                if isinstance(event, ItemSucceeded)
                else event
                for event in events
            ]
            connection.execute("update log set entry = ? where seq = ?", (log.encode(first, grown), seq))
    return SqliteReader(database), ended.execution


async def _details(reader: Reader, execution: str) -> Any:
    return await reading.get_execution(reader, None, "default", execution)  # type: ignore[arg-type]  # has no blobs


async def _explained(reader: Reader, execution: str) -> Any:
    return await explain(reader, "default", execution, 0, alive=lambda _: True)


async def _first_run(reader: Reader, execution: str) -> Any:
    run = (await reading.list_runs(reader, execution))[5]["id"]
    return await reading.get_run(reader, None, await reading.find_run(reader, "default", run, execution))  # type: ignore[arg-type]  # has no blobs


QUESTIONS: dict[str, Ask] = {
    "the execution": _details,
    "its nodes": reading.list_nodes,
    "its runs": reading.list_runs,
    "one run": _first_run,
    "why it does not run": _explained,
    "its first event": lambda reader, execution: reading.list_events(reader, execution, 0, 1),
    "an event in the middle": lambda reader, execution: reading.list_events(reader, execution, 30, 1),
    "its events without values": lambda reader, execution: reading.page_of_events(
        reader, execution, 0, 1_000, values=False
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
async def test_reading_an_execution_takes_a_part_of_what_its_log_weighs(large: tuple[Reader, str], question: str):
    reader, execution = large
    weight = sum(len(entry) for _, entry in await stored_log.entries(reader, execution))
    await QUESTIONS[question](reader, execution)
    tracemalloc.start()
    try:
        assert await QUESTIONS[question](reader, execution)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert weight > 30 * MIB
    assert peak < weight / 2, f"{peak / MIB:.1f} MiB"

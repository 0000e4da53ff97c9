"""What many callers ask at the same moment: one question, and each has its own answer."""

import asyncio
from typing import Any

import pytest

from ropewalk.core.errors import RopewalkError
from ropewalk.store import executions, idempotency, log
from ropewalk.store.access import Row
from ropewalk.store.errors import StoreUnavailable
from ropewalk.store.postgres import PostgresStore
from ropewalk.store.postgres.together import Together
from ropewalk.store.rows import IdempotencyEntry, LogEntry
from tests.store.samples import execution

IDS = [f"e{number}" for number in range(8)]


class Line:
    """A line to the database on which every question is noted; it answers when it is let."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self.questions: list[int] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.refusal: RopewalkError | None = None

    async def ask(self, text: str, *arguments: Any) -> list[Row]:
        is_of_many = isinstance(arguments[0], list)
        self.questions.append(len(arguments[0]) if is_of_many else 1)
        await self.is_open.wait()
        if self.refusal is not None and is_of_many:
            raise self.refusal
        return await self._store._reader.ask(text, *arguments)


@pytest.fixture
async def line(postgres_store: PostgresStore) -> Line:
    """There are executions whose logs have two entries each."""
    rows = [LogEntry(each, seq, f"{each} {seq}".encode()) for each in IDS for seq in (1, 2)]
    await postgres_store.write([("insert_execution", [execution(each) for each in IDS]), ("insert_log", rows)])
    return Line(postgres_store)


def short_log(together: Together, each: str) -> asyncio.Task[list[Row]]:
    return asyncio.ensure_future(together.rows("short_log", (each, 0, 500, 1000)))


async def test_each_of_many_callers_gets_its_own_answer_by_one_question(line: Line):
    together = Together(line.ask)

    found = await asyncio.gather(*[short_log(together, each) for each in [*IDS, "nobody"]])

    assert [[row[1] for row in rows] for rows in found] == [
        *[[f"{each} 1".encode(), f"{each} 2".encode()] for each in IDS],
        [],
    ]
    assert line.questions == [9]


async def test_a_caller_who_comes_while_a_question_is_under_way_is_answered_by_the_next(line: Line):
    together = Together(line.ask)
    line.is_open.clear()
    early = short_log(together, "e0")
    while not line.questions:
        await asyncio.sleep(0)
    late = [short_log(together, each) for each in IDS[1:4]]
    await asyncio.sleep(0)
    line.is_open.set()

    assert len(await early) == 2
    assert [len(rows) for rows in await asyncio.gather(*late)] == [2, 2, 2]
    assert line.questions == [1, 3]


async def test_a_caller_who_leaves_takes_no_answer_from_the_others(line: Line):
    together = Together(line.ask)
    asked = [short_log(together, each) for each in IDS[:3]]
    await asyncio.sleep(0)
    asked[1].cancel()

    assert [len(rows) for rows in await asyncio.gather(asked[0], asked[2])] == [2, 2]


async def test_a_store_that_is_away_is_told_to_every_caller(line: Line):
    together = Together(line.ask)
    line.refusal = StoreUnavailable("it is away")

    found = await asyncio.gather(*[short_log(together, each) for each in IDS], return_exceptions=True)

    assert [type(each) for each in found] == [StoreUnavailable] * len(IDS)
    assert line.questions == [8]


async def test_what_is_wrong_with_one_question_is_told_to_its_caller_alone(line: Line):
    together = Together(line.ask)
    bad = asyncio.ensure_future(together.rows("short_log", (7, 0, 500, 1000)))
    good = [short_log(together, each) for each in IDS[:2]]

    found = await asyncio.gather(bad, *good, return_exceptions=True)

    assert isinstance(found[0], RopewalkError)
    assert [len(rows) for rows in found[1:] if isinstance(rows, list)] == [2, 2]


async def test_the_nouns_answer_many_callers_as_they_answer_one(postgres_store: PostgresStore, line: Line):
    store = postgres_store
    entry = IdempotencyEntry("default", "start", "key", "hash", "[]", 10)
    await store.write([("insert_idempotency", [entry])])

    rows = await asyncio.gather(*[executions.get(store, "default", each) for each in IDS])
    foreign = await asyncio.gather(*[executions.get(store, "other", each) for each in IDS])
    answers = await asyncio.gather(
        *[idempotency.answer(store, "default", "start", key, "hash", 20) for key in ("key", "no")]
    )
    pages = await asyncio.gather(*[log.pages(store, each).next() for each in IDS])

    assert [row.id for row in rows if row] == IDS
    assert foreign == [None] * len(IDS)
    assert answers == ["[]", None]
    assert pages == [[f"{each} 1".encode(), f"{each} 2".encode()] for each in IDS]

"""Logs: read from any event on, appended to by one."""

import pytest

from ropewalk.core.errors import Conflict
from ropewalk.store import log
from ropewalk.store.access import Store
from ropewalk.store.rows import LogEntry

# Entries of three, four and one event.
ENTRIES = [LogEntry("e1", 1, b"one"), LogEntry("e1", 4, b"two"), LogEntry("e1", 8, b"three")]


@pytest.mark.parametrize(
    ("start", "first"), [(0, 0), (1, 0), (3, 0), (4, 1), (7, 1), (8, 2), (100, 2)]
)  # fmt: skip
async def test_entries_begin_with_the_one_that_holds_the_event(store: Store, start: int, first: int):
    await store.write([("insert_log", [*ENTRIES, LogEntry("e2", 1, b"other")])])

    assert await log.entries(store, "e1", start=start) == [(row.seq, row.entry) for row in ENTRIES[first:]]


async def test_an_unknown_execution_has_no_entries(store: Store):
    assert await log.entries(store, "nobody") == []


async def test_two_cannot_append_under_one_number(store: Store):
    await store.write([("insert_log", [ENTRIES[0]])])
    with pytest.raises(Conflict):
        await store.write([("insert_log", [LogEntry("e1", 1, b"another")])])

    assert await log.entries(store, "e1") == [(1, b"one")]


@pytest.mark.parametrize(
    ("start", "most", "pages"),
    [(1, 500, [[b"one", b"two"], [b"three"]]), (1, 1, [[b"one"], [b"two"], [b"three"]]), (5, 500, [[b"two", b"three"]]),
     (100, 2, [[b"three"]])],
)  # fmt: skip
async def test_a_log_is_read_page_by_page_and_a_page_has_so_many_bytes(
    store: Store, monkeypatch: pytest.MonkeyPatch, start: int, most: int, pages: list[list[bytes]]
):
    monkeypatch.setattr(log, "PAGE_BYTES", 6)
    await store.write([("insert_log", [*ENTRIES, LogEntry("e2", 1, b"other")])])

    assert [list(page) async for page in log.pages(store, "e1", start=start, most=most)] == pages
    assert [page async for page in log.pages(store, "nobody")] == []


async def test_a_short_log_is_one_page_that_one_question_gives(store: Store):
    await store.write([("insert_log", [*ENTRIES, LogEntry("e2", 1, b"other")])])

    assert [list(page) async for page in log.pages(store, "e1")] == [[b"one", b"two", b"three"]]
    assert await store.fetch("short_log", "e1", 4, 2, 8) == [(4, b"two"), (8, b"three")]
    assert await store.fetch("short_log", "e1", 0, 2, 100) == []
    assert await store.fetch("short_log", "e1", 0, 3, 10) == []
    assert await store.fetch("short_log", "nobody", 0, 3, 10) == []

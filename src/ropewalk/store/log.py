"""Logs: the truth about each execution, append-only."""

from collections.abc import AsyncIterator, Iterable
from typing import Final

from ropewalk.store.access import Reader, json_list

_ALL: Final = 2**62
PAGE_ENTRIES: Final = 500
PAGE_BYTES: Final = 4 * 2**20
"""How much of one log is in memory at once for whoever reads it page by page; a longer entry comes alone."""


async def heads(reader: Reader, executions: Iterable[str]) -> dict[str, int]:
    """The number of the newest entry of each of these logs."""
    return dict(await reader.fetch("log_heads", json_list(executions)))


async def whole(reader: Reader, executions: Iterable[str]) -> dict[str, list[bytes]]:
    """All entries of each of these logs, in order."""
    found: dict[str, list[bytes]] = {}
    for execution, entry in await reader.fetch("whole_logs", json_list(executions)):
        found.setdefault(execution, []).append(entry)
    return found


async def entries(reader: Reader, execution: str, *, start: int = 1, limit: int = _ALL) -> list[tuple[int, bytes]]:
    """The entries (number of the first event, bytes) from the one that holds event `start` on, in order."""
    rows = await reader.fetch("log_entries", execution, start, limit)
    return [(seq, entry) for seq, entry in rows]


async def pages(
    reader: Reader, execution: str, *, start: int = 1, most: int = PAGE_ENTRIES
) -> AsyncIterator[list[bytes]]:
    """The entries from the one that holds event `start` on, in order, `most` or a few megabytes at a time.

    A page is emptied when the next one is asked for, so that only one of them is in memory.
    """
    holding = None if start == 1 else await reader.fetch_one("entry_holding", execution, start)
    first = 0 if holding is None else holding[0]
    while rows := await reader.fetch("log_page", execution, first, most, PAGE_BYTES):
        first, is_last = rows[-1][0] + 1, len(rows) == rows[0][2] < most
        page = [row[1] for row in rows]
        del rows
        yield page
        page.clear()
        if is_last:
            return

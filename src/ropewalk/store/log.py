"""Logs: the truth about each execution, append-only."""

from collections.abc import Iterable
from typing import Final, Self

from ropewalk.store.access import Reader, json_list

_ALL: Final = 2**62
PAGE_ENTRIES: Final = 500
PAGE_BYTES: Final = 4 * 2**20
"""How much of one log is in memory at once for a reader that goes page by page; a longer entry comes alone."""

LITTLE: Final = 64 * 1024
"""A log of so many bytes is read at once, by the shortest question there is."""


async def heads(reader: Reader, executions: Iterable[str]) -> dict[str, int]:
    """The number of the newest entry of each of these logs."""
    return dict(await reader.fetch("log_heads", json_list(executions)))


async def last_entries(reader: Reader, executions: Iterable[str]) -> list[tuple[str, bytes]]:
    """The newest entry of each of these logs."""
    return [(execution, entry) for execution, entry in await reader.fetch("last_entries", json_list(executions))]


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


class pages:  # noqa: N801 -- called like the functions beside it
    """The entries from the one that holds event `start` on, in order, `most` or a few megabytes at a time.

    A page is emptied when the next one is asked for, so that only one of them is in memory. No generator: a reader that
    stops in the middle leaves nothing behind that has to be closed.
    """

    def __init__(self, reader: Reader, execution: str, *, start: int = 1, most: int | None = None) -> None:
        self._reader = reader
        self._execution = execution
        self._start = start
        self._most = most or PAGE_ENTRIES
        self._first: int | None = 0 if start == 1 else None
        self._page: list[bytes] = []
        self._is_begun = self._is_last = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[bytes]:
        page = await self.next()
        if not page:
            raise StopAsyncIteration
        return page

    async def next(self) -> list[bytes]:
        """The next page; nothing if there is no more."""
        self._page.clear()
        if not self._is_last:
            is_first, self._is_begun = not self._is_begun, True
            self._page = (is_first and await self._all()) or await self._some()
        return self._page

    async def _all(self) -> list[bytes]:
        """Everything, if that is little, as it mostly is; else nothing."""
        if self._first is None:
            holding = await self._reader.fetch_one("entry_holding", self._execution, self._start)
            self._first = 0 if holding is None else holding[0]
        rows = await self._reader.fetch("short_log", self._execution, self._first, self._most, min(LITTLE, PAGE_BYTES))
        self._is_last = bool(rows)
        return [row[1] for row in rows]

    async def _some(self) -> list[bytes]:
        rows = await self._reader.fetch("log_page", self._execution, self._first, self._most, PAGE_BYTES)
        self._is_last = not rows or len(rows) == rows[0][2] < self._most
        if rows:
            self._first = rows[-1][0] + 1
        return [row[1] for row in rows]

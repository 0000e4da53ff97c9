"""Logs: the truth about each execution, append-only."""

from collections.abc import Iterable
from typing import Final

from ropewalk.store.access import Reader, json_list

_ALL: Final = 2**62


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

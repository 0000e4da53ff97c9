"""What the store has of executions, asked for many at once: what its tables say, and their logs."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ropewalk.engines.native.live import Written
from ropewalk.store import events
from ropewalk.store.access import Reader, Row, json_list

MOST_BYTES = 8 * 2**20
"""How much of logs is read at once; one that is longer is read alone."""


class Recorded(Struct, frozen=True):
    """What the tables say about an execution, how long its log is (bytes), and which version of what it is of."""

    written: Written
    size: int
    version: tuple[str, int] = ("", 0)


async def recorded(reader: Reader, executions: Sequence[str]) -> dict[str, Recorded]:
    """Those of the executions that there are, in no particular order."""
    rows = await reader.fetch("written_rows", json_list(executions))
    waits = await events.of_executions(reader, executions)
    return {row[0]: _recorded(row, waits.get(row[0], {})) for row in rows}


def _recorded(row: Row, waits: dict[tuple[str, int], None]) -> Recorded:
    _, state, started_at, finished_at, error, owner, wake_at, has_slot, has_key, queued, size, *version = row
    live = None if has_slot is None else (owner, wake_at, has_slot, has_key)
    return Recorded(
        Written((state, started_at, finished_at, error), live, queued, waits), size, (version[0], version[1])
    )


def in_pieces(found: Mapping[str, Recorded], most: int = MOST_BYTES) -> Iterator[list[str]]:
    """All of them, so many at a time that their logs together are not too long."""
    piece: list[str] = []
    size = 0
    for execution, each in found.items():
        if piece and size + each.size > most:
            yield piece
            piece, size = [], 0
        piece.append(execution)
        size += each.size
    if piece:
        yield piece

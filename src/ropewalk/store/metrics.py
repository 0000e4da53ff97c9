"""Figures that only the store knows, each counted up to a bound, so that asking is cheap however much there is."""

from typing import Final

from msgspec import Struct

from ropewalk.store import suspicion
from ropewalk.store.access import Reader, Store

MOST_WAITING: Final = 10_000
MOST_WORKSPACES: Final = 100
MOST_DEAD_LETTERS: Final = 100_000
MOST_BREAKERS: Final = 10_000


class FullWorkspace(Struct, frozen=True):
    """A workspace where something waits because every slot is taken."""

    id: str
    slots: int
    taken: int


async def waiting(reader: Reader) -> int:
    """How many executions wait for a slot."""
    return _count(await reader.fetch_one("count_waiting", MOST_WAITING))


async def full_workspaces(reader: Reader) -> list[FullWorkspace]:
    """Where something waits because every slot is taken."""
    return [FullWorkspace(*row) for row in await reader.fetch("full_workspaces", MOST_WORKSPACES)]


async def dead_letters(store: Store) -> int:
    """How many dead letters are not resolved."""
    return _count((await store.scan("count_dead_letters", MOST_DEAD_LETTERS))[0])


async def set_aside(reader: Reader) -> int:
    """How many executions are set aside."""
    return len(await suspicion.all_set_aside(reader))


async def breakers(reader: Reader) -> dict[str, int]:
    """How many breakers are in which state."""
    return {str(row[0]): int(row[1]) for row in await reader.fetch("count_breakers", MOST_BREAKERS)}


def _count(row: tuple[int, ...] | None) -> int:
    return 0 if row is None else row[0]

"""How many executions wait in a workspace: counted now and then, and not for every delivery."""

from typing import Final

from ropewalk.core.duration import SECOND
from ropewalk.store import triggers
from ropewalk.store.access import Store

MOST_WAITING: Final = 100_000
"""How many executions of a workspace may wait in the queue before triggers start no more."""
COUNTED_FOR: Final = SECOND // 2
"""How long (µs) a count is good: what comes meanwhile is little beside the bound."""


class Backlog:
    """The counts of all workspaces, as they were a moment ago."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counted: dict[str, tuple[int, int]] = {}

    async def is_full(self, workspace: str) -> bool:
        """Whether so many wait that triggers start nothing more."""
        now = self._store.now()
        until, count = self._counted.get(workspace, (0, 0))
        if now >= until:
            count = await triggers.waiting(self._store, workspace, MOST_WAITING)
            self._counted[workspace] = (now + COUNTED_FOR, count)
        return count >= MOST_WAITING

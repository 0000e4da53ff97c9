"""How many slots workspaces have, as far as that is known without asking for each start."""

from contextlib import suppress

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import NotFound, RopewalkError
from ropewalk.engines.background import Background
from ropewalk.store import workspaces
from ropewalk.store.access import Store

LIMIT_KEPT = 1 * SECOND


class SlotLimits:
    """The limit of each workspace that something was started in."""

    def __init__(self, store: Store, background: Background) -> None:
        self._store = store
        self._background = background
        self._known: dict[str, tuple[int, int | None]] = {}

    async def of(self, workspace: str) -> int | None:
        """How many slots the workspace has; None: as many as it wants. Looked up again every second."""
        now = self._store.now()
        known = self._known.get(workspace)
        if known is None:
            return await self._look_up(workspace)
        if now - known[0] > LIMIT_KEPT:
            self._known[workspace] = (now, known[1])
            self._background.spawn(self._renew(workspace))
        return known[1]

    async def _look_up(self, workspace: str) -> int | None:
        found = await workspaces.get(self._store, workspace)
        if found is None:
            self._known.pop(workspace, None)
            raise NotFound(f"there is no workspace {workspace!r}")
        self._known[workspace] = (self._store.now(), found.slots)
        return found.slots

    async def _renew(self, workspace: str) -> None:
        with suppress(RopewalkError):  # the next start asks again
            await self._look_up(workspace)

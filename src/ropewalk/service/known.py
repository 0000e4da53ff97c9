"""Workflows as they were a moment ago: a rush of starts reads each of them once in a few milliseconds.

Whoever changes one here forgets it with the commit, so that the next start sees the change; what another server has
changed is seen a moment later.
"""

import asyncio
from typing import Final

from msgspec import Struct, field

from ropewalk.core.duration import MILLISECOND
from ropewalk.store import workflows
from ropewalk.store.access import Store
from ropewalk.store.workflows import Workflow

BELIEVED: Final = 5 * MILLISECOND
MOST: Final = 1_000


class _Known(Struct):
    """What was found since something was last forgotten, until when it is believed, and what is being looked up."""

    found: dict[str, tuple[int, Workflow]] = field(default_factory=dict)
    asked: dict[str, asyncio.Future[Workflow | None]] = field(default_factory=dict)


class KnownWorkflows:
    """Those of one workspace."""

    def __init__(self, store: Store, workspace: str) -> None:
        self._store = store
        self._workspace = workspace
        self._known = _Known()

    async def get(self, workflow: str) -> Workflow | None:
        """The workflow of this id, as it was at most a moment ago. Those who ask at the same time share one look."""
        held = self._known.found.get(workflow)
        if held is not None and self._store.now() < held[0]:
            return held[1]
        known = self._known
        if not self._store.is_shared:
            # An embedded store answers on the spot: there is no look to share, and nobody to wait for.
            return await self._look_up(workflow, known)
        asked = known.asked.get(workflow)
        if asked is None:
            asked = known.asked[workflow] = asyncio.ensure_future(self._look_up_for_all(workflow, known))
            # Whoever waits for it hears of a failure; if nobody does any more, it is nobody's.
            asked.add_done_callback(lambda done: done.cancelled() or done.exception())
        # One who leaves must not take the answer away from the others.
        return await asyncio.shield(asked)

    async def _look_up_for_all(self, workflow: str, known: _Known) -> Workflow | None:
        try:
            return await self._look_up(workflow, known)
        finally:
            del known.asked[workflow]

    async def _look_up(self, workflow: str, known: _Known) -> Workflow | None:
        """Noted among what was known when the look began: if that is forgotten meanwhile, so is this."""
        until = self._store.now() + BELIEVED
        found = await workflows.get(self._store, self._workspace, workflow)
        if found is not None:
            if len(known.found) >= MOST:
                known.found.clear()
            known.found[workflow] = (until, found)
        return found

    def forget(self) -> None:
        """Everything is looked up again."""
        self._known = _Known()

"""A cache of workflows: in a rush of starts, each workflow is read a few times a second and not at every start.

A change that is made here empties the cache with its commit, so that the next start sees it, and hints at it to the
other servers. A server that misses the hint sees the change a moment later all the same.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from ropewalk.core.duration import MILLISECOND
from ropewalk.store import workflows
from ropewalk.store.access import Store
from ropewalk.store.workflows import Workflow

MAX_AGE: Final = 5 * MILLISECOND
MAX_AGE_IF_SHARED: Final = 50 * MILLISECOND
MOST: Final = 1_000


class _Entry(Struct, frozen=True):
    """A workflow, from when on it is looked up again in the background, and until when it is taken from here."""

    workflow: Workflow
    renewed: int
    until: int


class _Entries(Struct):
    """What was found since the cache was last emptied, and what is being looked up."""

    changes: int
    found: dict[str, _Entry] = field(default_factory=dict)
    asked: dict[str, asyncio.Future[Workflow | None]] = field(default_factory=dict)


class WorkflowCache:
    """The workflows of one workspace; `changes` goes up whenever another server hints at a change."""

    def __init__(self, store: Store, workspace: str, changes: Callable[[], int] = int) -> None:
        self._store = store
        self._workspace = workspace
        self._changes = changes
        self._max_age = MAX_AGE_IF_SHARED if store.is_shared else MAX_AGE
        self._entries = _Entries(changes())

    async def get(self, workflow: str) -> Workflow | None:
        """The workflow of this id or name, as it was at most a moment ago. Callers that ask together share a query."""
        if self._entries.changes != self._changes():
            self.forget()
        entries, now = self._entries, self._store.now()
        held = entries.found.get(workflow)
        if held is not None and now < held.until:
            if now >= held.renewed and workflow not in entries.asked and self._store.is_shared:
                self._ask(workflow, entries)  # for later callers: in a rush, no caller has to wait
            return held.workflow
        if not self._store.is_shared:
            # An embedded store answers on the spot: there is no look-up to share.
            return await self._look_up(workflow, entries)
        # A caller that leaves must not take the answer away from the others.
        return await asyncio.shield(entries.asked.get(workflow) or self._ask(workflow, entries))

    def _ask(self, workflow: str, entries: _Entries) -> asyncio.Future[Workflow | None]:
        asked = entries.asked[workflow] = asyncio.ensure_future(self._look_up_for_all(workflow, entries))
        # The callers hear of a failure; if all of them have left, it is not reported as an unread one.
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())
        return asked

    async def _look_up_for_all(self, workflow: str, entries: _Entries) -> Workflow | None:
        try:
            return await self._look_up(workflow, entries)
        finally:
            del entries.asked[workflow]

    async def _look_up(self, workflow: str, entries: _Entries) -> Workflow | None:
        """Noted among the entries that there were when the look began: if that is forgotten meanwhile, so is this."""
        began = self._store.now()
        found = await workflows.find(self._store, self._workspace, workflow)
        if found is None:
            entries.found.pop(workflow, None)
            return None
        if len(entries.found) >= MOST:
            entries.found.clear()
        entries.found[workflow] = _Entry(found, began + self._max_age // 2, began + self._max_age)
        return found

    def forget(self) -> None:
        """Everything is looked up again."""
        self._entries = _Entries(self._changes())

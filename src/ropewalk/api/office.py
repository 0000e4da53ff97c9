"""What the handlers work with: the store, a service per workspace, and who is who."""

import secrets
from collections.abc import Callable
from typing import Final

from starlette.requests import HTTPConnection

from ropewalk.access.actor import Actor
from ropewalk.access.keys import KeyRing
from ropewalk.api.cursors import Cursors
from ropewalk.service import Service
from ropewalk.store import secrets as kept
from ropewalk.store.access import Store

MOST_SERVICES: Final = 1_000


class Office:
    """One server's view of everything behind it. `serve` makes the service of a workspace."""

    def __init__(self, store: Store, serve: Callable[[str], Service], cursors: Cursors) -> None:
        self.store = store
        self.cursors = cursors
        self.keys = KeyRing(store)
        self._serve = serve
        self._services: dict[str, Service] = {}

    @classmethod
    async def open(cls, store: Store, serve: Callable[[str], Service]) -> "Office":
        """Every server of one store signs with the same key, so that a cursor of one is good for all."""
        async with store.transaction() as tx:
            key = await kept.keep(tx, "cursors", secrets.token_urlsafe(32))
        return cls(store, serve, Cursors(key))

    def service(self, workspace: str) -> Service:
        """The service of a workspace."""
        found = self._services.get(workspace)
        if found is None:
            if len(self._services) >= MOST_SERVICES:
                self._services.clear()
            found = self._services[workspace] = self._serve(workspace)
        return found

    async def actor(self, token: str) -> Actor | None:
        """Whose token this is."""
        return await self.keys.actor(token)

    async def session_actor(self, connection: HTTPConnection) -> Actor | None:
        """Whose browser this is."""
        return None

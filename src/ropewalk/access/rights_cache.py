"""What a caller may do in a workspace: by their key, as a member, or because something in it is shared with them."""

from ropewalk.access.actor import Actor
from ropewalk.access.cache import Cache
from ropewalk.access.rights import NOTHING, Right
from ropewalk.store import acl, workspaces
from ropewalk.store.access import Store


class RightsCache:
    """Looked up once in a while; a key at home costs no read at all."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._roles: Cache[tuple[Actor, str], frozenset[Right]] = Cache(store.now)
        self._shares: Cache[tuple[Actor, str, str], frozenset[Right]] = Cache(store.now)
        self._parts: Cache[tuple[str, str], bool] = Cache(store.now)
        self._workspaces: Cache[str, bool] = Cache(store.now)

    async def rights_in(self, actor: Actor, workspace: str) -> frozenset[Right]:
        """What the actor may do in the whole of a workspace; nothing in one that does not exist."""
        at_home = actor.rights_at_home(workspace)
        if at_home is None:
            return await self._roles.ask((actor, workspace), lambda: actor.rights_in(self._store, workspace))
        # A root key may name any workspace; what does not exist is not its own either.
        is_there = not actor.is_root or await self._workspaces.ask(workspace, lambda: self._exists(workspace))
        return at_home if is_there else NOTHING

    async def rights_for(self, actor: Actor, workspace: str, workflow: str) -> frozenset[Right]:
        """What the actor may do with one workflow because it is shared with them."""
        asked = (actor, workspace, workflow)
        return await self._shares.ask(asked, lambda: actor.rights_for(self._store, workspace, workflow))

    async def has_shares(self, actor: Actor, workspace: str) -> bool:
        """Whether anything in this workspace is shared with the actor."""
        return await self._parts.ask((actor.subject, workspace), lambda: self._has_shares(actor.subject, workspace))

    async def _has_shares(self, subject: str, workspace: str) -> bool:
        return bool(await acl.shared_with(self._store, subject, workspace, limit=1))

    async def _exists(self, workspace: str) -> bool:
        return await workspaces.get(self._store, workspace) is not None

    def forget(self) -> None:
        """Everything is looked up again: something was changed here."""
        for cache in (self._roles, self._shares, self._parts, self._workspaces):
            cache.forget()

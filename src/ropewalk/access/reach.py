"""What actors reach who are no members of a workspace: the workflows that are shared with them, at this moment."""

from ropewalk.access.actor import Actor
from ropewalk.access.granting import SUBJECT
from ropewalk.access.keys import KeyRing
from ropewalk.access.rights import Right
from ropewalk.store.access import Store


class SharedReach:
    """Looked up each time: only what such actors saved or started asks. A key that has ended reaches nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys = KeyRing(store)

    async def may_call(self, actor: str, workspace: str, workflow: str) -> bool:
        """Whether this actor may start this workflow (its id)."""
        known = await self._actor(actor)
        if known is None:
            return False
        if Right.EXECUTE in await known.rights_in(self._store, workspace):
            return True
        return Right.EXECUTE in await known.rights_for(self._store, workspace, workflow)

    async def _actor(self, subject: str) -> Actor | None:
        if subject.startswith(SUBJECT):
            return await self._keys.of_id(subject.removeprefix(SUBJECT))
        return Actor(subject=subject)

"""What actors reach who are no members of a workspace: the workflows and credentials shared with them now."""

from ropewalk.access.actor import Actor
from ropewalk.access.granting import SUBJECT
from ropewalk.access.keys import KeyRing
from ropewalk.access.rights import EVERYTHING, Right
from ropewalk.store import credentials
from ropewalk.store.access import Reader, Store


async def may_use(reader: Reader, actor: Actor, workspace: str, credential: str) -> bool:
    """Whether the actor may use a credential: any of the workspace, or this one, which is shared with the actor."""
    if Right.USE_CREDENTIALS in await actor.rights_in(reader, workspace):
        return True
    if Right.USE_CREDENTIALS not in actor.scoped(EVERYTHING):
        return False
    return await credentials.permit_of(reader, workspace, credential, actor.subject) is not None


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

    async def may_use(self, actor: str, workspace: str, credential: str) -> bool:
        """Whether this actor may use this credential (its id)."""
        known = await self._actor(actor)
        return known is not None and await may_use(self._store, known, workspace, credential)

    async def _actor(self, subject: str) -> Actor | None:
        if subject.startswith(SUBJECT):
            return await self._keys.of_id(subject.removeprefix(SUBJECT))
        return Actor(subject=subject)

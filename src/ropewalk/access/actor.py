"""Somebody who has proved who they are."""

from msgspec import Struct

from ropewalk.access.rights import EVERYTHING, NOTHING, RIGHTS, Right, Role
from ropewalk.store import acl, members
from ropewalk.store.access import Reader


class Actor(Struct, frozen=True, kw_only=True):
    """Who asks. A key has a role in its home workspace; people have theirs by membership.

    `scopes` are all that is used of any role, None for no limit; `pools` those a runner may lease from, None for any.
    """

    subject: str
    home: str | None = None
    role: Role | None = None
    scopes: frozenset[Right] | None = None
    pools: frozenset[str] | None = None
    is_root: bool = False

    async def rights_in(self, reader: Reader, workspace: str) -> frozenset[Right]:
        """What this one may do in the whole of a workspace."""
        if self.is_root:
            return self._scoped(EVERYTHING)
        if self.home == workspace and self.role is not None:
            return self._scoped(RIGHTS[self.role])
        member = await members.get(reader, workspace, self.subject)
        return NOTHING if member is None else self._scoped(RIGHTS[Role(member.role)])

    async def rights_for(self, reader: Reader, workspace: str, workflow: str) -> frozenset[Right]:
        """What this one may do with one workflow because it is shared with them."""
        share = await acl.get(reader, workspace, workflow, self.subject)
        return NOTHING if share is None else self._scoped(RIGHTS[Role(share.role)])

    def _scoped(self, rights: frozenset[Right]) -> frozenset[Right]:
        return rights if self.scopes is None else rights & self.scopes

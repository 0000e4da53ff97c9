"""A caller who has proved who they are."""

from msgspec import Struct

from ropewalk.access.rights import EVERYTHING, NOTHING, RIGHTS, Right, Role
from ropewalk.store import acl, members
from ropewalk.store.access import Reader


class Actor(Struct, frozen=True, kw_only=True):
    """Who asks. A key has a role in its home workspace; people have theirs by membership.

    `scopes` are all that is used of any role, None for no limit; `pools` those a runner may lease from, None for any.
    What proved it is good until `expires_at`.
    """

    subject: str
    home: str | None = None
    role: Role | None = None
    scopes: frozenset[Right] | None = None
    pools: frozenset[str] | None = None
    is_root: bool = False
    expires_at: int | None = None

    @property
    def is_key(self) -> bool:
        return self.home is not None

    def rights_at_home(self, workspace: str) -> frozenset[Right] | None:
        """What the actor may do in a workspace by itself, without a membership; None if that has to be looked up."""
        if self.is_root:
            return self.scoped(EVERYTHING)
        if self.home == workspace and self.role is not None:
            return self.scoped(RIGHTS[self.role])
        return None

    async def rights_in(self, reader: Reader, workspace: str) -> frozenset[Right]:
        """What the actor may do in the whole of a workspace."""
        at_home = self.rights_at_home(workspace)
        if at_home is not None:
            return at_home
        member = await members.get(reader, workspace, self.subject)
        return NOTHING if member is None else self.scoped(RIGHTS[Role(member.role)])

    async def rights_for(self, reader: Reader, workspace: str, workflow: str) -> frozenset[Right]:
        """What the actor may do with one workflow because it is shared with them."""
        share = await acl.get(reader, workspace, workflow, self.subject)
        return NOTHING if share is None else self.scoped(RIGHTS[Role(share.role)])

    def scoped(self, rights: frozenset[Right]) -> frozenset[Right]:
        """What the scopes leave of these."""
        return rights if self.scopes is None else rights & self.scopes

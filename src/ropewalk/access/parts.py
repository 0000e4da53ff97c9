"""The workspaces a caller has a part in."""

from typing import Final

from msgspec import Struct

from ropewalk.access.actor import Actor
from ropewalk.access.rights import NOTHING, RIGHTS, Right, Role
from ropewalk.store import acl, members
from ropewalk.store.access import Reader

MOST: Final = 200


class Part(Struct, frozen=True):
    """A caller's role in a workspace; without a role, something in it is shared with them."""

    workspace: str
    role: Role | None
    rights: frozenset[Right]


async def parts_of(reader: Reader, actor: Actor) -> list[Part]:
    """The caller's parts, by workspace; not more than a page of memberships and one of shares."""
    shared = await acl.shared_workspaces(reader, actor.subject, limit=MOST)
    parts = {workspace: Part(workspace, None, NOTHING) for workspace in shared}
    for member in await members.memberships(reader, actor.subject, limit=MOST):
        role = Role(member.role)
        parts[member.workspace] = Part(member.workspace, role, actor.scoped(RIGHTS[role]))
    if actor.home is not None:
        parts[actor.home] = Part(actor.home, actor.role, actor.rights_at_home(actor.home) or NOTHING)
    return [parts[workspace] for workspace in sorted(parts)]

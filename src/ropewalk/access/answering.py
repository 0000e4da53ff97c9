"""Who may answer what waits for a person: those who may execute its workflow."""

from typing import Any, Final

from ropewalk.access.rights import RIGHTS, Right, Role
from ropewalk.store import acl, members
from ropewalk.store.access import Reader

MOST_NAMED: Final = 200
ROLES: Final = tuple(str(role) for role in Role if Right.EXECUTE in RIGHTS[role])


async def answerers(reader: Reader, workspace: str, workflow: str, *, is_named: bool) -> dict[str, Any]:
    """The roles that may answer an approval of this workflow and, if wanted, who has one of them here."""
    if not is_named:
        return {"roles": list(ROLES), "subjects": None}
    here = await members.listed(reader, workspace, limit=MOST_NAMED)
    shared = await acl.listed(reader, workspace, workflow, limit=MOST_NAMED)
    given = [(each.subject, each.role) for each in here] + [(each.subject, each.role) for each in shared]
    return {"roles": list(ROLES), "subjects": sorted({subject for subject, role in given if role in ROLES})}

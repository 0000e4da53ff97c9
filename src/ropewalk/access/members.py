"""Members of a workspace: given a role, and let go again."""

from msgspec.structs import replace

from ropewalk.access.granting import Giver
from ropewalk.access.rights import Role
from ropewalk.store import audit, members
from ropewalk.store.access import Store


async def put(store: Store, giver: Giver, subject: str, role: Role) -> members.Member:
    """A member in this role from now on."""
    now = store.now()
    async with store.transaction() as tx:
        found = await members.get(tx, giver.workspace, subject)
        before = None if found is None else found.role
        giver.require_role(role, before)
        await giver.require_end(tx, subject, before, role)
        member = (
            replace(found, role=role) if found else members.Member(giver.workspace, subject, role, now, giver.subject)
        )
        if before != role:
            await members.put(tx, member)
            await audit.append(tx, giver.entry(now, "put-member", subject, before=before, after=role))
        return member


async def remove(store: Store, giver: Giver, subject: str) -> bool:
    """A member no more; whether there was one. Root keys can always let a subject in again."""
    async with store.transaction() as tx:
        found = await members.get(tx, giver.workspace, subject)
        if found is None:
            return False
        giver.require_role(found.role)
        await members.remove(tx, giver.workspace, subject)
        await audit.append(tx, giver.entry(store.now(), "remove-member", subject, before=found.role))
        return True

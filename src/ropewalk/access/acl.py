"""Workflows shared one by one, and shared no more."""

from msgspec.structs import replace

from ropewalk.access.granting import Giver
from ropewalk.access.rights import Role
from ropewalk.store import acl, audit
from ropewalk.store.access import Store


async def share(store: Store, giver: Giver, workflow: str, subject: str, role: Role) -> acl.Share:
    """Shared in this role from now on."""
    now, here = store.now(), giver.workspace
    async with store.transaction() as tx:
        found = await acl.get(tx, here, workflow, subject)
        before = None if found is None else found.role
        giver.require_role(role, before)
        await giver.require_end(tx, subject, before, role)
        shared = replace(found, role=role) if found else acl.Share(here, workflow, subject, role, now, giver.subject)
        if before != role:
            await acl.put(tx, shared)
            entry = giver.entry(now, "share-workflow", workflow, before=before, after=role, detail=subject)
            await audit.append(tx, entry)
        return shared


async def unshare(store: Store, giver: Giver, workflow: str, subject: str) -> bool:
    """Shared no more; whether it was."""
    async with store.transaction() as tx:
        found = await acl.get(tx, giver.workspace, workflow, subject)
        if found is None:
            return False
        giver.require_role(found.role)
        await acl.remove(tx, giver.workspace, workflow, subject)
        await audit.append(
            tx, giver.entry(store.now(), "unshare-workflow", workflow, before=found.role, detail=subject)
        )
        return True

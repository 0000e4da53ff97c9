"""Credentials shared one by one, and shared no more."""

from ropewalk.access.granting import Giver
from ropewalk.access.rights import Right, Role
from ropewalk.core.errors import NotFound
from ropewalk.store import audit, credentials
from ropewalk.store.access import Reader, Store


async def named(reader: Reader, workspace: str, name: str) -> credentials.Credential:
    """The credential of this name; NotFound if there is none."""
    found = await credentials.get(reader, workspace, name)
    if found is None:
        raise NotFound(f"there is no credential {name!r}")
    return found


async def share(store: Store, giver: Giver, name: str, subject: str) -> credentials.Permit:
    """A subject may use the credential from now on."""
    now, here = store.now(), giver.workspace
    async with store.transaction() as tx:
        found = await named(tx, here, name)
        giver.require({Right.USE_CREDENTIALS})
        # What is shared has no end of its own: a key that ends gives it to no subject that stays.
        await giver.require_end(tx, subject, None, Role.EDITOR)
        permit = credentials.Permit(here, found.id, subject, now, giver.subject)
        if await credentials.permit(tx, permit):
            await audit.append(tx, giver.entry(now, "share-credential", found.id, after=subject, detail=name))
            return permit
        return await credentials.permit_of(tx, here, found.id, subject) or permit


async def unshare(store: Store, giver: Giver, name: str, subject: str) -> bool:
    """A subject may use the credential no more; whether it could."""
    async with store.transaction() as tx:
        found = await named(tx, giver.workspace, name)
        giver.require({Right.USE_CREDENTIALS})
        changed = await credentials.withdraw(tx, giver.workspace, found.id, subject)
        if changed:
            entry = giver.entry(store.now(), "unshare-credential", found.id, before=subject, detail=name)
            await audit.append(tx, entry)
        return changed

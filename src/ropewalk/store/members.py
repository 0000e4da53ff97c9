"""Members: who has which role in which workspace."""

from msgspec import Struct

from ropewalk.store.access import Reader, Transaction


class Member(Struct, frozen=True):
    """A subject's role in a workspace."""

    workspace: str
    subject: str
    role: str
    created_at: int
    created_by: str


async def put(tx: Transaction, member: Member) -> None:
    """A member in this role from now on."""
    await tx.execute("put_member", member.workspace, member.subject, member.role, member.created_at, member.created_by)


async def get(reader: Reader, workspace: str, subject: str) -> Member | None:
    """The subject's role in a workspace."""
    row = await reader.fetch_one("get_member", workspace, subject)
    return None if row is None else Member(*row)


async def listed(reader: Reader, workspace: str, *, after: str = "", limit: int = 50) -> list[Member]:
    """The members of a workspace by subject, after a cursor."""
    return [Member(*row) for row in await reader.fetch("list_members", workspace, after, limit)]


async def memberships(reader: Reader, subject: str, *, after: str = "", limit: int = 50) -> list[Member]:
    """The subject's roles, by workspace after a cursor."""
    return [Member(*row) for row in await reader.fetch("memberships", subject, after, limit)]


async def remove(tx: Transaction, workspace: str, subject: str) -> bool:
    """A member no more; whether there was one."""
    return await tx.execute("delete_member", workspace, subject) == 1

"""Workflows shared one by one with a subject that has no role, or a lesser one, in their workspace."""

from msgspec import Struct

from ropewalk.store.access import Reader, Transaction


class Share(Struct, frozen=True):
    """A subject's role for one workflow."""

    workspace: str
    workflow: str
    subject: str
    role: str
    created_at: int
    created_by: str


async def put(tx: Transaction, share: Share) -> None:
    """Shared in this role from now on."""
    about = (share.workspace, share.workflow, share.subject)
    await tx.execute("put_acl", *about, share.role, share.created_at, share.created_by)


async def get(reader: Reader, workspace: str, workflow: str, subject: str) -> Share | None:
    """The subject's role for a workflow."""
    row = await reader.fetch_one("get_acl", workspace, workflow, subject)
    return None if row is None else Share(*row)


async def listed(reader: Reader, workspace: str, workflow: str, *, after: str = "", limit: int = 50) -> list[Share]:
    """With whom a workflow is shared, by subject after a cursor."""
    return [Share(*row) for row in await reader.fetch("list_acl", workspace, workflow, after, limit)]


async def shared_with(
    reader: Reader, subject: str, workspace: str, *, after: str = "", limit: int = 200
) -> list[Share]:
    """The workflows of a workspace that are shared with the subject, by id after a cursor."""
    return [Share(*row) for row in await reader.fetch("shared_with", subject, workspace, after, limit)]


async def shared_workspaces(reader: Reader, subject: str, *, after: str = "", limit: int = 50) -> list[str]:
    """The workspaces where something is shared with the subject, after a cursor."""
    return [row[0] for row in await reader.fetch("shared_workspaces", subject, after, limit)]


async def remove(tx: Transaction, workspace: str, workflow: str, subject: str) -> bool:
    """Shared no more; whether it was."""
    return await tx.execute("delete_acl", workspace, workflow, subject) == 1

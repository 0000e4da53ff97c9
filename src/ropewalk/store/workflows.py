"""Workflows: named definitions whose every save is the next version, for ever."""

from typing import Final

from msgspec import Struct

from ropewalk.core.errors import NotFound
from ropewalk.store.access import Reader, Transaction

_NEWEST: Final = 2**62


class Draft(Struct, frozen=True):
    """A checked document to be saved under its name; `hash` is that of its canonical content."""

    workspace: str
    name: str
    document: str
    hash: str
    by: str


class Workflow(Struct, frozen=True):
    """A named definition; `published` is the version that starts take."""

    id: str
    workspace: str
    name: str
    published: int | None
    archived_at: int | None
    created_at: int


class Version(Struct, frozen=True):
    """One version, as it was saved."""

    workflow: str
    version: int
    hash: str
    document: str
    created_at: int
    created_by: str


class VersionSummary(Struct, frozen=True):
    """One version without its document."""

    workflow: str
    version: int
    hash: str
    created_at: int
    created_by: str


class Saved(Struct, frozen=True):
    """Where a draft went; `is_new` is false if the latest version says the same already."""

    workflow: str
    version: int
    is_new: bool


async def save(tx: Transaction, draft: Draft, new_id: str, now: int) -> Saved:
    """Makes the draft the next version of its name; `new_id` is used if the name is new. An archived one comes back."""
    await tx.execute("insert_workflow", new_id, draft.workspace, draft.name, now)
    row = await tx.fetch_one("lock_workflow", draft.workspace, draft.name)
    assert row is not None, "it was inserted, or there"
    workflow: str = row[0]
    await tx.execute("revive_workflow", workflow)
    latest = await tx.fetch_one("latest_version", workflow)
    if latest is not None and latest[1] == draft.hash:
        return Saved(workflow, latest[0], is_new=False)
    version = 1 if latest is None else latest[0] + 1
    await tx.execute("insert_version", workflow, version, draft.hash, draft.document, now, draft.by)
    return Saved(workflow, version, is_new=True)


async def publish(tx: Transaction, workflow: str, version: int) -> None:
    """Starts that name no version take this one from now on."""
    if not await tx.execute("publish_version", version, workflow):
        raise NotFound(f"workflow {workflow} has no version {version}, or is archived")


async def archive(tx: Transaction, workspace: str, workflow: str, now: int) -> bool:
    """No new starts; what is queued still runs. Whether it was this call that did it."""
    return await tx.execute("archive_workflow", now, workspace, workflow) == 1


async def get(reader: Reader, workspace: str, workflow: str) -> Workflow | None:
    """The workflow of this id, if the workspace has it."""
    row = await reader.fetch_one("get_workflow", workspace, workflow)
    return None if row is None else Workflow(*row)


async def get_by_name(reader: Reader, workspace: str, name: str) -> Workflow | None:
    """The workflow of this name, if the workspace has it."""
    row = await reader.fetch_one("get_workflow_by_name", workspace, name)
    return None if row is None else Workflow(*row)


async def listed(
    reader: Reader, workspace: str, *, after: str = "", limit: int = 50, with_archived: bool = False
) -> list[Workflow]:
    """The workflows of a workspace by name, after a cursor."""
    rows = await reader.fetch("list_workflows", workspace, after, int(with_archived), limit)
    return [Workflow(*row) for row in rows]


async def get_version(reader: Reader, workflow: str, version: int) -> Version | None:
    """One version with its document, if there is one of this number."""
    row = await reader.fetch_one("get_version", workflow, version)
    return None if row is None else Version(*row)


async def versions(reader: Reader, workflow: str, *, before: int = _NEWEST, limit: int = 50) -> list[VersionSummary]:
    """The versions of a workflow, newest first, before a cursor."""
    return [VersionSummary(*row) for row in await reader.fetch("list_versions", workflow, before, limit)]

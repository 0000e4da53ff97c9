"""Workflows: named definitions whose every save is the next version, for ever."""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.core.errors import Conflict, NotFound
from ropewalk.store.access import Reader, Transaction, json_list

_NEWEST: Final = 2**62


class Outdated(Conflict):
    """The newest version is not the one the caller knows of."""


class Draft(Struct, frozen=True):
    """A checked document to be saved under its name; `hash` is that of its canonical content.

    `bounded_by` is who saves it, if that actor reaches less than the whole workspace.
    """

    workspace: str
    name: str
    document: str
    hash: str
    by: str
    bounded_by: str | None = None


class Workflow(Struct, frozen=True):
    """A named definition; `published` is the version that starts take."""

    id: str
    workspace: str
    name: str
    published: int | None
    archived_at: int | None
    created_at: int


class Listed(Workflow, frozen=True):
    """A workflow with the number of its newest version."""

    latest: int


class Version(Struct, frozen=True):
    """One version, as it was saved."""

    workflow: str
    version: int
    hash: str
    document: str
    created_at: int
    created_by: str
    bounded_by: str | None = None


class VersionSummary(Struct, frozen=True):
    """One version without its document."""

    workflow: str
    version: int
    hash: str
    created_at: int
    created_by: str
    bounded_by: str | None = None


class Saved(Struct, frozen=True):
    """Where a draft went; `is_new` is false if the latest version says the same already."""

    workflow: str
    version: int
    is_new: bool


async def save(tx: Transaction, draft: Draft, new_id: str, now: int) -> Saved:
    """Makes the draft the next version of its name; `new_id` is used if the name is new. An archived one comes back."""
    await tx.execute("insert_workflow", new_id, draft.workspace, draft.name, now)
    workflow = await lock(tx, draft.workspace, draft.name)
    return await _next(tx, draft, workflow.id, await latest(tx, workflow.id), now)


async def lock(tx: Transaction, workspace: str, name: str) -> Workflow:
    """The workflow of this name, kept from others until the end of the transaction."""
    row = await tx.fetch_one("lock_workflow", workspace, name)
    if row is None:
        raise NotFound(f"there is no workflow {name!r}")
    return Workflow(*row)


async def create(tx: Transaction, draft: Draft, new_id: str, now: int) -> Saved:
    """Makes the draft version 1 of a new name; Conflict if the name is taken, also by an archived workflow."""
    if not await tx.execute("insert_workflow", new_id, draft.workspace, draft.name, now):
        raise Conflict(f"there is a workflow {draft.name!r} already: save this as its next version")
    return await _next(tx, draft, new_id, None, now)


async def revise(tx: Transaction, draft: Draft, expected: Collection[str] | None, now: int) -> Saved:
    """Makes the draft the next version of its name if the newest is one of these; None: whichever it is.

    Outdated if it is another. What says the same as the newest is that version, with any expectation: the request may
    have come before, and its answer been lost.
    """
    workflow = await lock(tx, draft.workspace, draft.name)
    newest = await latest(tx, workflow.id)
    if newest is not None and draft.hash != newest.hash and expected is not None and newest.hash not in expected:
        raise Outdated(f"version {newest.version} came meanwhile: read it, and save on top of that")
    return await _next(tx, draft, workflow.id, newest, now)


async def _next(tx: Transaction, draft: Draft, workflow: str, newest: VersionSummary | None, now: int) -> Saved:
    """What says the same as the newest is that version, unless that one reaches less than this draft."""
    await tx.execute("revive_workflow", workflow)
    if newest is not None and newest.hash == draft.hash and newest.bounded_by in (None, draft.bounded_by):
        return Saved(workflow, newest.version, is_new=False)
    version = 1 if newest is None else newest.version + 1
    about = (draft.hash, draft.document, now, draft.by, draft.bounded_by)
    await tx.execute("insert_version", workflow, version, *about)
    return Saved(workflow, version, is_new=True)


async def latest(reader: Reader, workflow: str) -> VersionSummary | None:
    """The newest version of a workflow."""
    found = await versions(reader, workflow, limit=1)
    return found[0] if found else None


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


async def find(reader: Reader, workspace: str, named: str) -> Workflow | None:
    """The workflow of this id, else of this name, if the workspace has it."""
    row = await reader.fetch_one("find_workflow", workspace, named)
    return None if row is None else Workflow(*row)


async def listed(
    reader: Reader, workspace: str, *, after: str = "", limit: int = 50, with_archived: bool = False, prefix: str = ""
) -> list[Listed]:
    """The workflows of a workspace by name, after a cursor; those whose names begin like this."""
    rows = await reader.fetch("list_workflows", workspace, after, int(with_archived), prefix, limit)
    return [Listed(*row) for row in rows]


async def get_version(reader: Reader, workflow: str, version: int) -> Version | None:
    """One version with its document, if there is one of this number."""
    row = await reader.fetch_one("get_version", workflow, version)
    return None if row is None else Version(*row)


async def versions_of(reader: Reader, executions: Sequence[str]) -> list[Version]:
    """The versions that the executions are of, each as often as it is named."""
    return [Version(*row) for row in await reader.fetch("versions_of", json_list(executions))]


async def versions(reader: Reader, workflow: str, *, before: int = _NEWEST, limit: int = 50) -> list[VersionSummary]:
    """The versions of a workflow, newest first, before a cursor."""
    return [VersionSummary(*row) for row in await reader.fetch("list_versions", workflow, before, limit)]

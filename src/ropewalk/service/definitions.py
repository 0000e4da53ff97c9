"""Definitions as callers keep them: saved, published, archived, with an audit row each; and what a start takes."""

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Any, Final

import msgspec
import uuid_utils

from ropewalk.core.canonical import JSON
from ropewalk.core.definition import Definition
from ropewalk.core.definition.difference import Difference, difference
from ropewalk.core.errors import InvalidDefinition, InvalidTransition, NotFound, Problem
from ropewalk.core.instant import moment, rfc3339
from ropewalk.engines.process import in_short_pauses
from ropewalk.service.credential_checks import MayUse, require_credentials
from ropewalk.service.reach import require_reach
from ropewalk.service.reading.recorded import offload
from ropewalk.service.triggers.declaring import declare, withdraw
from ropewalk.service.verbs import Service
from ropewalk.store import audit, workflows
from ropewalk.store.access import Transaction
from ropewalk.store.rows import AuditEntry
from ropewalk.store.workflows import Draft, Saved, Workflow

CREATE: Final = "create-workflow"
SAVE: Final = "save-version"
PUBLISH: Final = "publish"
ARCHIVE: Final = "archive"


async def check(service: Service, document: JSON) -> Definition:
    """The definition a document describes. In a thread: a large one takes a while, and other requests are waiting."""
    return await asyncio.to_thread(in_short_pauses, partial(service.check, document))


# Saving


async def create(
    service: Service, document: JSON, by: str, *, is_published: bool, may_use: MayUse | None = None
) -> Saved:
    """Keep a definition under a new name; Conflict if that is taken.

    `may_use` tells which credentials the actor that saves it may use; None: any of the workspace.
    """
    draft = await _draft(service, document, by, may_use)
    async with service.store.transaction() as tx:
        saved = await workflows.create(tx, draft, str(uuid_utils.uuid7()), service.store.now())
        held = await workflows.lock(tx, draft.workspace, draft.name)
        await _note(tx, service, by, CREATE, held, None, saved.version)
        if is_published:
            await _publish(tx, service, held, saved.version, by)
    return saved


async def revise(service: Service, workflow: Workflow, document: JSON, by: str, *, expected: Collection[str] | None,
                 is_published: bool, is_bounded: bool = False, may_use: MayUse | None = None) -> Saved:  # fmt: skip
    """Keep the next version of a workflow, on top of one with an expected hash; Outdated if the newest has another.

    `is_bounded`: it may reach only what is shared with the actor that saves it, now and whenever it is executed.
    """
    draft = await (_bounded_draft if is_bounded else _draft)(service, document, by, may_use)
    if draft.name != workflow.name:
        raise InvalidDefinition([Problem(("name",), f"must stay {workflow.name!r}; another name is another workflow")])
    async with service.store.transaction() as tx:
        held = await workflows.lock(tx, draft.workspace, draft.name)
        saved = await workflows.revise(tx, draft, expected, service.store.now())
        if saved.is_new or held.archived_at is not None:
            await _note(tx, service, by, SAVE, held, saved.version - saved.is_new, saved.version)
        if is_published:
            await _publish(tx, service, held, saved.version, by)
    service.forget(draft.name)
    return saved


async def _draft(service: Service, document: JSON, by: str, may_use: MayUse | None) -> Draft:
    """What is to be stored. In a thread, as checking is."""
    definition = await check(service, document)
    await require_credentials(service.store, service.workspace, definition, service.types, may_use)
    return await asyncio.to_thread(in_short_pauses, partial(service.draft, definition, by))


async def _bounded_draft(service: Service, document: JSON, by: str, may_use: MayUse | None) -> Draft:
    definition = await check(service, document)
    await require_reach(service, definition, by)
    await require_credentials(service.store, service.workspace, definition, service.types, may_use)
    return await asyncio.to_thread(in_short_pauses, partial(service.draft, definition, by, by))


# Publishing and archiving


async def publish(service: Service, workflow: Workflow, version: int, by: str) -> bool:
    """Starts that name no version take this one; whether they did not before."""
    async with service.store.transaction() as tx:
        held = await workflows.lock(tx, service.workspace, workflow.name)
        if held.archived_at is not None:
            raise InvalidTransition(f"workflow {workflow.name!r} is archived: save it again to publish it")
        changed = await _publish(tx, service, held, version, by)
    service.forget(workflow.name)
    return changed


async def _publish(tx: Transaction, service: Service, held: Workflow, version: int, by: str) -> bool:
    if held.published == version:
        return False
    await workflows.publish(tx, held.id, version)
    await declare(tx, held, version, by, service.store.now())
    await _note(tx, service, by, PUBLISH, held, held.published, version)
    return True


async def archive(service: Service, workflow: Workflow, by: str) -> bool:
    """No new starts, what is queued still runs; whether it was this call that did it."""
    async with service.store.transaction() as tx:
        held = await workflows.lock(tx, service.workspace, workflow.name)
        changed = await workflows.archive(tx, service.workspace, held.id, service.store.now())
        if changed:
            await withdraw(tx, held.id, service.store.now())
            await _note(tx, service, by, ARCHIVE, held, held.published, None)
    service.forget(workflow.name)
    return changed


async def _note(tx: Transaction, service: Service, by: str, verb: str, held: Workflow, before: int | None,
                after: int | None) -> None:  # fmt: skip
    about = (service.workspace, by, verb, held.id)
    was, is_now = _number(before), _number(after)
    await audit.append(tx, AuditEntry(str(uuid_utils.uuid7()), service.store.now(), *about, was, is_now, held.name))


def _number(version: int | None) -> str | None:
    return None if version is None else str(version)


# Reading


async def version_of(service: Service, workflow: str, version: int | None) -> workflows.Version:
    """This version with its document; None: the newest."""
    number = version
    if number is None:
        newest = await workflows.latest(service.store, workflow)
        number = 0 if newest is None else newest.version
    found = await workflows.get_version(service.store, workflow, number)
    if found is None:
        raise NotFound(f"workflow {workflow} has no version {number}")
    return found


def summary_of(workflow: Workflow, latest: int) -> dict[str, Any]:
    """A workflow as people read it, without a document."""
    return {
        "id": workflow.id,
        "name": workflow.name,
        "published": workflow.published,
        "latest": latest,
        "archivedAt": moment(workflow.archived_at),
        "createdAt": rfc3339(workflow.created_at),
    }


def version_summary_of(version: workflows.VersionSummary | workflows.Version) -> dict[str, Any]:
    """A version as people read it, without its document."""
    return {
        "version": version.version,
        "hash": version.hash,
        "createdAt": rfc3339(version.created_at),
        "createdBy": version.created_by,
        "reach": "workspace" if version.bounded_by is None else "shares",
    }


def document_of(version: workflows.Version) -> dict[str, Any]:
    """The document as its author wrote it, but for the order of keys."""
    return msgspec.json.decode(version.document, type=dict[str, Any])


async def compare(service: Service, workflow: str, before: int, after: int) -> Difference:
    """What the one version changes in the other."""
    old, new = [await version_of(service, workflow, number) for number in (before, after)]
    return await offload(lambda: difference(document_of(old), document_of(new)), is_large=True)

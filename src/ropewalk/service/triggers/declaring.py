"""The triggers that a definition declares: they come with the version that is published, and go with the workflow."""

import secrets
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import uuid_utils

from ropewalk.core.definition.triggers import kind_of, names_of
from ropewalk.core.state import TriggerType
from ropewalk.store import triggers, workflows
from ropewalk.store.access import Transaction
from ropewalk.store.triggers import NewTrigger, Trigger
from ropewalk.store.workflows import Workflow

TOKEN_BYTES: Final = 16


async def declare(tx: Transaction, workflow: Workflow, version: int, by: str, now: int) -> None:
    """The triggers of this version are those that fire from now on.

    One of the same name goes on where it was if it says the same, and keeps its switch and its address in any case.
    """
    found = await workflows.get_version(tx, workflow.id, version)
    document = {} if found is None else msgspec.json.decode(found.document, type=dict[str, Any])
    declared: list[dict[str, Any]] = document.get("triggers", [])
    known = {each.name: each for each in await triggers.of_workflow(tx, workflow.id)}
    if not declared and not known:
        return
    bounded_by = None if found is None else found.bounded_by
    for name, settings in zip(names_of(declared), declared, strict=True):
        before = known.pop(name, None)
        if before is None:
            await _insert(tx, workflow, name, settings, version, by, bounded_by, now)
        else:
            await _change(tx, before, settings, version, bounded_by, now)
    for gone in known.values():
        if gone.is_declared and gone.removed_at is None:
            await tx.execute("remove_trigger", now, gone.id)


async def withdraw(tx: Transaction, workflow: str, now: int) -> None:
    """The workflow starts nothing by itself any more: it is archived."""
    for each in await triggers.of_workflow(tx, workflow):
        if each.removed_at is None:
            await tx.execute("remove_trigger", now, each.id)


def new_trigger(workflow: Workflow, name: str, settings: Mapping[str, Any], by: str, now: int, *,
                version: int | None = None, bounded_by: str | None = None) -> NewTrigger:  # fmt: skip
    """The row of a trigger that comes to be; with a version it is declared there."""
    kind, is_enabled = kind_of(settings), settings.get("enabled", True)
    return NewTrigger(
        id=str(uuid_utils.uuid7()),
        workspace=workflow.workspace,
        workflow=workflow.id,
        name=name,
        kind=kind,
        version=version,
        settings=written(settings),
        is_declared=int(version is not None),
        is_enabled=int(is_enabled),
        bounded_by=bounded_by,
        created_at=now,
        created_by=by,
        changed_at=now,
        next_at=first_look(kind, is_enabled, now),
        token=new_token() if kind is TriggerType.WEBHOOK else None,
    )


def first_look(kind: str, is_enabled: bool, now: int) -> int | None:
    """When a server has to look at a trigger that is new, or switched on."""
    return now if is_enabled and kind == TriggerType.CRON else None


def written(settings: Mapping[str, Any]) -> str:
    """The settings as they are kept."""
    return msgspec.json.encode(dict(settings)).decode()


def new_token() -> str:
    """The part of a webhook's address that cannot be guessed."""
    return secrets.token_urlsafe(TOKEN_BYTES)


async def _insert(tx: Transaction, workflow: Workflow, name: str, settings: Mapping[str, Any], version: int, by: str,
                  bounded_by: str | None, now: int) -> None:  # fmt: skip
    row = new_trigger(workflow, name, settings, by, now, version=version, bounded_by=bounded_by)
    await tx.execute("insert_trigger", *row)


async def _change(tx: Transaction, before: Trigger, settings: Mapping[str, Any], version: int, bounded_by: str | None,
                  now: int) -> None:  # fmt: skip
    is_same = before.settings == written(settings) and before.removed_at is None and before.is_declared
    if is_same and before.bounded_by == bounded_by:
        await tx.execute("set_trigger_version", version, before.id)
        return
    kind, is_enabled = kind_of(settings), _switch(before, settings)
    token = before.token or (new_token() if kind is TriggerType.WEBHOOK else None)
    if is_enabled != bool(before.is_enabled):
        await tx.execute("switch_trigger", int(is_enabled), None, None, before.id)
    next_at = first_look(kind, is_enabled, now)
    about = (kind, version, written(settings), 1, now, next_at, token, bounded_by, before.id)
    await tx.execute("change_trigger", *about)


def _switch(before: Trigger, settings: Mapping[str, Any]) -> bool:
    """Whether it fires: as its author says anew, else as it was switched last."""
    said = settings.get("enabled", True)
    was_said = msgspec.json.decode(before.settings, type=dict[str, Any]).get("enabled", True)
    return bool(said) if said != was_said else bool(before.is_enabled)

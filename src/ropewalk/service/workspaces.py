"""Workspaces as operators keep them: made and changed, each time with an audit row."""

import uuid_utils
from msgspec import UNSET, UnsetType

from ropewalk.core.errors import NotFound
from ropewalk.engines.native.accepting import accepted
from ropewalk.service.verbs import Service
from ropewalk.store import audit, workspaces
from ropewalk.store.access import Transaction
from ropewalk.store.rows import AuditEntry
from ropewalk.store.workspaces import Plan, Workspace

Slots = int | None | UnsetType
"""A limit, None for no limit, UNSET for the plan's."""


async def create(service: Service, workspace: str, plan: Plan, slots: Slots, by: str) -> Workspace:
    """A new workspace; Conflict if there is one of this id."""
    async with service.store.transaction() as tx:
        await workspaces.create(tx, workspace, plan, service.store.now())
        if slots is not UNSET:
            await workspaces.override_slots(tx, workspace, slots)
        return await _noted(tx, service, "create-workspace", None, workspace, by)


async def change(service: Service, workspace: str, plan: Plan | None, slots: Slots, by: str) -> Workspace:
    """Another plan with its slots, or another limit, or both; what waits for capacity is looked at again."""
    async with service.store.transaction() as tx:
        before = await _required(tx, workspace)
        if plan is not None:
            await workspaces.set_plan(tx, workspace, plan)
        if slots is not UNSET:
            await workspaces.override_slots(tx, workspace, slots)
        after = await _noted(tx, service, "change-workspace", before, workspace, by)
    accepted(service.engine)
    return after


async def _required(tx: Transaction, workspace: str) -> Workspace:
    found = await workspaces.get(tx, workspace)
    if found is None:
        raise NotFound(f"there is no workspace {workspace!r}")
    return found


async def _noted(tx: Transaction, service: Service, verb: str, before: Workspace | None, workspace: str,
                 by: str) -> Workspace:  # fmt: skip
    after = await _required(tx, workspace)
    was = None if before is None else _told(before)
    about = (service.store.now(), workspace, by, verb, workspace)
    await audit.append(tx, AuditEntry(str(uuid_utils.uuid7()), *about, was, _told(after), None))
    return after


def _told(workspace: Workspace) -> str:
    return f"{workspace.plan}, {'no limit' if workspace.slots is None else f'{workspace.slots} slots'}"

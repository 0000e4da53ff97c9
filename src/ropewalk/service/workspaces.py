"""Workspaces as operators keep them: made and changed, each time with an audit row."""

from collections.abc import Mapping
from typing import Final

import uuid_utils
from msgspec import UNSET, UnsetType

from ropewalk.core.call_settings import written
from ropewalk.core.errors import NotFound
from ropewalk.core.rate_limit import RateLimit
from ropewalk.engines.base import RATE_LIMITS
from ropewalk.service.verbs import Service
from ropewalk.store import audit, rate_limits, workspaces
from ropewalk.store.access import Transaction
from ropewalk.store.rows import AuditEntry
from ropewalk.store.workspaces import Plan, Workspace

MOST_NOTED: Final = 20
"""So many rate limits at most are named in the audit log."""
Slots = int | None | UnsetType
"""A limit, None for no limit, UNSET for the plan's."""
Limits = Mapping[str, RateLimit] | None
"""Rate limits by name; None leaves them as they are."""


async def create(service: Service, workspace: str, plan: Plan, slots: Slots, by: str, limits: Limits = None
                 ) -> Workspace:  # fmt: skip
    """A new workspace; Conflict if there is one of this id."""
    async with service.store.transaction() as tx:
        await workspaces.create(tx, workspace, plan, service.store.now())
        if slots is not UNSET:
            await workspaces.override_slots(tx, workspace, slots)
        if limits:
            await rate_limits.put(tx, workspace, limits)
        made = await _noted(tx, service, "create-workspace", None, workspace, by)
    if limits:
        await _limits_changed(service)
    return made


async def change(service: Service, workspace: str, plan: Plan | None, slots: Slots, by: str, limits: Limits = None
                 ) -> Workspace:  # fmt: skip
    """Another plan with its slots, another limit, other rate limits; what waits for capacity is looked at again."""
    async with service.store.transaction() as tx:
        before = await _required(tx, workspace)
        if plan is not None:
            await workspaces.set_plan(tx, workspace, plan)
        if slots is not UNSET:
            await workspaces.override_slots(tx, workspace, slots)
        if limits is not None:
            await rate_limits.put(tx, workspace, limits)
        after = await _noted(tx, service, "change-workspace", before, workspace, by)
    service.engine.accepted()
    if limits is not None:
        await _limits_changed(service)
    return after


async def _limits_changed(service: Service) -> None:
    """This worker knows the rate limits at once, the other workers soon."""
    await service.engine.rate_limits.look_again()
    service.store.hint(RATE_LIMITS)


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
    slots = "no limit" if workspace.slots is None else f"{workspace.slots} slots"
    limits = written(rate_limits.read(workspace.rate_limits))
    rates = [f"{name} {each['limit']} per {each['per']}" for name, each in sorted(limits.items())[:MOST_NOTED]]
    return ", ".join([f"{workspace.plan}, {slots}", *rates])

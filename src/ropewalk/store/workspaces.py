"""Workspaces: tenants, and how many slots each may use."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from ropewalk.core.errors import Conflict, NotFound
from ropewalk.store.access import Reader, Transaction

DEFAULT: Final = "default"


class Plan(StrEnum):
    """What a workspace pays for."""

    FREE = "FREE"
    PRO = "PRO"
    ENTERPRISE = "ENTERPRISE"

    @property
    def slots(self) -> int:
        return _SLOTS[self]


_SLOTS: Final = {Plan.FREE: 1, Plan.PRO: 5, Plan.ENTERPRISE: 20}


class Workspace(Struct, frozen=True):
    """A tenant; `slots` is the limit in force, None for none. `rate_limits` are its own by name, as JSON."""

    id: str
    plan: str
    slots: int | None
    created_at: int
    rate_limits: str | None = None


async def ensure_default(tx: Transaction, now: int) -> None:
    """The workspace of the embedded mode exists; it has no limit."""
    await tx.execute("ensure_workspace", DEFAULT, Plan.ENTERPRISE, None, now)


async def ensure(tx: Transaction, workspace: str, plan: Plan, now: int) -> None:
    """The workspace exists; a new one has its plan's slots, one that was there stays as it is."""
    await tx.execute("ensure_workspace", workspace, plan, plan.slots, now)


async def create(tx: Transaction, workspace: str, plan: Plan, now: int) -> None:
    """A new workspace with its plan's slots; Conflict if there is one of this id."""
    if not await tx.execute("ensure_workspace", workspace, plan, plan.slots, now):
        raise Conflict(f"there is a workspace {workspace!r} already")


async def set_plan(tx: Transaction, workspace: str, plan: Plan) -> None:
    """Another plan and its slots; an override ends."""
    _require(await tx.execute("set_plan", plan, plan.slots, workspace), workspace)


async def override_slots(tx: Transaction, workspace: str, slots: int | None) -> None:
    """A limit that holds instead of the plan's; None lifts it."""
    _require(await tx.execute("set_slots", slots, workspace), workspace)


def _require(touched: int, workspace: str) -> None:
    if not touched:
        raise NotFound(f"there is no workspace {workspace!r}")


async def get(reader: Reader, workspace: str) -> Workspace | None:
    """The workspace of this id, if there is one."""
    row = await reader.fetch_one("get_workspace", workspace)
    return None if row is None else Workspace(*row)


async def listed(reader: Reader, *, after: str = "", limit: int = 50) -> list[Workspace]:
    """Workspaces by id, after a cursor."""
    return [Workspace(*row) for row in await reader.fetch("list_workspaces", after, limit)]


async def of_subject(
    reader: Reader, subject: str, home: str | None, *, after: str = "", limit: int = 50
) -> list[Workspace]:
    """The workspaces the subject has a part in, its home among them, by id after a cursor."""
    return [Workspace(*row) for row in await reader.fetch("workspaces_of", subject, home, after, limit)]

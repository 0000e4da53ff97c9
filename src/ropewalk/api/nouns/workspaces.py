"""Workspaces: tenants, their plans, and how many executions each may have under way."""

from typing import Annotated, Any

from fastapi import Path
from msgspec import UNSET
from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.doors.authorization import authorize_in_workspace
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, Cursor, Id, Limit, Page, exemplified, page
from ropewalk.core.call_settings import MOST_HOSTS, MOST_LIMITS, rate_limits, written
from ropewalk.core.errors import NotFound
from ropewalk.core.instant import rfc3339
from ropewalk.service import workspaces as service
from ropewalk.store import workspaces
from ropewalk.store.rate_limits import read as limits_of
from ropewalk.store.workspaces import Plan

routes = Routes("/workspaces", "Workspaces")

MOST_SLOTS = 1_000_000
_SEES_ALL = frozenset({Right.READ, Right.OPERATE})
WorkspaceId = Annotated[str, Path(alias="workspaceId", max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
PlanName = Annotated[Plan, Field(strict=False)]
Slots = Annotated[int | None, Field(ge=1, le=MOST_SLOTS, description="Overrides the plan's; null lifts the limit.")]


class RateLimitBody(Body):
    """At most `limit` calls may begin in any `per`, of nodes that name it and to hosts like these."""

    model_config = exemplified(Body, {"limit": 10, "per": "1s", "hosts": ["*.shop.example"]})

    limit: int
    per: str | float = Field(description="Like 1s or 1m, or a number of seconds.")
    hosts: list[str] | None = Field(None, max_length=MOST_HOSTS, description="Calls to these keep it too.")


Limits = Annotated[
    dict[str, RateLimitBody] | None,
    Field(
        max_length=MOST_LIMITS, description="Its rate limits by name, in place of those it has; nodes may name them."
    ),
]


class RateLimit(Answer):
    """At most `limit` calls begin in any `per`, of nodes that name it and to hosts like these."""

    limit: int
    per: str
    hosts: list[str] | None = None


class Workspace(Answer):
    """A tenant; `slots` is the limit in force, null if there is none."""

    model_config = exemplified(Answer, {
        "id": "acme", "plan": "PRO", "slots": 5, "createdAt": "2026-11-16T08:00:00Z",
        "rateLimits": {"shop": {"limit": 10, "per": "1s", "hosts": ["*.shop.example"]}},
    })  # fmt: skip

    id: str
    plan: Plan
    slots: int | None
    created_at: str
    rate_limits: dict[str, RateLimit]


class CreateWorkspaceBody(Body):
    """A new tenant; without `slots` it has those of its plan."""

    model_config = exemplified(Body, {"id": "acme", "plan": "PRO"})

    id: Id
    plan: PlanName = Plan.FREE
    slots: Slots = None
    rate_limits: Limits = None


class ChangeWorkspaceBody(Body):
    """What is to be different; another plan brings its own slots unless they are given too."""

    model_config = exemplified(
        Body, {"plan": "ENTERPRISE"}, {"slots": 50}, {"rateLimits": {"shop": {"limit": 10, "per": "1s"}}}
    )

    plan: PlanName | None = None
    slots: Slots = None
    rate_limits: Limits = None


@routes.get("", Right.COME_IN, response_model=Page[Workspace])
async def list_workspaces(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> dict[str, Any]:
    """The workspaces the caller has a part in; every one for a root key that may read or operate."""
    listing = call.listing("workspaces", call.actor.subject)
    after = "" if cursor is None else call.backend.cursors.read(listing, cursor)
    store, actor = call.backend.store, call.actor
    if actor.is_root and actor.scoped(_SEES_ALL):
        found = await workspaces.listed(store, after=after, limit=limit)
    else:
        found = await workspaces.of_subject(store, actor.subject, actor.home, after=after, limit=limit)
    place = found[-1].id if found else None
    return page(call.backend.cursors, listing, [_shown(each) for each in found], limit, place)


@routes.get("/{workspaceId}", Right.READ, response_model=Workspace, anywhere=True)
async def get_workspace(call: Caller, workspace_id: WorkspaceId) -> dict[str, Any]:
    """One workspace."""
    await authorize_in_workspace(call.backend, call.actor, workspace_id, call.right)
    found = await workspaces.get(call.backend.store, workspace_id)
    if found is None:
        raise NotFound(f"there is no workspace {workspace_id!r}")
    return _shown(found)


@routes.post("", Right.OPERATE, status_code=201, response_model=Workspace, problems=(409,))
async def create_workspace(call: Caller, body: CreateWorkspaceBody) -> dict[str, Any]:
    """Make a workspace."""
    made = await service.create(call.service, body.id, body.plan, _slots(body), call.actor.subject, _limits(body))
    return _shown(made)


@routes.patch("/{workspaceId}", Right.OPERATE, response_model=Workspace)
async def change_workspace(call: Caller, workspace_id: WorkspaceId, body: ChangeWorkspaceBody) -> dict[str, Any]:
    """Change a workspace's plan, its limit or its rate limits; at once for what waits for capacity."""
    about = (body.plan, _slots(body), call.actor.subject, _limits(body))
    return _shown(await service.change(call.service, workspace_id, *about))


def _slots(body: CreateWorkspaceBody | ChangeWorkspaceBody) -> service.Slots:
    # Null lifts the limit, so it has to be told from a field that is not there.
    return body.slots if "slots" in body.model_fields_set else UNSET


def _limits(body: CreateWorkspaceBody | ChangeWorkspaceBody) -> service.Limits:
    if body.rate_limits is None:
        return None
    given = {name: each.model_dump(exclude_none=True) for name, each in body.rate_limits.items()}
    return rate_limits(given, ("rateLimits",))


def _shown(workspace: workspaces.Workspace) -> dict[str, Any]:
    return {
        "id": workspace.id,
        "plan": workspace.plan,
        "slots": workspace.slots,
        "createdAt": rfc3339(workspace.created_at),
        "rateLimits": written(limits_of(workspace.rate_limits)),
    }

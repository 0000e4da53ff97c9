"""Workspaces and the slots they may use."""

import pytest

from ropewalk.core.errors import NotFound
from ropewalk.store import workspaces
from ropewalk.store.access import Store
from ropewalk.store.workspaces import Plan, Workspace
from tests.store.samples import NOON


@pytest.mark.parametrize(("plan", "slots"), [(Plan.FREE, 1), (Plan.PRO, 5), (Plan.ENTERPRISE, 20)])
async def test_a_new_workspace_has_the_slots_of_its_plan(store: Store, plan: Plan, slots: int):
    async with store.transaction() as tx:
        await workspaces.ensure(tx, "acme", plan, NOON)

    assert await workspaces.get(store, "acme") == Workspace("acme", plan, slots, NOON)


async def test_the_default_workspace_has_no_limit(store: Store):
    found = await workspaces.get(store, "default")

    assert found is not None
    assert found.slots is None


async def test_a_workspace_that_is_there_stays_as_it_is(store: Store):
    async with store.transaction() as tx:
        await workspaces.ensure(tx, "acme", Plan.PRO, NOON)
        await workspaces.ensure(tx, "acme", Plan.FREE, NOON + 1)

    assert await workspaces.get(store, "acme") == Workspace("acme", "PRO", 5, NOON)


async def test_an_override_holds_until_the_plan_is_set_again(store: Store):
    async with store.transaction() as tx:
        await workspaces.ensure(tx, "acme", Plan.FREE, NOON)
        await workspaces.override_slots(tx, "acme", 3)
        overridden = await workspaces.get(tx, "acme")
        await workspaces.set_plan(tx, "acme", Plan.PRO)
        planned = await workspaces.get(tx, "acme")

    assert [found and (found.plan, found.slots) for found in (overridden, planned)] == [("FREE", 3), ("PRO", 5)]


async def test_a_workspace_that_is_not_there_has_no_plan_to_change(store: Store):
    async with store.transaction() as tx:
        with pytest.raises(NotFound, match="nowhere"):
            await workspaces.set_plan(tx, "nowhere", Plan.PRO)


async def test_workspaces_are_listed_by_id_after_a_cursor(store: Store):
    async with store.transaction() as tx:
        for name in ("c", "a", "b"):
            await workspaces.ensure(tx, name, Plan.FREE, NOON)

    assert [found.id for found in await workspaces.listed(store, after="a", limit=2)] == ["b", "c"]

"""Two servers on one PostgreSQL: whom one lets in, the other does; whom one lets go is gone from the other too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from ropewalk.access.rights import Role
from tests.api.asking import ask
from tests.api.house import House, opened

WORKFLOW = {"ropewalk": 1, "name": "one", "nodes": []}


@pytest.fixture
async def servers(database: str) -> AsyncIterator[tuple[House, House]]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(opened(database)), await stack.enter_async_context(opened(database))


def later(house: House) -> None:
    """As long after as anything is believed."""
    house.backend.forget()


async def test_a_key_made_by_one_opens_at_the_other_until_it_is_revoked(servers: tuple[House, House]):
    here, there = servers
    made = (await here.ask("POST", "/keys", json={"name": "x", "role": "viewer", "scopes": ["read"]})).json()
    opening = await ask(here.app, "POST", "/api/v1/session", [], {"token": made["token"]})
    cookie = [("Cookie", opening.headers["set-cookie"].partition(";")[0])]
    before = (
        (await there.ask("GET", "/me", made["token"])).status_code,
        (await ask(there.app, "GET", "/api/v1/me", cookie)).status,
    )

    revoked = await here.ask("DELETE", f"/keys/{made['id']}")
    later(there)
    after = (
        (await there.ask("GET", "/me", made["token"])).status_code,
        (await ask(there.app, "GET", "/api/v1/me", cookie)).status,
    )

    assert (before, revoked.status_code, after) == ((200, 200), 200, (401, 401))


async def test_members_and_shares_hold_at_both(servers: tuple[House, House]):
    here, there = servers
    await here.workspace("elsewhere")
    workflow, token = await here.save(WORKFLOW), await here.key(Role.RUNNER, "elsewhere")
    subject, seen = f"key:{token.split('_')[1]}", []
    definition, lists = f"/workflow/definitions/{workflow}?workspaceId=default", "/members?workspaceId=default"

    async def look() -> None:
        later(there)
        seen.append([(await there.ask("GET", path, token)).status_code for path in (definition, lists)])

    await look()
    await here.ask("PUT", f"/workflow/definitions/{workflow}/acl", json={"subject": subject, "role": "viewer"})
    await look()
    await here.ask("PUT", "/members", json={"subject": subject, "role": "admin"})
    await look()
    await here.ask("DELETE", "/members", params={"subject": subject})
    await here.ask("DELETE", f"/workflow/definitions/{workflow}/acl", params={"subject": subject})
    await look()

    assert seen == [[404, 404], [200, 404], [200, 200], [404, 404]]


async def test_a_cursor_of_one_is_good_at_the_other(servers: tuple[House, House]):
    here, there = servers
    for name in "abc":
        await here.ask("PUT", "/members", json={"subject": f"user:{name}", "role": "viewer"})

    cursor = (await here.ask("GET", "/members?limit=2")).json()["next"]
    rest = (await there.ask("GET", f"/members?limit=2&cursor={cursor}")).json()

    assert [each["subject"] for each in rest["items"]] == ["user:c"]


async def test_a_workflow_changed_at_one_is_looked_up_again_at_the_other(servers: tuple[House, House]):
    here, there = servers
    workflow = await here.save(WORKFLOW)
    engine = there.service.engine
    before = engine.workflow_changes
    await here.ask("POST", f"/workflow/definitions/{workflow}/archive")
    async with asyncio.timeout(10):
        while engine.workflow_changes == before:
            await there.backend.store.tell_time()
    refused = await there.ask("POST", "/workflow/executions/start", json={"workflowDefinitionId": workflow})

    assert refused.status_code == 409

"""Sharing workflows by the client."""

import pytest

from ropewalk.client import AsyncClient
from ropewalk.core.errors import NotFound
from ropewalk.store import workspaces
from tests.client.samples import ONE
from tests.client.servers import Served


@pytest.fixture
async def stranger(server: Served, client: AsyncClient) -> tuple[str, str]:
    """A key of another workspace: its subject and its token."""
    async with server.backend.store.transaction() as tx:
        await workspaces.ensure(tx, "acme", workspaces.Plan.PRO, server.backend.store.now())
    async with AsyncClient(server.url, server.token, "acme") as there:
        made = await there.create_key("stranger", "viewer")
    return f"key:{made['id']}", made["token"]


async def test_what_is_shared_is_seen_until_it_is_shared_no_more(
    server: Served, client: AsyncClient, stranger: tuple[str, str]
):
    workflow = (await client.save(ONE))["id"]
    subject, token = stranger
    async with AsyncClient(server.url, token, "default") as guest:
        with pytest.raises(NotFound):
            await guest.definition(workflow)
        await client.share(workflow, subject, "viewer")
        seen = await guest.definition(workflow)
        gone = [(await client.unshare(workflow, subject))["changed"] for _ in range(2)]

        assert seen["name"] == "one"
        assert gone == [True, False]
        with pytest.raises(NotFound):
            await guest.definition(workflow)


async def test_shares_are_listed_with_their_latest_role(client: AsyncClient):
    workflow = (await client.save(ONE))["id"]
    for subject, role in (("user:cem", "viewer"), ("user:ann", "editor"), ("user:cem", "operator")):
        await client.share(workflow, subject, role)

    listed = [(each["subject"], each["role"]) async for each in client.shares(workflow)]

    assert listed == [("user:ann", "editor"), ("user:cem", "operator")]

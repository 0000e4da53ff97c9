"""API keys by the client."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from ropewalk.client import AsyncClient, Client
from ropewalk.core.errors import Forbidden, InvalidInput, NotFound, Unauthenticated, Unavailable
from tests.client.servers import Served, reply, scripted


async def test_a_new_key_opens_what_its_role_allows_until_it_is_revoked(server: Served, client: AsyncClient):
    made = await client.create_key("watcher", "viewer")
    async with AsyncClient(server.url, made["token"]) as watcher:
        me = await watcher.me()
        with pytest.raises(Forbidden):
            await watcher.create_key("another", "viewer")
        revoked = await client.revoke_key(made["id"])

        assert me["subject"] == f"key:{made['id']}"
        assert revoked["revokedAt"] is not None
        with pytest.raises(Unauthenticated):
            await watcher.me()


async def test_a_key_is_as_narrow_as_it_was_wanted(client: AsyncClient):
    made = await client.create_key("ci", "admin", scopes=["read", "run"], pools=["gpu"], expires_in=timedelta(hours=1))

    (listed,) = [each async for each in client.keys(limit=1)]

    assert (listed["id"], listed["scopes"], listed["pools"]) == (made["id"], ["read", "run"], ["gpu"])
    assert listed["expiresAt"] is not None
    assert "token" not in listed


async def test_a_root_key_is_made_only_when_that_is_said(client: AsyncClient):
    first, second = await client.create_key("one", "admin"), await client.create_key("two", "admin", root=True)

    assert (first["root"], second["root"]) == (False, True)


async def test_a_key_that_makes_no_sense_or_is_not_there_is_refused(client: AsyncClient):
    with pytest.raises(InvalidInput) as refused:
        await client.create_key("paint", "viewer", pools=["paint"])

    assert refused.value.problems[0].path == ("pools",)
    with pytest.raises(NotFound):
        await client.revoke_key("0" * 32)


async def test_a_key_that_may_have_been_made_is_not_made_again():
    away = reply(503, {"detail": "the store is away"})
    async with scripted([away, away]) as script, AsyncClient(script.url, "rw_x_y") as client:
        with pytest.raises(Unavailable):
            await client.create_key("once", "viewer")

    assert len(script.heard) == 1


async def test_the_blocking_client_has_keys_members_and_sharing_too(server: Served):
    def work() -> tuple[Any, ...]:
        with Client(server.url, server.token) as client:
            saved = client.save({"ropewalk": 1, "name": "empty", "nodes": []})
            key = client.create_key("deploy", "operator")
            client.put_member("user:ann", "editor")
            client.share(saved["id"], "user:cem", "viewer")
            members = [each["subject"] for each in client.members()]
            return key["name"], members, [each["subject"] for each in client.shares(saved["id"])]

    assert await asyncio.to_thread(work) == ("deploy", ["user:ann"], ["user:cem"])

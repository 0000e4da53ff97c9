"""Credentials by the client."""

import asyncio
from typing import Any

import pytest

from ropewalk.client import AsyncClient, Client
from ropewalk.core.errors import Conflict, InvalidInput, NotFound
from tests.client.servers import Served

SECRET = "s3cret-canary-0815"
VALUES = {"username": "ann", "password": SECRET}


async def test_a_credential_is_kept_changed_and_removed(client: AsyncClient):
    made = await client.create_credential("shop", "http.basic", VALUES, hosts=["api.example.org"])
    changed = await client.change_credential("shop", {"username": "bob"})
    (listed,) = [each async for each in client.credentials()]
    shown = await client.credential("shop")

    assert (made["secrets"], changed["values"], listed["revision"]) == ({"password": "stored"}, {"username": "bob"}, 2)
    assert (shown["hosts"], shown["usedBy"]) == (["api.example.org"], [])
    assert SECRET not in str([made, changed, listed, shown])
    assert [await client.remove_credential("shop") for _ in range(2)] == [True, False]
    with pytest.raises(NotFound):
        await client.credential("shop")


async def test_what_is_refused_is_raised_without_the_secret(client: AsyncClient):
    await client.create_credential("shop", "http.basic", VALUES)
    with pytest.raises(Conflict):
        await client.create_credential("shop", "http.basic", VALUES)
    with pytest.raises(InvalidInput) as caught:
        await client.create_credential("bank", "http.basic", {"password": SECRET, "more": SECRET})

    assert [each.where for each in caught.value.problems] == ["values.username", "values.more"]
    assert SECRET not in str(caught.value)


async def test_a_credential_is_shared_and_tried(client: AsyncClient):
    await client.create_credential("shop", "generic", {"value": SECRET})
    await client.share_credential("shop", "user:cem")
    shares = [each["subject"] async for each in client.credential_shares("shop")]

    assert shares == ["user:cem"]
    assert (await client.unshare_credential("shop", "user:cem"))["changed"]
    assert (await client.test_credential("shop"))["ok"] is None
    assert await client.rotate_master_key() == 0


async def test_the_blocking_client_has_credentials_too(server: Served):
    def work() -> tuple[Any, ...]:
        with Client(server.url, server.token) as client:
            client.create_credential("shop", "http.basic", VALUES)
            types = {each["name"] for each in client.credential_types()}
            return [each["name"] for each in client.credentials()], "http.basic" in types

    assert await asyncio.to_thread(work) == (["shop"], True)

"""The first start."""

import asyncio

from ropewalk.access.first import ensure_admin
from ropewalk.access.keys import KeyRing, digest
from ropewalk.store import audit, keys, workspaces
from ropewalk.store.postgres import PostgresStore
from tests.access.clocks import Clocked


async def test_the_first_start_makes_a_root_key_and_no_later_one_does(store: Clocked):
    tokens = [await ensure_admin(store) for _ in range(3)]

    actor = await KeyRing(store).actor(tokens[0] or "")
    assert actor is not None
    assert (actor.is_root, actor.home, tokens[1:]) == (True, "default", [None, None])


async def test_only_a_hash_of_the_first_token_is_kept(store: Clocked):
    token = await ensure_admin(store)

    assert token is not None
    secret = token.split("_", 2)[2]
    (row,) = await keys.listed(store, "default")
    assert secret not in str(row)
    assert row.hash == digest(secret)
    assert secret not in str(await audit.listed(store, "default"))


async def test_of_several_servers_that_start_at_once_one_makes_the_key(database: str):
    stores = [await PostgresStore.open(database, worker=f"w{n}", notify=False) for n in range(4)]
    async with stores[0].transaction() as tx:
        await workspaces.ensure_default(tx, stores[0].now())

    tokens = await asyncio.gather(*map(ensure_admin, stores))

    found = await keys.listed(stores[0], "default")
    for store in stores:
        await store.close()
    assert (len([token for token in tokens if token]), len(found)) == (1, 1)

"""Keys: what opens, and until when."""

import asyncio
import base64
from pathlib import Path

import pytest

from ropewalk.access import keys
from ropewalk.access.cache import CACHED_FOR
from ropewalk.access.granting import Giver
from ropewalk.access.keys import KeyRing, Wanted, make, revoke
from ropewalk.access.rights import EVERYTHING, Right, Role
from ropewalk.core.duration import HOUR, SECOND
from ropewalk.core.errors import Conflict
from ropewalk.store import keys as rows
from ropewalk.store import workspaces
from ropewalk.store.access import Store
from ropewalk.store.postgres import PostgresStore
from ropewalk.store.sqlite import SqliteStore
from tests.access.clocks import Clocked

ROOT = Giver("test", "default", EVERYTHING)


async def made(store: Store | Clocked, **more: object) -> str:
    wanted = Wanted(**{"workspace": "default", "name": "test", "role": Role.OPERATOR, **more})  # type: ignore[arg-type]
    async with store.transaction() as tx:
        return (await make(tx, wanted, "test", store.now()))[1]


async def revoked(store: Store | Clocked, token: str) -> rows.ApiKey:
    async with store.transaction() as tx:
        return await revoke(tx, ROOT, token.split("_")[1], store.now())


async def test_a_token_tells_whose_key_it_is(store: Clocked):
    token = await made(store, scopes=(Right.READ,), pools=("gpu",))

    actor = await KeyRing(store).actor(token)

    assert actor is not None
    assert (actor.role, actor.scopes, actor.pools) == (Role.OPERATOR, {Right.READ}, {"gpu"})
    assert await actor.rights_in(store, "default") == {Right.READ}


async def test_a_store_that_can_only_be_read_keeps_no_caller_out(tmp_path: Path):
    store = await SqliteStore.open(str(tmp_path / "ropewalk.db"))
    async with store.transaction() as tx:
        await workspaces.ensure_default(tx, store.now())
    token = await made(store)
    store._connection.execute("pragma query_only = on")

    actor = await KeyRing(store).actor(token)

    assert actor is not None
    await store.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token[:-1] + ("A" if token[-1] != "A" else "B"),
        lambda token: token[:-1],
        lambda token: f"{token}A",
        lambda token: f"{token}\0",
        lambda token: token.replace("rw_", "RW_"),
        lambda token: f"rw_{'0' * 32}_{token.split('_', 2)[2]}",
        lambda token: f"rw__{token.split('_', 2)[2]}",
        lambda token: "rw_",
        lambda token: "rw_é_ö",
        lambda token: "rw_" + "x" * 100_000,
    ],
)
async def test_what_is_not_the_token_opens_nothing(store: Clocked, change):
    token = await made(store)

    assert await KeyRing(store).actor(change(token)) is None


async def test_a_revoked_key_is_out_on_every_server_within_five_seconds(store: Clocked):
    token, another = await made(store), KeyRing(store)
    assert await another.actor(token)
    await revoked(store, token)

    store.ahead = 5 * SECOND

    assert await another.actor(token) is None


async def test_a_key_opens_until_it_expires_and_not_while_it_is_believed(store: Clocked):
    token = await made(store, expires_at=store.now() + HOUR)
    ring = KeyRing(store)

    store.ahead = HOUR - 1 * SECOND
    before = await ring.actor(token)
    store.ahead = HOUR

    assert before is not None
    assert await ring.actor(token) is None


async def test_a_believed_key_costs_no_read(store: Clocked):
    token, ring = await made(store), KeyRing(store)
    await ring.actor(token)
    await revoked(store, token)

    assert await ring.actor(token) is not None, "it is not out before it is looked up again"
    store.ahead = CACHED_FOR + SECOND
    assert await ring.actor(token) is None


async def test_when_a_key_was_used_is_noted_once_a_minute(store: Clocked):
    token, ring = await made(store), KeyRing(store)
    used = []
    for store.ahead in (0, 30 * SECOND, 61 * SECOND):
        await ring.actor(token)
        used.append((await rows.listed(store, "default"))[0].last_used_at)

    assert used[0] == used[1] != used[2]


async def test_the_last_root_key_without_end_and_scopes_stays(store: Clocked):
    first = await made(store, is_root=True, role=Role.ADMIN)
    second = await made(store, is_root=True, role=Role.ADMIN)
    await made(store, is_root=True, role=Role.ADMIN, expires_at=store.now() + HOUR)
    await made(store, is_root=True, role=Role.ADMIN, scopes=(Right.OPERATE,))
    await revoked(store, first)

    with pytest.raises(Conflict, match="last root key"):
        await revoked(store, second)

    assert await KeyRing(store).actor(second)


async def test_a_token_holds_256_random_bits_of_which_the_hash_is_kept(store: Clocked):
    tokens = [await made(store) for _ in range(3)]

    secrets = [token.split("_", 2)[2] for token in tokens]
    assert [len(base64.urlsafe_b64decode(secret + "=")) for secret in secrets] == [32] * 3
    assert {row.hash for row in await rows.listed(store, "default")} == set(map(keys.digest, secrets))


async def test_of_two_who_revoke_the_last_two_root_keys_one_is_refused(database: str):
    stores = [await PostgresStore.open(database, worker=f"w{n}", notify=False) for n in range(2)]
    tokens = [await made(stores[0], is_root=True, role=Role.ADMIN) for _ in range(2)]

    answers = await asyncio.gather(*map(revoked, stores, tokens), return_exceptions=True)

    for store in stores:
        await store.close()
    assert [type(answer) for answer in answers].count(Conflict) == 1

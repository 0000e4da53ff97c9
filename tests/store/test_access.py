"""Keys, members, shares, sessions and secrets as they are kept, on both stores."""

import asyncio

from msgspec.structs import replace

from ropewalk.store import acl, keys, members, secrets, sessions
from ropewalk.store.access import Store
from tests.store.samples import NOON

KEY = keys.NewKey(id="k1", workspace="default", name="test", hash="h", role="viewer", created_at=NOON, created_by="t")
SESSION = sessions.Session("hash", "{}", "csrf", NOON, NOON + 10)


async def keep(store: Store, *wanted: keys.NewKey) -> None:
    async with store.transaction() as tx:
        for key in wanted:
            await keys.insert(tx, key)


async def test_a_key_is_kept_as_it_was_given(store: Store):
    given = replace(KEY, scopes='["read"]', pools='["gpu"]', is_root=1, expires_at=NOON + 1)
    await keep(store, given)

    kept = await keys.get(store, "k1")

    assert kept is not None
    assert {name: getattr(kept, name) for name in keys.NewKey.__struct_fields__} == {
        name: getattr(given, name) for name in keys.NewKey.__struct_fields__
    }
    assert (kept.last_used_at, kept.revoked_at) == (None, None)


async def test_a_key_is_revoked_once_and_in_its_own_workspace(store: Store):
    await keep(store, KEY)

    async with store.transaction() as tx:
        done = [await keys.revoke(tx, workspace, "k1", NOON + 5) for workspace in ("other", "default", "default")]

    kept = await keys.get(store, "k1")
    assert done == [False, True, False]
    assert kept is not None
    assert kept.revoked_at == NOON + 5


async def test_the_root_keys_that_last_are_neither_revoked_nor_going_to_expire(store: Store):
    await keep(
        store,
        replace(KEY, id="plain"),
        replace(KEY, id="ends", is_root=1, expires_at=NOON + 10**12),
        replace(KEY, id="gone", is_root=1),
        replace(KEY, id="b", is_root=1),
        replace(KEY, id="a", is_root=1, workspace="other"),
    )

    async with store.transaction() as tx:
        await keys.revoke(tx, "default", "gone", NOON)
        lasting = await keys.lock_lasting_roots(tx)

    assert lasting == ["a", "b"]


async def test_keys_are_listed_newest_first_in_their_own_workspace(store: Store):
    await keep(store, *(replace(KEY, id=f"k{n}") for n in range(4)), replace(KEY, id="x", workspace="other"))

    pages = [await keys.listed(store, "default", before=before, limit=3) for before in (keys.NEWEST, "k1")]

    assert [[key.id for key in page] for page in pages] == [["k3", "k2", "k1"], ["k0"]]


async def test_a_member_has_one_role_in_each_workspace(store: Store):
    async with store.transaction() as tx:
        for workspace, role in (("a", "viewer"), ("a", "editor"), ("b", "admin")):
            await members.put(tx, members.Member(workspace, "user:ann", role, NOON, "t"))

    found = await members.memberships(store, "user:ann")

    assert [(member.workspace, member.role) for member in found] == [("a", "editor"), ("b", "admin")]


async def test_a_workflow_is_shared_with_one_and_no_longer(store: Store):
    async with store.transaction() as tx:
        for workspace, workflow in (("b", "w1"), ("a", "w1"), ("a", "w2")):
            await acl.put(tx, acl.Share(workspace, workflow, "user:ann", "viewer", NOON, "t"))
        await acl.remove(tx, "a", "w1", "user:ann")

    assert [share.workflow for share in await acl.shared_with(store, "user:ann", "a")] == ["w2"]
    assert await acl.shared_workspaces(store, "user:ann") == ["a", "b"]
    assert await acl.shared_workspaces(store, "user:ann", after="a", limit=1) == ["b"]
    assert await acl.get(store, "a", "w1", "user:ann") is None


async def test_a_session_is_there_until_it_is_over_and_forgotten_a_few_at_a_time(store: Store):
    async with store.transaction() as tx:
        for n in range(5):
            await sessions.insert(tx, replace(SESSION, hash=f"s{n}", expires_at=NOON + n))

    there = [await sessions.get(store, "s3", now) is not None for now in (NOON + 2, NOON + 3)]
    async with store.transaction() as tx:
        forgotten = [await sessions.forget_expired(tx, NOON + 3, 3) for _ in range(3)]

    assert (there, forgotten) == ([True, False], [3, 1, 0])


async def test_the_first_to_propose_a_secret_decides_for_all(store: Store):
    async def propose(value: str) -> str:
        async with store.transaction() as tx:
            return await secrets.keep(tx, "name", value)

    decided = await asyncio.gather(*(propose(f"v{n}") for n in range(5)))

    assert len(set(decided)) == 1

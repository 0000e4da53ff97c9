"""Credentials in a store of each kind: what is written is encrypted, bound to its place, and opened for nodes alone."""

import asyncio

import msgspec
import pytest

from ropewalk.core.errors import Conflict, InvalidInput, NotFound
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.credentials import Credential, Token
from ropewalk.service.credentials import CredentialVerbs
from ropewalk.store import audit, credentials
from ropewalk.store.access import Store
from tests.credentials.conftest import NEW, OLD, verbs_on

SECRET = "s3cret-canary-0815"
BASIC = {"username": "shop", "password": SECRET}


async def made(verbs: CredentialVerbs, name: str = "shop", **values) -> dict:
    return await verbs.create(name, "http.basic", BASIC | values, ["api.example.org"], "user:ann")


async def rows_of(store: Store) -> dict[str, bytes]:
    found = await credentials.get(store, "default", "shop")
    assert found is not None
    return await credentials.fields(store, found.id)


async def put(store: Store, name: str, sealed: dict[str, bytes]) -> None:
    """Puts sealed rows where they do not belong, as one with access to the database could."""
    found = await credentials.get(store, "default", name)
    assert found is not None
    async with store.transaction() as tx:
        await tx.execute("delete_credential_fields", found.id)
        await tx.execute_many("put_credential_field", [(found.id, *each) for each in sealed.items()])


async def test_a_node_gets_the_values_and_an_answer_has_no_secret(verbs: CredentialVerbs):
    answer = await made(verbs)
    shown = [answer, await verbs.get("shop"), *await verbs.listed()]

    found = await verbs.stored.get("default", "shop")

    assert found == Credential("shop", "http.basic", BASIC, ("api.example.org",), answer["id"], (SECRET,))
    assert all(each["values"] == {"username": "shop"} and each["secrets"] == {"password": "stored"} for each in shown)
    assert SECRET not in msgspec.json.encode(shown).decode()
    assert SECRET not in repr(found)


async def test_nothing_in_the_store_has_the_secret(verbs: CredentialVerbs, store: Store):
    await made(verbs)

    sealed = await rows_of(store)

    assert SECRET.encode() not in sealed["password"]
    assert (await audit.listed(store, "default"))[0].verb == "create-credential"


async def test_the_same_secret_is_sealed_differently_each_time(verbs: CredentialVerbs, store: Store):
    await made(verbs)
    first = await rows_of(store)
    await verbs.change("shop", {"password": SECRET}, None, "user:ann")

    assert await rows_of(store) != first


@pytest.mark.parametrize("change", [
    lambda sealed: {"password": sealed["password"][:-1]},
    lambda sealed: {"password": sealed["password"][:13]},
    lambda sealed: {"password": b""},
    lambda sealed: {"password": sealed["password"][:-1] + bytes([sealed["password"][-1] ^ 1])},
    lambda sealed: {"password": sealed["password"][1:]},
    lambda sealed: {"username": sealed["password"]},
    lambda sealed: {"password": sealed["password"], "other": sealed["password"]},
])  # fmt: skip
async def test_a_row_that_was_changed_is_refused(verbs: CredentialVerbs, store: Store, change):
    await made(verbs)
    await put(store, "shop", change(await rows_of(store)))

    with pytest.raises(NodeFailure, match="set it anew") as caught:
        await verbs.stored.get("default", "shop")

    assert caught.value.error.type == "PERMANENT"


async def test_rows_of_two_credentials_cannot_be_swapped(verbs: CredentialVerbs, store: Store):
    await made(verbs)
    await made(verbs, "bank", password="another")
    await put(store, "bank", await rows_of(store))

    with pytest.raises(NodeFailure, match="'bank' cannot be read"):
        await verbs.stored.get("default", "bank")


async def test_two_fields_of_one_credential_cannot_change_places(verbs: CredentialVerbs, store: Store):
    values = {"accessKeyId": "a", "secretAccessKey": "b", "sessionToken": "c"}
    await verbs.create("shop", "aws", values, [], "user:ann")
    sealed = await rows_of(store)
    swapped = {"secretAccessKey": sealed["sessionToken"], "sessionToken": sealed["secretAccessKey"]}
    await put(store, "shop", swapped)

    with pytest.raises(NodeFailure, match="cannot be read"):
        await verbs.stored.get("default", "shop")


async def test_a_secret_from_an_earlier_revision_is_refused(verbs: CredentialVerbs, store: Store):
    await made(verbs)
    earlier = await rows_of(store)
    await verbs.change("shop", {"password": "another"}, None, "user:ann")
    await put(store, "shop", earlier)

    with pytest.raises(NodeFailure, match="cannot be read"):
        await verbs.stored.get("default", "shop")


@pytest.mark.parametrize("statement", [
    "update credential set hosts = '[]'",
    "update credential set name = 'mine' where name = 'shop'",
    "update credential set type = 'http.digest'",
    "update credential set plain = '{\"values\": {\"username\": \"root\"}}'",
])  # fmt: skip
async def test_what_stands_beside_a_secret_cannot_be_changed_in_the_store(sqlite_store, statement: str):
    import sqlite3

    verbs = verbs_on(sqlite_store)
    await made(verbs)
    with sqlite3.connect(sqlite_store.path) as database:
        database.execute(statement)

    with pytest.raises(NodeFailure, match="cannot be read"):
        await verbs.stored.get("default", "mine" if "mine" in statement else "shop")


async def test_a_key_of_one_workspace_does_not_open_what_is_in_another(verbs: CredentialVerbs, store: Store):
    await made(verbs)
    foreign = verbs_on(store, workspace="b")

    with pytest.raises(NodeFailure, match="there is no credential 'shop'"):
        await foreign.stored.get("b", "shop")
    with pytest.raises(NotFound):
        await foreign.get("shop")


async def test_a_process_with_another_master_key_is_told_what_to_do_and_stores_nothing(
    verbs: CredentialVerbs, store: Store
):
    await made(verbs)
    wrong = verbs_on(store, NEW)

    with pytest.raises(NodeFailure, match="ROPEWALK_KEY"):
        await wrong.stored.get("default", "shop")
    with pytest.raises(Exception, match="ROPEWALK_KEY"):
        await made(wrong, "bank")
    with pytest.raises(Exception, match="ROPEWALK_KEY"):
        await verbs_on(store, NEW, workspace="b").create("x", "http.basic", BASIC, [], "user:ann")

    assert [each["name"] for each in await verbs.listed()] == ["shop"]
    assert await credentials.data_key(store, "b") is None


async def test_when_the_master_key_is_lost_credentials_are_removed_and_set_anew(verbs: CredentialVerbs, store: Store):
    await made(verbs)
    new = verbs_on(store, NEW)
    with pytest.raises(Exception, match="remove every credential"):
        await made(new, "bank")

    assert await new.remove("shop", "user:ann")
    await made(new)

    assert (await new.stored.get("default", "shop")).values == BASIC


async def test_a_change_keeps_what_it_does_not_name(verbs: CredentialVerbs):
    await made(verbs)

    await verbs.change("shop", {"username": "bank"}, ["*.example.org"], "user:bob")

    found = await verbs.stored.get("default", "shop")
    assert (found.values, found.hosts) == ({"username": "bank", "password": SECRET}, ("*.example.org",))


async def test_a_name_is_given_once(verbs: CredentialVerbs):
    await made(verbs)

    with pytest.raises(Conflict):
        await made(verbs)


@pytest.mark.parametrize(("name", "kind", "values", "hosts", "where"), [
    ("", "http.basic", BASIC, [], "name"),
    ("a/b", "http.basic", BASIC, [], "name"),
    ("x" * 129, "http.basic", BASIC, [], "name"),
    ("a", "nothing", BASIC, [], "type"),
    ("a", "http.basic", {}, [], "values.username"),
    ("a", "http.basic", BASIC | {"more": 1}, [], "values.more"),
    ("a", "http.basic", BASIC | {"password": ""}, [], "values.password"),
    ("a", "http.basic", BASIC | {"password": 5}, [], "values.password"),
    ("a", "http.basic", BASIC | {"password": "x" * 16_385}, [], "values.password"),
    ("a", "http.basic", BASIC, ["http://a"], "hosts[0]"),
    ("a", "http.basic", BASIC, ["*"], "hosts[0]"),
    ("a", "http.basic", BASIC, ["a"] * 101, "hosts"),
    ("a", "http.basic", BASIC | {"password": "env:HOME"}, [], "values.password"),
    ("a", "http.basic", BASIC | {"password": "file:/etc/passwd"}, [], "values.password"),
    ("a", "openai", {"apiKey": "k", "baseUrl": "https://a:b@example.org"}, [], "values.baseUrl"),
])  # fmt: skip
async def test_a_wrong_field_is_named_and_its_value_is_not(verbs: CredentialVerbs, name, kind, values, hosts, where):
    with pytest.raises(InvalidInput) as caught:
        await verbs.create(name, kind, values, hosts, "user:ann")

    assert where in [each.where for each in caught.value.problems]
    assert SECRET not in str(caught.value)
    assert await verbs.listed() == []


async def test_a_removed_credential_is_gone_with_its_secrets(verbs: CredentialVerbs, store: Store):
    answer = await made(verbs)

    assert await verbs.remove("shop", "user:ann")
    assert not await verbs.remove("shop", "user:ann")
    assert await credentials.fields(store, answer["id"]) == {}
    with pytest.raises(NodeFailure, match="there is no credential"):
        await verbs.stored.get("default", "shop")


# The master key


async def test_keys_are_rotated_without_a_pause(verbs: CredentialVerbs, store: Store):
    await made(verbs)
    both = verbs_on(store, NEW, OLD)
    assert (await both.stored.get("default", "shop")).values == BASIC  # before anything was wrapped anew
    await verbs_on(store, NEW, OLD, workspace="b").create("b", "http.basic", BASIC, [], "user:ann")
    assert (await verbs.stored.get("b", "b")).values == BASIC  # a process that has the old key alone reads it still

    assert await both.stored.vault.rotate() == 2

    new = verbs_on(store, NEW)
    assert (await new.stored.get("default", "shop")).values == BASIC
    assert (await new.stored.get("b", "b")).values == BASIC
    with pytest.raises(NodeFailure, match="ROPEWALK_KEY"):
        await verbs.stored.get("default", "shop")
    assert await new.stored.vault.rotate() == 0


async def test_a_rotation_that_was_broken_off_is_taken_up_again(verbs: CredentialVerbs, store: Store, monkeypatch):
    for workspace in ("a", "b", "c"):
        await verbs_on(store, OLD, workspace=workspace).create("x", "http.basic", BASIC, [], "user:ann")
    both = verbs_on(store, NEW, OLD)
    real, calls = credentials.rewrap, []

    async def dies(tx, key, wrapped, master):
        calls.append(key.workspace)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return await real(tx, key, wrapped, master)

    monkeypatch.setattr(credentials, "rewrap", dies)
    with pytest.raises(KeyboardInterrupt):
        await both.stored.vault.rotate()
    monkeypatch.undo()
    for workspace in ("a", "b", "c"):
        assert (await both.stored.get(workspace, "x")).values == BASIC

    assert await verbs_on(store, NEW, OLD).stored.vault.rotate() == 2
    for workspace in ("a", "b", "c"):
        assert (await verbs_on(store, NEW).stored.get(workspace, "x")).values == BASIC


async def test_a_rotation_without_the_old_key_changes_nothing(verbs: CredentialVerbs, store: Store):
    await made(verbs)

    with pytest.raises(Exception, match="ROPEWALK_KEY_BEFORE"):
        await verbs_on(store, NEW).stored.vault.rotate()

    assert (await verbs.stored.get("default", "shop")).values == BASIC


# Tokens


async def oauth(verbs: CredentialVerbs, kind: str = "oauth2.client") -> Credential:
    more = {"refreshToken": "first"} if kind == "oauth2.refresh" else {}
    values = {"tokenUrl": "https://login.example.org/t", "clientId": "a", "clientSecret": SECRET} | more
    await verbs.create("shop", kind, values, [], "user:ann")
    return await verbs.stored.get("default", "shop")


class Issuer:
    """Hands out tokens, and counts them."""

    def __init__(self, lifetime: float | None = 3600, refresh: str | None = None):
        self.count = 0
        self.lifetime = lifetime
        self.refresh = refresh

    async def renew(self) -> Token:
        self.count += 1
        await asyncio.sleep(0)
        return Token(f"token {self.count}", self.lifetime, self.refresh)


async def test_a_token_is_renewed_once_for_all_workers(verbs: CredentialVerbs, store: Store):
    found, issuer = await oauth(verbs), Issuer()
    workers = [verbs_on(store).stored for _ in range(5)]

    asked = [each.token("default", found, issuer.renew) for each in workers for _ in range(4)]

    assert await asyncio.gather(*asked) == ["token 1"] * 20
    assert issuer.count == 1


async def test_a_token_is_renewed_when_its_time_is_over_or_it_is_refused(verbs: CredentialVerbs):
    found, issuer = await oauth(verbs), Issuer(lifetime=0)
    stored = verbs.stored

    assert [await stored.token("default", found, issuer.renew) for _ in range(2)] == ["token 1", "token 2"]
    issuer.lifetime = None
    assert [await stored.token("default", found, issuer.renew) for _ in range(2)] == ["token 3", "token 3"]
    assert await stored.token("default", found, issuer.renew, refused="token 3") == "token 4"
    assert await stored.token("default", found, issuer.renew, refused="token 3") == "token 4"


async def test_a_renewal_that_fails_leaves_the_next_one_its_turn(verbs: CredentialVerbs):
    found, issuer = await oauth(verbs), Issuer()

    async def fails() -> Token:
        raise NodeFailure.transient("the issuer is away")

    with pytest.raises(NodeFailure, match="away"):
        await verbs.stored.token("default", found, fails)

    assert await verbs.stored.token("default", found, issuer.renew) == "token 1"


async def test_a_refresh_token_that_the_issuer_replaced_is_used_from_then_on(verbs: CredentialVerbs):
    found = await oauth(verbs, "oauth2.refresh")
    await verbs.stored.token("default", found, Issuer(refresh="second").renew)

    later = await verbs.stored.get("default", "shop")

    assert (found.values["refreshToken"], later.values["refreshToken"]) == ("first", "second")
    assert "second" in later.secrets
    await verbs.change("shop", {"refreshToken": "third"}, None, "user:ann")
    assert (await verbs.stored.get("default", "shop")).values["refreshToken"] == "third"


async def test_a_kept_token_is_sealed_and_bound_to_its_credential(verbs: CredentialVerbs, store: Store):
    found = await oauth(verbs)
    await verbs.stored.token("default", found, Issuer().renew)
    row = await credentials.get(store, "default", "shop")
    assert row is not None
    assert row.token is not None
    assert b"token 1" not in bytes(row.token)
    await verbs.create("bank", "oauth2.client", dict(found.values), [], "user:ann")
    other = await credentials.get(store, "default", "bank")
    assert other is not None
    async with store.transaction() as tx:
        await credentials.claim_renewal(tx, other, 2**60, 0, "thief")
        await credentials.keep_token(tx, other, bytes(row.token), None, "thief")

    with pytest.raises(NodeFailure, match="cannot be read"):
        await verbs.stored.get("default", "bank")


async def test_the_last_use_is_told(verbs: CredentialVerbs):
    await made(verbs)
    assert (await verbs.get("shop"))["lastUsedAt"] is None

    await verbs.stored.get("default", "shop")

    assert (await verbs.get("shop"))["lastUsedAt"] is not None


async def test_a_worker_that_died_while_it_renewed_a_token_holds_up_no_other(verbs: CredentialVerbs, store: Store):
    found, issuer = await oauth(verbs), Issuer()
    row = await credentials.get(store, "default", "shop")
    assert row is not None
    async with store.transaction() as tx:
        assert await credentials.claim_renewal(tx, row, store.now(), store.now(), "dead")

    assert await verbs.stored.token("default", found, issuer.renew) == "token 1"

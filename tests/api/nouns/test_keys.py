"""API keys over HTTP."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from ropewalk.access.rights import RIGHTS, Right, Role
from ropewalk.core.duration import HOUR, SECOND
from ropewalk.store import audit
from ropewalk.store import keys as rows
from tests.api.house import House, opened

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """One for all the tests here: they leave nothing that another would trip over."""
    async with opened(str(tmp_path_factory.mktemp("house") / "ropewalk.db")) as house:
        yield house


async def test_a_new_key_opens_and_its_token_is_shown_once(house: House):
    made = (await house.ask("POST", "/keys", json={"name": "deploy", "role": "operator"})).json()

    me = (await house.ask("GET", "/me", made["token"])).json()
    listed = (await house.ask("GET", "/keys")).text
    assert (me["subject"], me["workspaces"][0]["role"]) == (f"key:{made['id']}", "operator")
    assert made["id"] in listed
    assert made["token"].split("_", 2)[2] not in listed
    assert "hash" not in listed


async def test_a_key_can_be_narrower_than_its_role_and_end(house: House):
    wanted = {"name": "ci", "role": "admin", "scopes": ["read", "execute"], "expiresInSeconds": 3_600}
    made = (await house.ask("POST", "/keys", json=wanted)).json()

    (me,) = (await house.ask("GET", "/me", made["token"])).json()["workspaces"]
    row = await rows.get(house.backend.store, made["id"])

    assert me["rights"] == ["execute", "read"]
    assert row is not None
    assert row.expires_at is not None
    assert row.expires_at - row.created_at == HOUR


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"role": "viewer"}, "name"),
        ({"name": "", "role": "viewer"}, "name"),
        ({"name": "a\x7fb", "role": "viewer"}, "name"),
        ({"name": "a\nb", "role": "viewer"}, "name"),
        ({"name": "x" * 256, "role": "viewer"}, "name"),
        ({"name": "x", "role": "owner"}, "role"),
        ({"name": "x", "role": None}, "role"),
        ({"name": "x", "role": "viewer", "scopes": []}, "scopes"),
        ({"name": "x", "role": "viewer", "scopes": ["everything"]}, "scopes[0]"),
        ({"name": "x", "role": "viewer", "scopes": ["edit"]}, "scopes"),
        ({"name": "x", "role": "viewer", "pools": ["gpu"]}, "pools"),
        ({"name": "x", "role": "runner", "pools": []}, "pools"),
        ({"name": "x", "role": "runner", "pools": ["a b"]}, "pools[0]"),
        ({"name": "x", "role": "viewer", "expiresInSeconds": 0}, "expiresInSeconds"),
        ({"name": "x", "role": "viewer", "expiresInSeconds": 10**12}, "expiresInSeconds"),
        ({"name": "x", "role": "viewer", "expiresInSeconds": "1"}, "expiresInSeconds"),
        ({"name": "x", "role": "viewer", "root": True}, "role"),
        ({"name": "x", "role": "viewer", "isRoot": True}, "isRoot"),
        ({"name": "x", "role": "admin", "scopes": ["operate"]}, "scopes"),
    ],
    ids=str,
)
async def test_a_key_that_makes_no_sense_is_refused_with_the_field(house: House, body: Any, field: str):
    before = [key.id for key in await rows.listed(house.backend.store, "default", limit=200)]

    answer = await house.ask("POST", "/keys", json=body)

    assert answer.status_code == 422
    assert field in [each["field"] for each in answer.json()["problems"]]
    assert [key.id for key in await rows.listed(house.backend.store, "default", limit=200)] == before


@pytest.mark.parametrize(
    ("scopes", "body", "status"),
    [
        (None, {"role": "admin"}, 201),
        (None, {"role": "admin", "root": True}, 403),
        ((Right.ADMINISTER, Right.READ), {"role": "viewer"}, 201),
        ((Right.ADMINISTER, Right.READ), {"role": "operator"}, 403),
        ((Right.ADMINISTER, Right.READ), {"role": "operator", "scopes": ["read"]}, 201),
        ((Right.ADMINISTER, Right.READ), {"role": "runner"}, 403),
        ((Right.ADMINISTER, Right.READ), {"role": "admin"}, 403),
        (None, {"role": "admin", "root": True, "scopes": ["operate"]}, 403),
        (None, {"role": "admin", "root": True, "scopes": ["read"]}, 403),
    ],
    ids=str,
)
async def test_no_caller_grants_what_it_lacks(house: House, scopes: tuple[Right, ...] | None, body: Any, status: int):
    admin = await house.key(Role.ADMIN, scopes=scopes)

    answer = await house.ask("POST", "/keys", admin, json={"name": "x", **body})

    assert answer.status_code == status


@pytest.mark.parametrize(("pools", "status"), [(["gpu"], 201), (["gpu", "cpu"], 403), (None, 403)])
async def test_a_key_of_some_pools_makes_none_for_others(house: House, pools: list[str] | None, status: int):
    admin = await house.key(Role.ADMIN, pools=("gpu", "tpu"))

    answer = await house.ask("POST", "/keys", admin, json={"name": "x", "role": "runner", "pools": pools})

    assert answer.status_code == status


@pytest.mark.parametrize("wish", [None, 60, 7_200])
async def test_a_key_makes_none_that_outlives_it(house: House, wish: int | None):
    ends = house.backend.store.now() + HOUR
    admin = await house.key(Role.ADMIN, expires_at=ends)

    made = await house.ask("POST", "/keys", admin, json={"name": "x", "role": "viewer", "expiresInSeconds": wish})

    row = await rows.get(house.backend.store, made.json()["id"])
    assert row is not None
    assert row.expires_at is not None
    assert row.expires_at == ends if wish != 60 else row.expires_at == row.created_at + 60 * SECOND


async def test_root_makes_root(house: House):
    made = await house.ask("POST", "/keys", json={"name": "second", "role": "admin", "root": True})

    assert made.json()["root"] is True
    assert (await house.ask("GET", "/me", made.json()["token"])).json()["root"] is True


async def test_a_root_key_may_have_the_scope_to_operate_and_no_other(house: House):
    body = {"name": "fleet", "role": "admin", "root": True, "scopes": ["operate"]}

    token = (await house.ask("POST", "/keys", json=body)).json()["token"]

    answers = [await house.ask("GET", path, token) for path in ("/workers", "/workflow/executions", "/keys")]
    assert [each.status_code for each in answers] == [200, 403, 403]


async def test_a_revoked_key_is_out_at_once_and_revoking_it_again_changes_nothing(house: House):
    token = await house.key(Role.VIEWER)
    assert (await house.ask("GET", "/me", token)).status_code == 200

    first, second = [await house.ask("DELETE", f"/keys/{token.split('_')[1]}") for _ in range(2)]

    assert (await house.ask("GET", "/me", token)).status_code == 401
    assert first.json()["revokedAt"] == second.json()["revokedAt"] is not None


async def test_a_key_of_another_workspace_is_not_there(house: House):
    await house.workspace("theirs")
    token = await house.key(Role.VIEWER, "theirs")

    foreign, absent = [await house.ask("DELETE", f"/keys/{key}") for key in (token.split("_")[1], "0" * 32)]

    assert (foreign.status_code, absent.status_code) == (404, 404)
    assert (await house.ask("GET", "/me", token)).status_code == 200


async def test_only_root_revokes_a_root_key_and_never_the_last(tmp_path):
    async with opened(str(tmp_path / "ropewalk.db")) as house:
        admin, root = await house.key(Role.ADMIN), f"/keys/{house.root.split('_')[1]}"

        by_admin, last = await house.ask("DELETE", root, admin), await house.ask("DELETE", root)
        await house.ask("POST", "/keys", json={"name": "second", "role": "admin", "root": True})
        with_another = await house.ask("DELETE", root)

    assert (by_admin.status_code, last.status_code, with_another.status_code) == (403, 409, 200)


async def test_keys_are_listed_newest_first_page_by_page(house: House):
    await house.workspace("many")
    made = [(await house.key(Role.VIEWER, "many")).split("_")[1] for _ in range(5)]

    found, cursor = [], ""
    while cursor is not None:
        answer = (await house.ask("GET", f"/keys?workspaceId=many&limit=2{cursor and f'&cursor={cursor}'}")).json()
        found += [each["id"] for each in answer["items"]]
        cursor = answer["next"]

    assert found == made[::-1]


async def test_making_and_revoking_a_key_leave_a_word_in_the_audit_log(house: House):
    admin = await house.key(Role.ADMIN)
    made = (await house.ask("POST", "/keys", admin, json={"name": "x", "role": "viewer"})).json()
    await house.ask("DELETE", f"/keys/{made['id']}", admin)

    told = [each for each in await audit.listed(house.backend.store, "default") if each.object == made["id"]]

    assert [(each.verb, each.before, each.after) for each in told] == [
        ("revoke-key", "viewer", None),
        ("create-key", None, "viewer"),
    ]
    assert {each.actor for each in told} == {f"key:{admin.split('_')[1]}"}
    assert made["token"].split("_", 2)[2] not in str(told)


async def test_an_admin_may_make_a_key_of_every_role(house: House):
    admin = await house.key(Role.ADMIN)

    made = [await house.ask("POST", "/keys", admin, json={"name": "x", "role": role}) for role in Role]

    assert [each.status_code for each in made] == [201] * len(RIGHTS)

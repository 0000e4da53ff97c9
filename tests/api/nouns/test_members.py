"""Members over HTTP."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from ropewalk.access.rights import Right, Role
from ropewalk.store import audit, members
from tests.api.house import House, opened

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """One for all the tests here: they leave nothing that another would trip over."""
    async with opened(str(tmp_path_factory.mktemp("house") / "ropewalk.db")) as house:
        yield house


def subject(token: str) -> str:
    return f"key:{token.split('_')[1]}"


async def test_a_member_is_in_at_once_and_out_at_once(house: House):
    await house.workspace("elsewhere")
    token = await house.key(Role.VIEWER, "elsewhere")
    path = "/workflow/executions?workspaceId=default"

    before = await house.ask("GET", path, token)
    await house.ask("PUT", "/members", json={"subject": subject(token), "role": "viewer"})
    during = await house.ask("GET", path, token)
    gone = await house.ask("DELETE", "/members", params={"subject": subject(token)})
    after = await house.ask("GET", path, token)

    assert [each.status_code for each in (before, during, after)] == [404, 200, 404]
    assert gone.json() == {"subject": subject(token), "changed": True}


@pytest.mark.parametrize(
    "name", ["user:ann", "user:auth0|5f7c8", "user:https://id.test/|a/b?c#d", "user:ä ö", "user:%2e"]
)
async def test_a_subject_may_have_any_character_an_issuer_puts_into_it(house: House, name: str):
    put = await house.ask("PUT", "/members", json={"subject": name, "role": "editor"})
    gone = await house.ask("DELETE", "/members", params={"subject": name})

    assert (put.status_code, put.json()["subject"], gone.json()["changed"]) == (200, name, True)


@pytest.mark.parametrize(
    "body",
    [
        {"subject": "ann", "role": "viewer"},
        {"subject": "user:", "role": "viewer"},
        {"subject": "user:a\nb", "role": "viewer"},
        {"subject": "key:nothing", "role": "viewer"},
        {"subject": "first-start", "role": "viewer"},
        {"subject": "user:" + "x" * 255, "role": "viewer"},
        {"subject": "user:ann", "role": "root"},
        {"subject": "user:ann", "role": "viewer", "workspaceId": "default"},
        {"subject": None, "role": "viewer"},
        [],
    ],
    ids=str,
)
async def test_what_is_no_subject_becomes_no_member(house: House, body: Any):
    answer = await house.ask("PUT", "/members", json=body)

    assert answer.status_code == 422
    assert answer.json()["problems"]


async def test_no_caller_makes_unmakes_or_changes_a_member_who_may_do_more(house: House):
    limited = await house.key(Role.ADMIN, scopes=(Right.READ, Right.ADMINISTER))
    await house.ask("PUT", "/members", json={"subject": "user:boss", "role": "admin"})

    answers = [
        await house.ask("PUT", "/members", limited, json={"subject": "user:new", "role": "operator"}),
        await house.ask("PUT", "/members", limited, json={"subject": "user:boss", "role": "viewer"}),
        await house.ask("DELETE", "/members", limited, params={"subject": "user:boss"}),
        await house.ask("PUT", "/members", limited, json={"subject": "user:new", "role": "viewer"}),
    ]

    boss = await members.get(house.backend.store, "default", "user:boss")
    assert [each.status_code for each in answers] == [403, 403, 403, 200]
    assert boss is not None
    assert boss.role == "admin"


@pytest.mark.parametrize(("role", "status"), [("runner", 403), ("admin", 403), ("editor", 200)])
async def test_a_key_of_some_pools_lets_no_member_lease_from_others(house: House, role: str, status: int):
    admin = await house.key(Role.ADMIN, pools=("gpu",))

    answer = await house.ask("PUT", "/members", admin, json={"subject": "user:zoe", "role": role})

    assert answer.status_code == status


async def test_the_last_admin_may_go_and_root_lets_another_in(house: House):
    await house.workspace("small")
    admin = await house.key(Role.VIEWER)
    await house.ask("PUT", "/members?workspaceId=small", json={"subject": subject(admin), "role": "admin"})

    wish = {"workspaceId": "small", "subject": subject(admin)}
    gone = await house.ask("DELETE", "/members", admin, params=wish)
    again = await house.ask("PUT", "/members?workspaceId=small", json={"subject": "user:next", "role": "admin"})

    assert (gone.status_code, again.status_code) == (200, 200)


async def test_members_are_listed_by_subject_page_by_page(house: House):
    await house.workspace("many")
    for name in "dacbe":
        await house.ask("PUT", "/members?workspaceId=many", json={"subject": f"user:{name}", "role": "viewer"})

    first = (await house.ask("GET", "/members?workspaceId=many&limit=3")).json()
    second = (await house.ask("GET", f"/members?workspaceId=many&limit=3&cursor={first['next']}")).json()

    assert [each["subject"][-1] for each in (*first["items"], *second["items"])] == list("abcde")
    assert second["next"] is None


async def test_every_change_is_audited_once_and_no_change_is_not(house: House):
    await house.workspace("told")
    for role in ("viewer", "viewer", "editor"):
        await house.ask("PUT", "/members?workspaceId=told", json={"subject": "user:ann", "role": role})
    for _ in range(2):
        await house.ask("DELETE", "/members", params={"workspaceId": "told", "subject": "user:ann"})

    told = await audit.listed(house.backend.store, "told")

    assert [(each.verb, each.object, each.before, each.after) for each in told[::-1]] == [
        ("put-member", "user:ann", None, "viewer"),
        ("put-member", "user:ann", "viewer", "editor"),
        ("remove-member", "user:ann", "editor", None),
    ]

"""Sharing workflows one by one."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from ropewalk.access.rights import Right, Role
from ropewalk.store import audit
from tests.api.house import House, opened

SHARED = {"ropewalk": 1, "name": "shared", "nodes": []}
HIDDEN = {"ropewalk": 1, "name": "hidden", "nodes": []}
DEFINITIONS = "/workflow/definitions"
HERE = {"workspaceId": "default"}
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """One for all the tests here: they leave nothing that another would trip over."""
    async with opened(str(tmp_path_factory.mktemp("house") / "ropewalk.db")) as house:
        yield house


def subject(token: str) -> str:
    return f"key:{token.split('_')[1]}"


async def guest(house: House, workflow: str, role: str, **more: Any) -> str:
    """A member of another workspace with whom a workflow is shared."""
    await house.workspace("elsewhere")
    token = await house.key(Role.RUNNER, "elsewhere", **more)
    answer = await house.ask("PUT", f"{DEFINITIONS}/{workflow}/acl", json={"subject": subject(token), "role": role})
    assert answer.status_code == 200
    return token


async def test_who_a_workflow_is_shared_with_sees_it_and_nothing_else(house: House):
    shared, hidden = await house.save(SHARED), await house.save(HIDDEN)
    token = await guest(house, shared, "viewer")

    seen = [await house.ask("GET", f"{DEFINITIONS}/{each}", token, params=HERE) for each in (shared, hidden)]
    listed = (await house.ask("GET", DEFINITIONS, token, params=HERE)).json()["items"]

    assert [each.status_code for each in seen] == [200, 404]
    assert [each["id"] for each in listed] == [shared]


async def test_a_role_for_one_workflow_is_that_role_and_no_more(house: House):
    workflow = await house.save(SHARED)
    viewer, operator = await guest(house, workflow, "viewer"), await guest(house, workflow, "operator")
    body = {"workflowDefinitionId": workflow, "workspaceId": "default"}

    started = [
        await house.ask("POST", "/workflow/executions/start", each, params=HERE, json=body)
        for each in (viewer, operator)
    ]

    assert [each.status_code for each in started] == [403, 202]


async def test_what_is_shared_no_more_is_gone_at_once(house: House):
    workflow = await house.save(SHARED)
    token = await guest(house, workflow, "editor")
    path = f"{DEFINITIONS}/{workflow}"
    before = await house.ask("GET", path, token, params=HERE)

    answers = [await house.ask("DELETE", f"{path}/acl", params={"subject": subject(token)}) for _ in range(2)]

    assert [each.json()["changed"] for each in answers] == [True, False]
    assert (before.status_code, (await house.ask("GET", path, token, params=HERE)).status_code) == (200, 404)


async def test_an_admin_of_one_workflow_shares_it_on_and_no_other(house: House):
    shared, hidden = await house.save(SHARED), await house.save(HIDDEN)
    admin = await guest(house, shared, "admin")
    body = {"subject": "user:friend", "role": "admin"}

    answers = [
        await house.ask("PUT", f"{DEFINITIONS}/{each}/acl", admin, params=HERE, json=body) for each in (shared, hidden)
    ]
    members = await house.ask("GET", "/members", admin, params=HERE)

    assert [each.status_code for each in answers] == [200, 404]
    assert members.status_code == 404


async def test_no_caller_shares_what_it_lacks(house: House):
    workflow = await house.save(SHARED)
    admin = await guest(house, workflow, "admin", scopes=(Right.READ, Right.ADMINISTER))
    path = f"{DEFINITIONS}/{workflow}/acl"

    answers = [
        await house.ask("PUT", path, admin, params=HERE, json={"subject": "user:other", "role": role})
        for role in ("viewer", "operator", "admin")
    ]

    assert [each.status_code for each in answers] == [200, 403, 403]


@pytest.mark.parametrize("role", ["runner", "root", "", None, 1])
async def test_there_are_roles_that_nothing_can_be_shared_in(house: House, role: Any):
    workflow = await house.save(SHARED)

    answer = await house.ask("PUT", f"{DEFINITIONS}/{workflow}/acl", json={"subject": "user:x", "role": role})

    assert (answer.status_code, answer.json()["problems"][0]["field"]) == (422, "role")


@pytest.mark.parametrize("workflow", ["absent", "a%00b", "x" * 65, "..", "a b"])
async def test_what_is_not_there_cannot_be_shared(house: House, workflow: str):
    body = {"subject": "user:x", "role": "viewer"}

    answer = await house.ask("PUT", f"{DEFINITIONS}/{workflow}/acl", json=body)

    assert answer.status_code in (404, 405, 422)


async def test_shares_are_listed_and_every_change_is_audited(house: House):
    workflow = await house.save({"ropewalk": 1, "name": "told", "nodes": []})
    path = f"{DEFINITIONS}/{workflow}/acl"
    for role in ("viewer", "editor", "editor"):
        await house.ask("PUT", path, json={"subject": "user:ann", "role": role})
    listed = (await house.ask("GET", path)).json()["items"]
    await house.ask("DELETE", path, params={"subject": "user:ann"})

    told = [each for each in await audit.listed(house.backend.store, "default") if "share" in each.verb]
    mine = [(each.verb, each.before, each.after, each.detail) for each in told[::-1] if each.object == workflow]

    assert [(each["subject"], each["role"]) for each in listed] == [("user:ann", "editor")]
    assert mine == [
        ("share-workflow", None, "viewer", "user:ann"),
        ("share-workflow", "viewer", "editor", "user:ann"),
        ("unshare-workflow", "editor", None, "user:ann"),
    ]

"""Workspaces over HTTP: made by operators, read by those who have a part in them."""

from typing import Any

import pytest

from ropewalk.access.rights import Role
from ropewalk.store import acl, audit, members
from tests.api.house import House, opened


async def made(house: House, **body: Any) -> dict[str, Any]:
    answer = await house.ask("POST", "/workspaces", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def ids(house: House, token: str | None = None, **query: Any) -> list[str]:
    return [each["id"] for each in (await house.ask("GET", "/workspaces", token, params=query)).json()["items"]]


@pytest.mark.parametrize(
    ("body", "plan", "slots"),
    [
        ({}, "FREE", 1),
        ({"plan": "PRO"}, "PRO", 5),
        ({"plan": "PRO", "slots": 7}, "PRO", 7),
        ({"slots": None}, "FREE", None),
    ],
)
async def test_a_new_workspace_has_the_slots_of_its_plan_or_those_given(house: House, body: Any, plan: str, slots: Any):
    found = await made(house, id="acme", **body)

    assert (found["plan"], found["slots"]) == (plan, slots)
    assert (await house.ask("GET", "/workspaces/acme")).json() == found


@pytest.mark.parametrize(
    ("body", "plan", "slots"),
    [
        ({"plan": "ENTERPRISE"}, "ENTERPRISE", 20),
        ({"slots": 3}, "PRO", 3),
        ({"slots": None}, "PRO", None),
        ({"plan": "FREE", "slots": 2}, "FREE", 2),
        ({}, "PRO", 5),
    ],
)
async def test_a_change_touches_only_what_it_names(house: House, body: Any, plan: str, slots: int | None):
    await made(house, id="acme", plan="PRO")

    found = (await house.ask("PATCH", "/workspaces/acme", json=body)).json()

    assert (found["plan"], found["slots"]) == (plan, slots)


async def test_changes_are_in_the_audit_log_of_the_workspace(house: House):
    await made(house, id="acme")
    await house.ask("PATCH", "/workspaces/acme", json={"slots": None})

    found = await audit.listed(house.backend.store, "acme")

    assert [(entry.verb, entry.before, entry.after) for entry in found] == [
        ("change-workspace", "FREE, 1 slots", "FREE, no limit"),
        ("create-workspace", None, "FREE, 1 slots"),
    ]


SHOP = {"shop": {"limit": 10, "per": "1s", "hosts": ["*.shop.example"]}}
LIMITED = {"name": "limited", "nodes": [{"id": "a", "type": "noop", "rateLimit": "shop"}]}


async def test_a_workspace_has_rate_limits_that_its_nodes_may_name(house: House):
    unknown = await house.ask("POST", "/workflow/definitions", json=LIMITED)

    changed = await house.ask("PATCH", "/workspaces/default", json={"rateLimits": SHOP})
    known = await house.ask("POST", "/workflow/definitions", json=LIMITED)
    kept = await house.ask("PATCH", "/workspaces/default", json={"slots": None})
    (noted, *_) = await audit.listed(house.backend.store, "default", audit.Filter(verb="change-workspace"))

    assert unknown.status_code == 422
    assert unknown.json()["problems"] == [
        {"field": "nodes[0].rateLimit", "message": "there is no rate limit 'shop'; there are none"}
    ]
    assert (changed.json()["rateLimits"], kept.json()["rateLimits"]) == (SHOP, SHOP)
    assert known.status_code == 201
    assert str(noted.after).endswith("shop 10 per 1s")


async def test_rate_limits_are_given_up_as_a_whole(house: House):
    await made(house, id="acme", rateLimits=SHOP)

    assert (await house.ask("PATCH", "/workspaces/acme", json={"rateLimits": {}})).json()["rateLimits"] == {}


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"shop": {"limit": 0, "per": "1s"}}, "rateLimits.shop.limit"),
        ({"shop": {"limit": 10**9, "per": "1s"}}, "rateLimits.shop.limit"),
        ({"shop": {"limit": 10**6, "per": 1}}, "rateLimits.shop.limit"),
        ({"shop": {"limit": 1.5, "per": "1s"}}, "rateLimits.shop.limit"),
        ({"shop": {"limit": 1, "per": "never"}}, "rateLimits.shop.per"),
        ({"shop": {"limit": 1}}, "rateLimits.shop.per"),
        ({"shop": {"limit": 1, "per": "1s", "hosts": ["http://x"]}}, "rateLimits.shop.hosts"),
        ({"shop": {"limit": 1, "per": "1s", "burst": 2}}, "rateLimits.shop.burst"),
        ({"a b": {"limit": 1, "per": "1s"}}, "rateLimits.a b"),
        ({"shop": 10}, "rateLimits.shop"),
    ],
)
async def test_a_rate_limit_that_makes_no_sense_is_refused_and_not_stored(house: House, limits: Any, field: str):
    answer = await house.ask("PATCH", "/workspaces/default", json={"rateLimits": limits})

    assert (answer.status_code, answer.json()["problems"][0]["field"]) == (422, field)
    assert (await house.ask("GET", "/workspaces/default")).json()["rateLimits"] == {}


async def test_an_id_that_is_taken_is_refused_and_changes_nothing(house: House):
    await made(house, id="acme", plan="PRO")

    answer = await house.ask("POST", "/workspaces", json={"id": "acme", "plan": "FREE"})

    assert answer.status_code == 409
    assert (await house.ask("GET", "/workspaces/acme")).json()["plan"] == "PRO"


@pytest.mark.parametrize(
    "body", [{"id": "a b"}, {"id": ""}, {"id": "x" * 65}, {"id": "a", "plan": "GOLD"}, {"id": "a", "slots": 0}, {}]
)
async def test_what_does_not_fit_is_refused_with_its_field(house: House, body: Any):
    answer = await house.ask("POST", "/workspaces", json=body)

    assert answer.status_code == 422
    assert answer.json()["problems"]


async def test_only_operators_make_and_change_workspaces(house: House):
    admin = await house.key(Role.ADMIN)

    answers = [
        await house.ask("POST", "/workspaces", admin, json={"id": "acme"}),
        await house.ask("PATCH", "/workspaces/default", admin, json={"slots": 9}),
    ]

    assert [answer.status_code for answer in answers] == [403, 403]


async def test_what_is_not_there_cannot_be_changed(house: House):
    assert (await house.ask("PATCH", "/workspaces/nowhere", json={"slots": 1})).status_code == 404


async def share_with(house: House, subject: str) -> None:
    async with house.backend.store.transaction() as tx:
        await members.put(tx, members.Member("member", subject, Role.VIEWER, 1, "test"))
        await acl.put(tx, acl.Share("shared", "w1", subject, Role.VIEWER, 1, "test"))


async def test_each_caller_sees_the_workspaces_they_have_a_part_in_and_no_other(house: House):
    for name in ("home", "member", "shared", "foreign"):
        await house.workspace(name)
    viewer = await house.key(Role.VIEWER, "home")
    await share_with(house, f"key:{viewer.split('_')[1]}")

    assert await ids(house, viewer) == ["home", "member", "shared"]
    assert await ids(house, viewer, limit=2) == ["home", "member"]
    assert await ids(house) == ["default", "foreign", "home", "member", "shared"]
    read = [await house.ask("GET", f"/workspaces/{name}", viewer) for name in ("home", "member", "foreign", "absent")]
    assert [answer.status_code for answer in read] == [200, 200, 404, 404]


async def test_it_is_the_same_on_postgresql(database: str):
    async with opened(database) as house:
        for name in ("home", "member", "shared", "foreign"):
            await house.workspace(name)
        viewer = await house.key(Role.VIEWER, "home")
        await share_with(house, f"key:{viewer.split('_')[1]}")

        assert await ids(house, viewer) == ["home", "member", "shared"]

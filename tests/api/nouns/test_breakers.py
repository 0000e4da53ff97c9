"""Breakers over HTTP: seen by the whole workspace, and closed by hand."""

from typing import Any

import pytest

from ropewalk.access.rights import Role
from ropewalk.core.events import RunWaiting
from ropewalk.store import audit
from tests.api.stories import Town
from tests.engines.worlds import at_most, flow, node

BREAKERS = "/breakers"
TARGET = "call shop"
DOWN = flow(*[node(f"a{n}", "call", fails=99, retry={"maxAttempts": 1}) for n in range(10)], name="down")
UP = flow(node("a", "call", value="through"), name="up")
AWAY = flow(node("a", "call", endpoint="bank"), name="away")


async def opened(town: Town) -> None:
    """The target was called ten times, and has failed each time."""
    await town.run(DOWN)


async def test_a_target_that_failed_too_often_is_listed_as_open(town: Town):
    await opened(town)

    (found,) = (await town.get(BREAKERS))["items"]

    assert (found["target"], found["state"]) == (TARGET, "OPEN")
    assert (found["callCount"], found["failureCount"], found["successCount"]) == (10, 10, 0)
    assert found["nextRetry"] > found["openedAt"]


async def test_a_breaker_closed_by_hand_lets_those_go_on_whom_it_holds_and_says_so_once(each_town: Town):
    await opened(each_town)
    held = await each_town.start(UP)
    await each_town.until(held, RunWaiting)
    # By then a run that asked once more whether it is closed has been told that it is not.
    await each_town.run(AWAY)

    first = await each_town.tell(f"{BREAKERS}/reset", {"target": TARGET})
    second = await each_town.tell(f"{BREAKERS}/reset", {"target": TARGET})

    assert (first.json(), second.json()) == (
        {"target": TARGET, "changed": True},
        {"target": TARGET, "changed": False},
    )
    assert (await at_most(10, each_town.service.ended(held))).output == {"a": "through"}
    assert (await each_town.get(BREAKERS))["items"][0]["state"] == "CLOSED"
    (row,) = await audit.listed(each_town.backend.store, "default", audit.Filter(verb="reset"))
    assert (row.object, row.before, row.after) == (TARGET, "OPEN", "CLOSED")


async def test_lists_go_on_where_a_page_ended(town: Town):
    for endpoint in ("c", "a", "b"):
        await town.run({**flow(node("a", "call", fails=9, endpoint=endpoint)), "name": endpoint})

    first = await town.get(f"{BREAKERS}?limit=2")
    rest = await town.get(f"{BREAKERS}?limit=2&cursor={first['next']}")

    assert [each["target"] for each in (*first["items"], *rest["items"])] == ["call a", "call b", "call c"]


@pytest.mark.parametrize(
    ("body", "status"),
    [({"target": "call unknown"}, 404), ({"target": ""}, 422), ({"target": "x" * 1025}, 422), ({}, 422), ([], 422)],
)
async def test_only_what_is_there_is_closed(town: Town, body: Any, status: int):
    answer = await town.tell(f"{BREAKERS}/reset", body)

    assert answer.status_code == status
    assert (await town.get(BREAKERS))["items"] == []


async def test_a_breaker_belongs_to_one_workspace(town: Town):
    await opened(town)
    await town.workspace("acme")
    stranger, viewer = await town.key(Role.ADMIN, "acme"), await town.key(Role.VIEWER)

    assert (await town.get(BREAKERS, stranger))["items"] == []
    assert (await town.tell(f"{BREAKERS}/reset", {"target": TARGET}, stranger)).status_code == 404
    assert (await town.tell(f"{BREAKERS}/reset", {"target": TARGET}, viewer)).status_code == 403
    assert (await town.get(BREAKERS, viewer))["items"][0]["state"] == "OPEN"

"""What executions may be told over HTTP: told once, a no-op when it holds already, refused when it is too late."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ropewalk.access.rights import Role
from ropewalk.core.events import RunWaiting
from ropewalk.store import audit
from tests.api.stories import ASK, BROKEN, EXECUTIONS, GATED, UNKNOWN_ID, Town, town_on
from tests.engines.worlds import ONCE, act, flow, node

SIGNALLED = flow(node("w", "wait", signal="paid"), name="signalled")
MENDED = flow(act("a", fails=1, retry=ONCE), name="mended")
BODIES: dict[str, Any] = {
    "rerun": {"node": "a"},
    "signal": {"name": "paid"},
    "approve": {"node": "ask", "approved": True},
}
VERBS = ("cancel", "pause", "resume", "retry", "rerun", "replay", "signal", "approve")


async def waiting(town: Town) -> str:
    execution = await town.start(ASK)
    await town.until(execution, RunWaiting)
    return execution


async def paused(town: Town) -> str:
    execution = await waiting(town)
    await town.service.pause(execution)
    return execution


async def cancelled(town: Town) -> str:
    execution = await waiting(town)
    await town.service.cancel(execution)
    await town.service.ended(execution)
    return execution


async def failed(town: Town) -> str:
    return await town.run(BROKEN)


async def succeeded(town: Town) -> str:
    return await town.run(flow(act("a"), name="good"))


@pytest.mark.parametrize(
    ("verb", "given", "status", "changed"),
    [
        ("cancel", waiting, 202, True),
        ("cancel", paused, 202, True),
        ("cancel", cancelled, 200, False),
        ("cancel", succeeded, 409, None),
        ("cancel", failed, 409, None),
        ("pause", waiting, 202, True),
        ("pause", paused, 200, False),
        ("pause", succeeded, 409, None),
        ("resume", paused, 202, True),
        ("resume", waiting, 200, False),
        ("resume", cancelled, 409, None),
        ("retry", failed, 202, True),
        ("retry", waiting, 409, None),
        ("retry", succeeded, 409, None),
        ("rerun", succeeded, 202, None),
        ("rerun", failed, 202, None),
        ("rerun", waiting, 409, None),
        ("replay", succeeded, 202, None),
        ("replay", cancelled, 202, None),
        ("replay", waiting, 409, None),
        ("signal", waiting, 202, True),
        ("signal", succeeded, 409, None),
        ("approve", waiting, 202, True),
        ("approve", succeeded, 409, None),
    ],
)
async def test_a_verb_is_carried_out_or_holds_already_or_is_refused(
    town: Town, verb: str, given: Callable[[Town], Awaitable[str]], status: int, changed: bool | None
):
    execution = await given(town)

    answer = await town.tell(f"{EXECUTIONS}/{execution}/{verb}", BODIES.get(verb))

    assert answer.status_code == status, answer.text
    assert answer.json().get("changed") == changed


async def test_the_first_answer_to_an_approval_counts(town: Town):
    execution = await waiting(town)
    path = f"{EXECUTIONS}/{execution}/approve"

    first = await town.tell(path, {"node": "ask", "approved": False, "payload": {"why": "no"}})
    second = await town.tell(path, {"node": "ask", "approved": True})

    assert (first.status_code, second.status_code) == (202, 409)
    output = (await town.service.ended(execution)).output["ask"]
    assert (output["approved"], output["payload"]) == (False, {"why": "no"})
    assert output["by"].startswith("key:")


async def test_a_signal_reaches_who_waits_for_it(town: Town):
    execution = await town.start(SIGNALLED)
    await town.until(execution, RunWaiting)

    answer = await town.tell(f"{EXECUTIONS}/{execution}/signal", {"name": "paid", "payload": 12})

    assert answer.status_code == 202
    assert (await town.service.ended(execution)).output == {"w": 12}


async def test_a_retried_execution_goes_on(town: Town):
    execution = await town.run(MENDED)

    answer = await town.tell(f"{EXECUTIONS}/{execution}/retry")

    assert answer.status_code == 202
    assert (await town.service.ended(execution)).state == "SUCCESS"


@pytest.mark.parametrize(("verb", "body"), [("replay", None), ("rerun", {"node": "b"})])
@pytest.mark.parametrize(("value", "is_same"), [("{{ input }}", True), ("{{ execution.id }}", False)])
async def test_what_is_done_again_says_whether_it_gave_the_same(
    town: Town, verb: str, body: Any, value: str, is_same: bool
):
    source = await town.run(flow(act("a", 1), act("b", value), edges="a->b", name="again"), {"n": 1})

    answer = (await town.tell(f"{EXECUTIONS}/{source}/{verb}", body)).json()

    assert (answer["sourceExecutionId"], answer["sameOutput"]) == (source, None)
    await town.service.ended(answer["executionId"])
    found = await town.get(f"{EXECUTIONS}/{answer['executionId']}")
    assert (found["sourceExecutionId"], found["sameOutput"]) == (source, is_same)
    assert (await town.get(f"{EXECUTIONS}/{source}"))["sourceExecutionId"] is None
    assert len(town.outside.attempts(answer["executionId"], "a")) == (1 if verb == "replay" else 0)


@pytest.mark.parametrize("verb", ["replay", "rerun"])
async def test_what_was_archived_is_not_done_again(town: Town, verb: str):
    source = await town.run(flow(act("a"), name="retired"))
    workflow = (await town.get(f"{EXECUTIONS}/{source}"))["workflowId"]
    await town.tell(f"/workflow/definitions/{workflow}/archive")

    answer = await town.tell(f"{EXECUTIONS}/{source}/{verb}", BODIES.get(verb))

    assert answer.status_code == 409
    assert "archived" in answer.json()["detail"]
    assert [each["id"] for each in (await town.get(EXECUTIONS))["items"]] == [source]


async def test_an_archived_workflow_lets_what_failed_go_on(town: Town):
    execution = await town.run(MENDED)
    workflow = (await town.get(f"{EXECUTIONS}/{execution}"))["workflowId"]
    await town.tell(f"/workflow/definitions/{workflow}/archive")

    await town.tell(f"{EXECUTIONS}/{execution}/retry")

    assert (await town.service.ended(execution)).state == "SUCCESS"


async def test_large_outputs_are_compared_too(town: Town):
    source = await town.run(flow(act("a", "{{ input }}", forEach=[1, 2]), name="large"), "x" * 90_000)

    again = (await town.tell(f"{EXECUTIONS}/{source}/replay")).json()["executionId"]

    await town.service.ended(again)
    assert (await town.get(f"{EXECUTIONS}/{again}"))["sameOutput"] is True


async def test_a_replay_that_has_not_ended_says_nothing_yet(town: Town):
    town.outside.gate().open()
    source = await town.run(GATED)
    asked = await town.start(ASK)
    await town.until(asked, RunWaiting)
    await town.tell(f"{EXECUTIONS}/{asked}/approve", BODIES["approve"])
    await town.service.ended(asked)
    again = (await town.tell(f"{EXECUTIONS}/{asked}/replay")).json()["executionId"]
    await town.until(again, RunWaiting)

    assert (await town.get(f"{EXECUTIONS}/{again}"))["sameOutput"] is None
    assert (await town.get(f"{EXECUTIONS}/{source}"))["sameOutput"] is None


@pytest.mark.parametrize("verb", VERBS)
async def test_what_is_anothers_answers_like_what_is_not_there(town: Town, verb: str):
    await town.workspace("acme")
    foreign = await town.run(flow(act("a"), name="theirs"), workspace="acme")
    stranger = await town.key(Role.ADMIN)

    theirs, absent = [
        await town.tell(f"{EXECUTIONS}/{each}/{verb}", BODIES.get(verb), stranger) for each in (foreign, UNKNOWN_ID)
    ]

    assert (theirs.status_code, absent.status_code) == (404, 404)
    assert theirs.json()["detail"].replace(foreign, "") == absent.json()["detail"].replace(UNKNOWN_ID, "")


@pytest.mark.parametrize("verb", VERBS)
async def test_a_viewer_tells_no_execution_anything(town: Town, verb: str):
    execution, viewer = await waiting(town), await town.key(Role.VIEWER)

    answer = await town.tell(f"{EXECUTIONS}/{execution}/{verb}", BODIES.get(verb), viewer)

    assert answer.status_code == 403
    assert (await town.get(f"{EXECUTIONS}/{execution}"))["state"] == "RUNNING"


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        ("cancel", {"reason": "x" * 1001}, 422),
        ("cancel", {"why": "x"}, 422),
        ("cancel", [], 422),
        ("pause", {"reason": 7}, 422),
        ("rerun", None, 422),
        ("rerun", {"node": "no such"}, 422),
        ("rerun", {"node": "nix"}, 404),
        ("rerun", {"node": "a", "version": 99}, 404),
        ("rerun", {"node": "a", "version": 0}, 422),
        ("rerun", {"node": "a", "version": 2**60}, 400),
        ("signal", {"name": ""}, 422),
        ("signal", {"name": "x" * 256}, 422),
        ("signal", {"payload": 1}, 422),
        ("approve", {"node": "a"}, 422),
        ("approve", {"node": "a", "approved": "yes"}, 422),
        ("approve", {"node": "nix", "approved": True}, 409),
        ("approve", {"node": "a", "approved": True}, 409),
        ("approve", {"node": "a", "approved": True, "item": -1}, 422),
        ("approve", {"node": "a", "approved": True, "item": 7}, 409),
    ],
)
async def test_what_makes_no_sense_is_refused_and_changes_nothing(town: Town, verb: str, body: Any, status: int):
    execution = await succeeded(town)
    before = await audit.listed(town.backend.store, "default")

    answer = await town.tell(f"{EXECUTIONS}/{execution}/{verb}", body)

    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert await audit.listed(town.backend.store, "default") == before


async def test_a_verb_leaves_an_audit_row_with_who_and_what(town: Town):
    execution, operator = await waiting(town), await town.key(Role.OPERATOR)
    await town.tell(f"{EXECUTIONS}/{execution}/pause", {"reason": "lunch"}, operator)
    await town.tell(f"{EXECUTIONS}/{execution}/pause", token=operator)

    rows = await audit.listed(town.backend.store, "default", audit.Filter(object=execution))

    assert [(row.verb, row.actor) for row in rows][:1] == [("pause", f"key:{operator.split('_')[1]}")]
    assert [row.verb for row in rows] == ["pause", "start"]


async def test_verbs_reach_executions_on_a_shared_store(database: str):
    async with town_on(database) as town:
        execution = await waiting(town)

        answers = [
            await town.tell(f"{EXECUTIONS}/{execution}/{verb}") for verb in ("pause", "pause", "resume", "cancel")
        ]

        assert [each.status_code for each in answers] == [202, 200, 202, 202]
        again = await town.tell(f"{EXECUTIONS}/{execution}/replay")
        await town.until(again.json()["executionId"], RunWaiting)
        found = await town.get(f"{EXECUTIONS}/{again.json()['executionId']}")
        assert found["sourceExecutionId"] == execution

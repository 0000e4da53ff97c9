"""A share of one workflow is a share of one workflow: what it calls, hears and reads is bounded by who saved it and
who starts it."""

from typing import Any

import pytest
from msgspec import UNSET

from ropewalk.access.rights import Role
from ropewalk.core.duration import SECOND
from ropewalk.core.events import NodeFailed, RunWaiting
from ropewalk.core.rate_limit import RateLimit
from ropewalk.service import workspaces
from ropewalk.store import acl, members
from tests.api.stories import BATCH, EXECUTIONS, START, Town, fields, town_on
from tests.engines.worlds import act, flow, node

DEFINITIONS = "/workflow/definitions"
HERE = {"workspaceId": "default"}
SECRET = flow(act("a", {"pin": 4711}), name="secret")
SHARED = flow(node("a", "noop"), name="shared")
Json = dict[str, Any]


def subject(token: str) -> str:
    return f"key:{token.split('_')[1]}"


def calling(workflow: str, name: str = "shared", **more: Any) -> Json:
    return flow(node("call", "subworkflow", workflow=workflow, **more), name=name)


async def share(town: Town, workflow: str, token: str, role: Role) -> None:
    store = town.backend.store
    async with store.transaction() as tx:
        await acl.put(tx, acl.Share("default", workflow, subject(token), role, store.now(), "test"))
    town.backend.forget()


async def unshare(town: Town, workflow: str, token: str) -> None:
    async with town.backend.store.transaction() as tx:
        await acl.remove(tx, "default", workflow, subject(token))
    town.backend.forget()


async def save(town: Town, workflow: str, document: Json, token: str, **more: Any) -> Any:
    headers = {"If-Match": "*"}
    about = {"params": {**HERE, "publish": "true"}, "headers": headers, "json": document, **more}
    return await town.ask("POST", f"{DEFINITIONS}/{workflow}/versions", token, **about)


async def started(town: Town, workflow: str, token: str | None = None, **more: Any) -> str:
    body = {"workflowDefinitionId": workflow, **more}
    answer = await town.ask("POST", START, token, params=HERE, json=body)
    assert answer.status_code == 202, answer.text
    execution: str = answer.json()["executionId"]
    await town.service.ended(execution)
    return execution


async def failure(town: Town, execution: str) -> NodeFailed:
    failed = await town.until(execution, NodeFailed)
    assert isinstance(failed, NodeFailed)
    return failed


# What is saved


async def test_a_share_does_not_save_a_call_of_what_is_not_shared(town: Town):
    shared, _ = await town.service.save(SHARED), await town.service.save(SECRET)
    guest = await town.shared_with(shared.workflow, Role.EDITOR)

    answers = [await save(town, shared.workflow, calling(name), guest) for name in ("secret", "no-such-workflow")]

    assert [each.status_code for each in answers] == [422, 422]
    assert fields(answers[0]) == ["nodes[0].with.workflow"]
    said = [each.json()["problems"][0]["message"] for each in answers]
    assert "share 'secret'" in said[0]
    assert said[0] == said[1].replace("no-such-workflow", "secret")


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (flow(node("hear", "wait", event="orders.>"), name="shared"), "nodes[0].with.event"),
        (flow(act("a", {"x": ["{{ env.HOME }}"]}), name="shared"), "nodes[0].with.value.x[0]"),
        (flow(act("a", "in {{ workspace }}"), name="shared"), "nodes[0].with.value"),
        ({**SHARED, "output": "{{ env }}"}, "output"),
        (flow(act("a", rateLimit="shop"), name="shared"), "nodes[0].rateLimit"),
    ],
)
async def test_a_share_saves_nothing_that_hears_or_reads_the_workspace(town: Town, document: Json, field: str):
    shared = await town.service.save(SHARED)
    guest = await town.shared_with(shared.workflow, Role.EDITOR)
    await workspaces.change(town.service, "default", None, UNSET, "test", {"shop": RateLimit(10, SECOND)})

    refused = await save(town, shared.workflow, document, guest)
    verdict = await town.ask("POST", f"{DEFINITIONS}/validate", guest, params=HERE, json=document)
    member = await save(town, shared.workflow, document, town.root)

    assert (refused.status_code, fields(refused)) == (422, [field])
    assert [each["field"] for each in verdict.json()["problems"]] == [field]
    assert member.status_code == 201


async def test_a_share_calls_what_is_shared_too_while_it_is(town: Town):
    shared, secret = await town.service.save(SHARED), await town.service.save(SECRET)
    guest = await town.shared_with(shared.workflow, Role.EDITOR)
    await share(town, secret.workflow, guest, Role.OPERATOR)

    saved = await save(town, shared.workflow, calling("secret"), guest)
    first = await started(town, shared.workflow, guest)
    await unshare(town, secret.workflow, guest)
    second = await started(town, shared.workflow, guest)

    assert saved.status_code == 201
    assert (await town.service.ended(first)).output == {"call": {"a": {"pin": 4711}}}
    error = (await failure(town, second)).error
    assert error.type == "PERMANENT"
    assert f"out of reach of {subject(guest)}" in error.message


async def test_a_share_to_look_at_a_workflow_is_none_to_call_it(town: Town):
    shared, secret = await town.service.save(SHARED), await town.service.save(SECRET)
    guest = await town.shared_with(shared.workflow, Role.EDITOR)
    await share(town, secret.workflow, guest, Role.VIEWER)

    assert (await save(town, shared.workflow, calling("secret"), guest)).status_code == 422


async def test_a_version_says_with_what_reach_it_was_saved(town: Town):
    shared = await town.service.save(SHARED)
    guest = await town.shared_with(shared.workflow, Role.EDITOR)
    other = flow(node("b", "noop"), name="shared")

    await save(town, shared.workflow, other, guest)
    again = await save(town, shared.workflow, other, town.root)
    versions = (await town.get(f"{DEFINITIONS}/{shared.workflow}/versions"))["items"]

    assert again.status_code == 201  # what reaches more is another version, though it says the same
    assert [(each["version"], each["reach"]) for each in versions] == [
        (3, "workspace"),
        (2, "shares"),
        (1, "workspace"),
    ]
    assert versions[1]["createdBy"] == subject(guest)


async def test_a_viewer_of_the_workspace_with_a_share_is_bounded_by_the_share(town: Town):
    shared, _ = await town.service.save(SHARED), await town.service.save(SECRET)
    viewer = await town.key(Role.VIEWER)
    await share(town, shared.workflow, viewer, Role.EDITOR)

    assert (await save(town, shared.workflow, calling("secret"), viewer)).status_code == 422


# What is executed


async def test_who_starts_what_a_member_saved_reaches_no_more_than_their_share(town: Town):
    await town.service.save(SECRET)
    shared = await town.service.save(calling("secret"))
    guest = await town.shared_with(shared.workflow, Role.OPERATOR)

    execution = await started(town, shared.workflow, guest)
    by_member = await started(town, shared.workflow)

    assert "the workflow 'secret' is out of reach" in (await failure(town, execution)).error.message
    assert (await town.service.ended(by_member)).output == {"call": {"a": {"pin": 4711}}}


async def test_a_computed_name_is_judged_when_it_is_called_whether_there_is_such_a_workflow_or_not(town: Town):
    await town.service.save(SECRET)
    shared = await town.service.save(SHARED)
    guest = await town.shared_with(shared.workflow, Role.EDITOR)

    saved = await save(town, shared.workflow, calling("{{ input }}"), guest)
    there, absent = [await started(town, shared.workflow, guest, input=each) for each in ("secret", "absent")]
    by_member = await started(town, shared.workflow, input="secret")

    assert saved.status_code == 201
    told = [(await failure(town, each)).error.message.split(": ", 1)[1] for each in (there, absent, by_member)]
    assert told[0] == told[1].replace("absent", "secret") == told[2]


async def test_the_bound_goes_down_to_children_of_children(town: Town):
    await town.service.save(SECRET)
    middle = await town.service.save(calling("secret", name="middle"))
    shared = await town.service.save(calling("middle"))
    guest = await town.shared_with(shared.workflow, Role.OPERATOR)
    await share(town, middle.workflow, guest, Role.OPERATOR)

    execution = await started(town, shared.workflow, guest)

    assert "the workflow 'secret' is out of reach" in (await failure(town, execution)).error.message


async def test_what_a_guest_saved_is_bounded_also_where_a_member_starts_it_or_calls_it(town: Town):
    await town.service.save(SECRET)
    shared = await town.service.save(SHARED)
    guest = await town.shared_with(shared.workflow, Role.EDITOR)
    await save(town, shared.workflow, calling("{{ input }}"), guest)
    caller = await town.service.save(calling("shared", name="caller", input="secret"))

    executions = [await started(town, shared.workflow, input="secret"), await started(town, caller.workflow)]

    for execution in executions:
        assert f"out of reach of {subject(guest)}" in (await failure(town, execution)).error.message


async def test_a_bounded_execution_hears_no_event_and_reads_no_value(tmp_path: Any):
    async with town_on(str(tmp_path / "ropewalk.db"), env={"PIN": "4711"}) as town:
        hears = await town.service.save(flow(node("hear", "wait", event="orders.>"), name="hears"))
        reads = await town.service.save(flow(act("a", "{{ env.PIN }}"), name="reads"))
        whole = await town.service.save({**SHARED, "name": "whole", "output": "{{ workspace }}"})
        await workspaces.change(town.service, "default", None, UNSET, "test", {"shop": RateLimit(10, SECOND)})
        limited = await town.service.save(flow(act("a", rateLimit="shop"), name="limited"))
        guest = await town.shared_with(hears.workflow, Role.OPERATOR)
        for each in (reads, whole, limited):
            await share(town, each.workflow, guest, Role.OPERATOR)

        executions = [await started(town, each.workflow, guest) for each in (hears, reads, whole, limited)]
        events = [(await town.get(f"{EXECUTIONS}/{each}/events"))["items"] for each in executions]

        ends = [await town.service.ended(each) for each in executions]
        assert [each.state for each in ends] == ["FAILED"] * 4
        assert "the event 'orders.>' is out of reach" in (await failure(town, executions[0])).error.message
        assert "`env` is out of reach" in (await failure(town, executions[1])).error.message
        assert "`workspace` is out of reach" in str(ends[2].error)
        assert "the rate limit 'shop' is out of reach" in (await failure(town, executions[3])).error.message
        assert "4711" not in str(events)
        assert not any(each["type"] == RunWaiting.__name__ for each in events[0])


async def test_no_answer_about_an_execution_shows_the_values_of_its_workspace(tmp_path: Any):
    async with town_on(str(tmp_path / "ropewalk.db"), env={"PIN": "4711"}) as town:
        shared = await town.service.save(SHARED)
        guest = await town.shared_with(shared.workflow, Role.ADMIN)
        execution = await started(town, shared.workflow)

        shown = [
            (await town.ask("GET", f"{EXECUTIONS}/{execution}{part}", guest, params=HERE)).text
            for part in ("", "/events", "/nodes", "/explain", "/stream")
        ]

        assert not [each for each in shown if "4711" in each]


async def test_a_batch_a_rerun_and_a_replay_of_a_guest_are_bounded_too(town: Town):
    await town.service.save(SECRET)
    shared = await town.service.save(calling("secret"))
    guest = await town.shared_with(shared.workflow, Role.OPERATOR)
    source = await started(town, shared.workflow)

    batch = await town.ask(
        "POST", BATCH, guest, params=HERE, json={"starts": [{"workflowDefinitionId": shared.workflow}]}
    )
    rerun = await town.ask("POST", f"{EXECUTIONS}/{source}/rerun", guest, params=HERE, json={"node": "call"})
    replay = await town.ask("POST", f"{EXECUTIONS}/{source}/replay", guest, params=HERE)

    ids = [batch.json()["started"][0]["executionId"], rerun.json()["executionId"], replay.json()["executionId"]]
    for execution in ids:
        assert (await town.service.ended(execution)).state == "FAILED"
        assert "out of reach" in (await failure(town, execution)).error.message


async def test_a_member_replays_what_a_guest_started_with_all_that_a_member_reaches(tmp_path: Any):
    async with town_on(str(tmp_path / "ropewalk.db"), env={"PIN": "4711"}) as town:
        reads = await town.service.save(flow(act("a", "{{ env.PIN }}"), name="reads"))
        guest = await town.shared_with(reads.workflow, Role.OPERATOR)
        source = await started(town, reads.workflow, guest)

        replay = (await town.tell(f"{EXECUTIONS}/{source}/replay")).json()["executionId"]

        assert (await town.service.ended(replay)).output == {"a": "4711"}


async def test_a_guest_hands_no_values_to_an_execution_that_reaches_more(town: Town):
    await town.service.save(SECRET)
    call = node("call", "subworkflow", workflow="{{ nodes.a.output.name }}")
    broken = act("a", "{{ 1 + null }}", retry={"maxAttempts": 1})
    shared = await town.service.save(flow(broken, call, edges="a->call", name="shared"))
    plain = await town.service.save(flow({**broken}, name="plain"))
    guest = await town.shared_with(shared.workflow, Role.OPERATOR)
    await share(town, plain.workflow, guest, Role.OPERATOR)
    letters = [(await town.letter(await started(town, each.workflow)))["id"] for each in (shared, plain)]
    fix = {"output": {"name": "secret"}}

    wide, narrow = [
        await town.ask("POST", f"/workflow/dead-letters/{each}/fix", guest, params=HERE, json=fix) for each in letters
    ]
    overrides = {"overrides": {"value": {"name": "secret"}}}
    over = await town.ask("POST", f"/workflow/dead-letters/{letters[0]}/requeue", guest, params=HERE, json=overrides)

    assert [wide.status_code, narrow.status_code, over.status_code] == [403, 202, 403]
    assert "replay the execution" in wide.json()["detail"]


async def test_a_guest_does_not_take_the_results_that_the_workspace_has_cached(town: Town):
    cached = act("a", 7, cache={"ttl": "1h"})
    mine, shared = [await town.service.save(flow(cached, name=each)) for each in ("mine", "shared")]
    guest = await town.shared_with(shared.workflow, Role.OPERATOR)

    first, again = await started(town, mine.workflow), await started(town, shared.workflow)
    bounded = await started(town, shared.workflow, guest)

    assert [town.outside.saw(each, "a") for each in (first, again, bounded)] == [1, 0, 1]


async def test_explain_names_who_bounds_what_was_stopped(town: Town):
    await town.service.save(SECRET)
    shared = await town.service.save(SHARED)
    saver = await town.shared_with(shared.workflow, Role.EDITOR)
    await save(town, shared.workflow, calling("{{ input }}"), saver)
    starter = await town.shared_with(shared.workflow, Role.OPERATOR)

    execution = await started(town, shared.workflow, starter, input="secret")
    explained = await town.get(f"{EXECUTIONS}/{execution}/explain")

    (node_,) = explained["nodes"]
    assert node_["waitsFor"]["boundedBy"] == [subject(starter), subject(saver)]
    assert node_["waitsFor"]["versionBoundedBy"] == subject(saver)
    assert "out of reach" in node_["why"]


async def test_a_guest_who_becomes_a_member_reaches_the_workspace(town: Town):
    await town.service.save(SECRET)
    shared = await town.service.save(calling("secret"))
    guest = await town.shared_with(shared.workflow, Role.OPERATOR)
    async with town.backend.store.transaction() as tx:
        await members.put(tx, members.Member("default", subject(guest), Role.OPERATOR, 0, "test"))
    town.backend.forget()

    assert (await town.service.ended(await started(town, shared.workflow, guest))).state == "SUCCESS"


async def test_a_key_that_was_revoked_reaches_nothing_by_what_it_saved(town: Town):
    shared, secret = await town.service.save(SHARED), await town.service.save(SECRET)
    guest = await town.shared_with(shared.workflow, Role.EDITOR)
    await share(town, secret.workflow, guest, Role.OPERATOR)
    await save(town, shared.workflow, calling("secret"), guest)

    revoked = await town.ask("DELETE", f"/keys/{subject(guest)[4:]}", params={"workspaceId": "elsewhere"})

    assert revoked.status_code == 200
    assert (await town.service.ended(await started(town, shared.workflow))).state == "FAILED"

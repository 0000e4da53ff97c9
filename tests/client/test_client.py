"""The client against the real server: workflows, executions, dead letters."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ropewalk.client import AsyncClient, AsyncExecution, Client
from ropewalk.core.errors import (
    Conflict,
    ExecutionEnded,
    Invalid,
    InvalidDefinition,
    InvalidInput,
    InvalidTransition,
    NotFound,
    Unauthenticated,
)
from ropewalk.store import workspaces
from tests.client.servers import Served, served, wired

ONE = {
    "ropewalk": 1,
    "name": "one",
    "vars": {"word": "Hello"},
    "nodes": [{"id": "a", "type": "set", "with": {"values": {"text": "{{ vars.word }} {{ input.name }}"}}}],
    "output": "{{ nodes.a.output.text }}",
}
ASKED = {"ropewalk": 1, "name": "asked", "nodes": [{"id": "ask", "type": "approval", "with": {"title": "Really?"}}]}
TOLD = {
    "ropewalk": 1,
    "name": "told",
    "nodes": [{"id": "word", "type": "wait", "with": {"signal": "word"}}],
    "output": "{{ nodes.word.output }}",
}
BROKEN = {"ropewalk": 1, "name": "broken", "nodes": [{"id": "stop", "type": "fail", "with": {"message": "no"}}]}


def chain(length: int) -> dict[str, Any]:
    """So many nodes, one after the other."""
    nodes = [{"id": f"n{index}", "type": "noop"} for index in range(length)]
    edges = [{"from": f"n{index}", "to": f"n{index + 1}"} for index in range(length - 1)]
    return {"ropewalk": 1, "name": "chain", "nodes": nodes, "edges": edges}


# Workflows


async def test_a_workflow_is_created_started_by_its_name_and_gives_its_result(client: AsyncClient):
    await client.create(ONE, publish=True)

    execution = await client.start("one", {"name": "you"}, vars={"word": "Bye"})

    assert await execution.result() == "Bye you"


async def test_a_document_is_saved_and_started_in_one_go(client: AsyncClient):
    first = await client.start(ONE, {"name": "you"})
    second = await client.start({**ONE, "output": "other"})

    assert (await first.result(), await second.result()) == ("Hello you", "other")


async def test_a_name_is_taken_once(client: AsyncClient):
    await client.create(ONE)

    with pytest.raises(Conflict):
        await client.create(ONE)


async def test_the_same_content_is_the_same_version(client: AsyncClient):
    first = await client.save(ONE, publish=True)

    assert await client.save(ONE, publish=True) == first
    assert (await client.save({**ONE, "description": "more"}))["version"] == 2
    assert [each["version"] async for each in client.versions(first["id"])] == [2, 1]


async def test_a_save_on_top_of_what_was_changed_meanwhile_is_refused(client: AsyncClient):
    base = await client.save(ONE)
    await client.save({**ONE, "description": "theirs"})

    with pytest.raises(Conflict):
        await client.save({**ONE, "description": "mine"}, on=base["hash"])

    assert (await client.definition("one"))["document"]["description"] == "theirs"


async def test_many_who_save_at_once_all_get_a_version(client: AsyncClient):
    await client.save(ONE)
    saved = await asyncio.gather(*(client.save({**ONE, "description": str(number)}) for number in range(3)))

    assert sorted(each["version"] for each in saved) == [2, 3, 4]


async def test_a_version_is_published_and_a_workflow_archived(client: AsyncClient):
    saved = await client.save(ONE)
    with pytest.raises(InvalidTransition):
        await client.start("one")

    assert (await client.publish(saved["id"], 1))["changed"]
    assert not (await client.publish(saved["id"], 1))["changed"]
    assert (await client.archive(saved["id"]))["changed"]


async def test_a_document_is_judged_without_being_stored(client: AsyncClient):
    good, bad = await client.validate(ONE), await client.validate({**ONE, "nodes": [{"id": "a", "type": "nosuch"}]})

    assert (good["valid"], bad["valid"]) == (True, False)
    assert bad["problems"][0]["field"] == "nodes[0].type"
    assert [each async for each in client.definitions()] == []


async def test_what_is_wrong_with_a_document_is_raised_with_its_places(client: AsyncClient):
    with pytest.raises(InvalidDefinition) as refused:
        await client.save({**ONE, "nodes": [{"id": "a", "type": "nosuch"}]})

    assert refused.value.problems[0].path == ("nodes", 0, "type")


async def test_expressions_and_node_types_can_be_asked_for(client: AsyncClient):
    assert (await client.evaluate("{{ input.n * 2 }}", {"input": {"n": 21}}))["value"] == 42
    assert "http.request" in [each["name"] async for each in client.node_types()]


# Executions


async def test_an_execution_that_failed_raises_what_became_of_it(client: AsyncClient):
    await client.save(BROKEN, publish=True)
    execution = await client.start("broken")

    with pytest.raises(ExecutionEnded, match=r"ended FAILED: .*no") as ended:
        await execution.result()

    assert ended.value.state == "FAILED"


async def test_a_result_may_be_too_large_to_be_shown(client: AsyncClient):
    values = dict.fromkeys("abc", "{{ input }}")
    node = {"id": "large", "type": "set", "with": {"values": values}}
    execution = await client.start({"ropewalk": 1, "name": "large", "nodes": [node]}, "x" * 700_000)

    result = await execution.result()

    assert (await execution.details())["output"] is None
    assert {name: len(value) for name, value in result["large"].items()} == {"a": 700_000, "b": 700_000, "c": 700_000}


async def test_whoever_waits_for_a_result_gets_it_when_it_is_there(client: AsyncClient):
    await client.save(TOLD, publish=True)
    execution = await client.start("told")
    waiting = asyncio.ensure_future(execution.result())

    await execution.signal("word", {"n": 1})

    assert await asyncio.wait_for(waiting, 30) == {"n": 1}


async def test_events_come_once_and_in_order_until_the_end(client: AsyncClient):
    await client.save(chain(20), publish=True)
    execution = await client.start("chain")

    seen = [event async for event in execution.events()]

    assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))
    assert (seen[0]["type"], seen[-1]["type"]) == ("ExecutionAccepted", "ExecutionSucceeded")
    assert [event["seq"] async for event in execution.recorded(after=3)] == [event["seq"] for event in seen[3:]]
    assert [event["seq"] async for event in execution.events(after=3)] == [event["seq"] for event in seen[3:]]


async def test_a_cut_wire_loses_no_event(server: Served):
    async with wired(server.url) as wire, AsyncClient(wire.url, server.token) as client:
        await client.save({**TOLD, "nodes": [*TOLD["nodes"], *chain(3)["nodes"]]}, publish=True)
        execution = await client.start("told")
        seen, cuts = [], 0
        async for event in execution.events():
            seen.append(event["seq"])
            if cuts < 3:
                cuts += wire.cut() > 0
            if event["type"] == "RunWaiting":
                await execution.signal("word")

    assert seen == list(range(1, len(seen) + 1))
    assert cuts == 3


async def test_whoever_follows_does_not_notice_that_the_server_is_replaced(tmp_path: Path):
    db, seen = str(tmp_path / "ropewalk.db"), asyncio.Queue[Any]()

    async def follow(execution: AsyncExecution) -> None:
        async for event in execution.events():
            seen.put_nowait((event["seq"], event["type"]))

    async with served(db) as first:
        client = AsyncClient(first.url, first.token)
        execution = await client.start(TOLD)
        following = asyncio.ensure_future(follow(execution))
        told = [await asyncio.wait_for(seen.get(), 30)]
        while told[-1][1] != "RunWaiting":
            told.append(await asyncio.wait_for(seen.get(), 30))
    async with served(db, port=int(first.url.rpartition(":")[2])), client:
        await execution.signal("word", 7)
        await asyncio.wait_for(following, 30)
        result = await execution.result()
    told += [seen.get_nowait() for _ in range(seen.qsize())]

    assert result == 7
    assert [seq for seq, _ in told] == list(range(1, len(told) + 1))
    assert told[-1][1] == "ExecutionSucceeded"


async def test_verbs_say_whether_anything_has_changed(client: AsyncClient):
    await client.save(ASKED, publish=True)
    execution = await client.start("asked")

    assert (await execution.pause("lunch"))["changed"]
    assert not (await execution.pause())["changed"]
    assert (await execution.resume())["changed"]
    assert (await execution.cancel())["changed"]
    assert (await execution.wait())["state"] == "CANCELLED"
    with pytest.raises(ExecutionEnded, match="CANCELLED"):
        await execution.result()
    with pytest.raises(InvalidTransition):
        await execution.pause()


async def test_an_approval_is_given_once(client: AsyncClient):
    await client.save(ASKED, publish=True)
    execution = await client.start("asked")
    async for event in execution.events():
        if event["type"] == "RunWaiting":
            await execution.approve("ask", {"note": "fine"})

    assert (await execution.details())["state"] == "SUCCESS"
    with pytest.raises(InvalidTransition):
        await execution.reject("ask")


async def test_an_execution_shows_its_nodes_runs_and_reasons(client: AsyncClient):
    await client.save(ASKED, publish=True)
    execution = await client.start("asked")
    async for event in execution.events():
        if event["type"] == "RunWaiting":
            break

    assert [(node["id"], node["state"]) async for node in execution.nodes()] == [("ask", "RUNNING")]
    assert [(run["node"], run["state"]) async for run in execution.runs()] == [("ask", "WAITING")]
    assert (await execution.explain())["waitingFor"] == "approval"
    assert (await execution.explain("ask"))["nodes"][0]["id"] == "ask"


async def test_executions_are_done_again_as_a_whole_or_in_part(client: AsyncClient):
    await client.save(ONE, publish=True)
    execution = await client.start("one", {"name": "you"})
    await execution.result()

    for again in (await execution.replay(), await execution.rerun("a")):
        assert await client.execution(again).result() == "Hello you"


async def test_lists_go_through_every_page(client: AsyncClient):
    saved = await client.save(ONE, publish=True)
    ids = await client.start_all([{"workflowDefinitionId": saved["id"], "input": {"name": "x"}}] * 450)

    assert len(ids) == 450
    assert [each["id"] async for each in client.executions(workflow=saved["id"])] == sorted(ids, reverse=True)
    assert len([each async for each in client.executions(limit=201)]) == 201


async def test_bad_input_is_named_and_nothing_starts(client: AsyncClient):
    await client.save({**ONE, "input": {"type": "object", "required": ["name"]}}, publish=True)

    with pytest.raises(InvalidInput) as refused:
        await client.start("one", {})

    assert "name" in str(refused.value)
    assert [each async for each in client.executions()] == []


@pytest.mark.parametrize("execution", ["nosuch", "../keys", "a/b?c#d", "\u00fc"])
async def test_what_is_not_there_is_not_found(execution: str, client: AsyncClient):
    with pytest.raises((NotFound, Invalid)):
        await client.execution(execution).details()


async def test_a_workflow_nobody_knows_is_not_found(client: AsyncClient):
    with pytest.raises(NotFound, match="'nosuch'"):
        await client.start("nosuch")


async def test_a_workspace_is_a_world_of_its_own(server: Served, client: AsyncClient):
    async with server.office.store.transaction() as tx:
        await workspaces.ensure(tx, "acme", workspaces.Plan.PRO, server.office.store.now())
    async with AsyncClient(server.url, server.token, "acme") as there:
        execution = await there.start(ONE, {"name": "you"})

        assert await execution.result() == "Hello you"
        assert [each["id"] async for each in there.executions()] == [execution.id]
    assert [each async for each in client.executions()] == []
    with pytest.raises(NotFound):
        await client.execution(execution.id).details()


async def test_a_wrong_token_is_refused(server: Served):
    async with AsyncClient(server.url, "rw_wrong_key") as stranger:
        with pytest.raises(Unauthenticated):
            await stranger.me()


# Dead letters


async def dead_letter(client: AsyncClient, workflow: dict[str, Any] = BROKEN) -> str:
    """The id of a letter of an execution that failed."""
    await client.save(workflow, publish=True)
    execution = await client.start(workflow["name"])
    with pytest.raises(ExecutionEnded):
        await execution.result()
    (newest,) = [each["id"] async for each in client.dead_letters(limit=1)]
    return newest


async def test_a_letter_is_noted_fixed_and_its_execution_goes_on(client: AsyncClient):
    letter = await dead_letter(client)
    await client.note(letter, "asked the bank")

    execution = await client.fix(letter, {"by": "hand"})

    assert await client.execution(execution).result() == {"stop": {"by": "hand"}}
    assert "asked the bank" in str((await client.dead_letter(letter))["notes"])
    with pytest.raises(Conflict):
        await client.requeue(letter)


async def test_a_letter_is_tried_again_with_other_inputs(client: AsyncClient):
    letter = await dead_letter(client)

    execution = await client.requeue(letter, {"message": "still no"})

    with pytest.raises(ExecutionEnded, match="still no"):
        await client.execution(execution).result()
    (second,) = [each["id"] async for each in client.dead_letters(execution=execution)]
    assert [each async for each in client.dead_letters(execution=letter)] == []
    assert (await client.discard(second))["resolution"] == "DISCARDED"


async def test_what_failed_alike_is_worked_off_step_by_step(client: AsyncClient):
    for _ in range(3):
        await dead_letter(client)
    (group,) = [each async for each in client.dead_letter_groups()]

    requeued = [each["outcome"] async for each in client.requeue_all(group["fingerprint"], limit=1)]
    stopped = [each["outcome"] async for each in client.requeue_all(group["fingerprint"], stop_after_failures=1)]

    assert group["count"] == 3
    assert requeued == ["REQUEUED"]
    assert (stopped[0], stopped[-1]) == ("REQUEUED", "STOPPED")


# External runners


async def test_a_runner_is_handed_runs_and_its_report_counts(server: Served, client: AsyncClient):
    painted = {"id": "paint", "type": "set", "pool": "paint", "with": {"values": {"colour": "red"}}}
    await client.save({"ropewalk": 1, "name": "painted", "nodes": [painted]}, publish=True)
    execution = await client.start("painted")
    runner = client.runner("paint", "painter-1")

    lease = await anext(aiter(runner.leases()))
    kept = await lease.heartbeat()
    await lease.complete({"painted": lease.inputs["values"]["colour"]})

    assert kept["stop"] is False
    assert await execution.result() == {"paint": {"painted": "red"}}
    with pytest.raises(InvalidTransition):
        await lease.complete("again")


async def test_a_run_that_failed_at_its_runner_is_tried_again(client: AsyncClient):
    painted = {"id": "paint", "type": "set", "pool": "paint", "with": {"values": {}}, "retry": {"delay": "10ms"}}
    await client.save({"ropewalk": 1, "name": "painted", "nodes": [painted]}, publish=True)
    execution = await client.start("painted")

    attempts = []
    async for lease in client.runner("paint").leases():
        attempts.append(lease.run["attempt"])
        await lease.fail("out of red", "TRANSIENT" if len(attempts) == 1 else "PERMANENT")
        if len(attempts) == 2:
            break

    assert attempts == [1, 2]
    with pytest.raises(ExecutionEnded, match="out of red"):
        await execution.result()


async def test_an_event_a_queue_item_and_the_workers_can_be_asked_for(client: AsyncClient):
    await client.save(ONE, publish=True)
    execution = await client.start("one")
    await execution.result()

    assert await client.publish_event("order.paid", {"n": 1}) == 0
    assert (await client.queue_item(execution.id))["state"] == "DONE"
    assert [each["isAlive"] async for each in client.workers()] == [True]
    assert [each async for each in client.breakers()] == []
    assert (await client.me())["root"]


# Without a loop


async def test_the_blocking_client_does_all_of_it_too(server: Served):
    def work() -> tuple[Any, ...]:
        with Client(server.url, server.token) as client:
            client.save(ONE, publish=True)
            execution = client.start("one", {"name": "you"})
            result = execution.result()
            seen = [event["seq"] for event in execution.events()]
            return result, seen, [each["id"] for each in client.executions()] == [execution.id]

    result, seen, is_listed = await asyncio.to_thread(work)

    assert result == "Hello you"
    assert seen == list(range(1, len(seen) + 1))
    assert is_listed

"""Executions by the client: followed to the end, told what to do, done again."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ropewalk.client import AsyncClient, AsyncExecution
from ropewalk.core.errors import ExecutionEnded, Invalid, InvalidInput, InvalidTransition, NotFound
from tests.client.samples import ASKED, BROKEN, ONE, TOLD, chain
from tests.client.servers import Served, served, wired


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


async def test_a_caller_who_waits_for_a_result_gets_it_when_it_is_there(client: AsyncClient):
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


async def test_a_follower_does_not_notice_that_the_server_is_replaced(tmp_path: Path):
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


async def test_an_unknown_workflow_is_not_found(client: AsyncClient):
    with pytest.raises(NotFound, match="'nosuch'"):
        await client.start("nosuch")


async def test_a_name_is_as_good_as_an_id(client: AsyncClient):
    name = "refund: the order ✓"
    saved = await client.save({"ropewalk": 1, "name": name, "nodes": []}, publish=True)
    execution = await client.start(name)

    by_name = [each["id"] async for each in client.executions(workflow=name)]
    await client.share(name, "user:cem", "operator")
    versions = [each["version"] async for each in client.versions(name)]

    assert by_name == [execution.id]
    assert (await client.definition(name))["id"] == saved["id"]
    assert [each["subject"] async for each in client.shares(saved["id"])] == ["user:cem"]
    assert versions == [1]


async def test_a_name_with_a_slash_starts_and_narrows_and_is_told_from_an_address(client: AsyncClient):
    saved = await client.save({"ropewalk": 1, "name": "a/b", "nodes": []}, publish=True)
    execution = await client.start("a/b")

    assert [each["id"] async for each in client.executions(workflow="a/b")] == [execution.id]
    assert (await client.definition("a/b"))["id"] == saved["id"]
    with pytest.raises(InvalidInput, match="by its id"):
        await client.publish("a/b", 1)

"""How often the clients ask: once per start, once per result."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ropewalk import Workflow, node
from ropewalk.client import AsyncClient, Client
from ropewalk.client.messages import Message, Messages
from ropewalk.core.errors import InvalidDefinition, RopewalkError
from tests.client.samples import ONE, TOLD
from tests.client.servers import Served, reply, scripted, served_beside

ENDED = {"state": "SUCCESS", "output": 7, "outputReference": None, "error": None}


@node
def charge(amount: int) -> int:
    """Only this program knows it."""
    return amount


@pytest.fixture
def asked(server: Served, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests a server gets, as they come."""
    return counted(server, monkeypatch)


def counted(server: Served, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    from ropewalk.api.doors import middleware

    seen: list[str] = []
    route = middleware.fast_route

    def noted(routes: Any, scope: Any) -> Any:
        seen.append(f"{scope['method']} {scope['path'].rpartition('/')[2]}")
        return route(routes, scope)

    monkeypatch.setattr(middleware, "fast_route", noted)
    return seen


async def test_a_start_by_name_is_one_request_and_its_result_another(client: AsyncClient, asked: list[str]):
    await client.save(ONE, publish=True)
    asked.clear()

    execution = await client.start("one", {"name": "you"})
    result = await execution.result()

    assert result == "Hello you"
    assert asked == ["POST start", f"GET {execution.id}"]


async def test_a_document_is_saved_once_however_often_it_is_started(client: AsyncClient, asked: list[str]):
    await client.start(ONE, {"name": "you"})
    asked.clear()

    results = [await (await client.start(dict(ONE), {"name": name})).result() for name in ("a", "b")]

    assert results == ["Hello a", "Hello b"]
    assert [each for each in asked if each.startswith("POST")] == ["POST start"] * 2
    assert len(asked) == 4


async def test_a_document_that_was_archived_meanwhile_is_saved_again(client: AsyncClient):
    await client.start(ONE, {"name": "you"})
    await client.archive("one")

    assert await (await client.start(ONE, {"name": "me"})).result() == "Hello me"


async def test_a_document_that_was_changed_is_another(client: AsyncClient):
    first = await client.start(ONE, {"name": "you"})
    second = await client.start({**ONE, "vars": {"word": "Bye"}}, {"name": "you"})

    assert [await first.result(), await second.result()] == ["Hello you", "Bye you"]


async def test_a_workflow_written_in_python_is_saved_and_started(client: AsyncClient):
    workflow = Workflow("built")
    hello = workflow.node("hello", "set", values={"text": f"Hello {workflow.input.name}"})
    workflow.output = hello.output.text

    assert await (await client.start(workflow, {"name": "you"})).result() == "Hello you"


async def test_a_function_the_server_does_not_know_is_refused_with_what_to_do(client: AsyncClient):
    workflow = Workflow("paid")
    workflow.node("pay", charge, amount=1)

    with pytest.raises(InvalidDefinition, match=r"nodes\[0\].type: .*--nodes.*ropewalk.open"):
        await client.start(workflow)

    assert [each async for each in client.definitions()] == []


async def test_many_are_started_together_by_name(client: AsyncClient):
    await client.save({"ropewalk": 1, "name": "empty", "nodes": []}, publish=True)
    await client.save(ONE, publish=True)

    ids = await client.start_all(["empty", {"workflowDefinitionId": "one", "input": {"name": "x"}}])

    assert [await client.execution(each).result() for each in ids] == [{}, "Hello x"]


async def test_a_result_is_asked_for_until_it_is_there():
    running = reply(200, {**ENDED, "state": "RUNNING", "output": None})
    async with scripted([running, running, reply(200, ENDED)]) as script, AsyncClient(script.url, "rw_k") as client:
        result = await client.execution("e1").result()

    assert result == 7
    assert [first for first, _, _ in script.heard] == ["GET /api/v1/workflow/executions/e1?wait=30 HTTP/1.1"] * 3


async def test_connections_are_kept_from_request_to_request(server: Served):
    async with AsyncClient(server.url, server.token) as client:
        await client.me()
        connector = client.line._http.connector
        assert connector is not None
        made = connector.__class__._create_connection
        count = 0

        async def counting(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            return await made(connector, *arguments, **options)

        connector._create_connection = counting  # type: ignore[method-assign]
        for _ in range(20):
            await client.me()

    assert count == 0


def test_the_blocking_client_asks_as_seldom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with served_beside(str(tmp_path / "ropewalk.db")) as server, Client(server.url, server.token) as client:
        client.save(ONE, publish=True)
        asked = counted(server, monkeypatch)

        execution = client.start("one", {"name": "you"})
        result = execution.result()
        told = client.start(TOLD)
        told.signal("word", 7)

        assert result == "Hello you"
        assert asked[:2] == ["POST start", f"GET {execution.id}"]
        assert told.result() == 7


async def test_a_hundred_results_are_waited_for_at_once(client: AsyncClient):
    await client.save(TOLD, publish=True)
    executions = [await client.start("told") for _ in range(100)]
    waiting = [asyncio.ensure_future(each.result()) for each in executions]

    for number, each in enumerate(executions):
        await each.signal("word", number)

    assert await asyncio.wait_for(asyncio.gather(*waiting), 60) == list(range(100))


# Streams


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_messages_are_read_in_any_pieces_they_come_in(size: int):
    text = 'retry: 1000\n\n:\n\nid: 3\r\nevent: snapshot\r\ndata: {"a":\r\ndata: 1}\r\n\r\ndata: ü\n\n'.encode()
    messages = Messages(1000)

    found = [each for at in range(0, len(text), size) for each in messages.feed(text[at : at + size])]

    assert found == [Message("snapshot", '{"a":\n1}', "3"), Message("message", "ü", "3")]


def test_a_message_without_end_is_refused():
    messages = Messages(100)

    with pytest.raises(RopewalkError, match="more than 100 bytes"):
        messages.feed(b"data: and so on\n" * 100)

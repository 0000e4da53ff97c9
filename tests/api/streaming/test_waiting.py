"""`?wait=`: the answer comes when the execution has ended, or with its state then."""

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message

from ropewalk.access.rights import Role
from ropewalk.api.doors.server import ServerSettings, listen, serving
from ropewalk.store.sqlite import SqliteReader
from tests.api.asking import _scope
from tests.api.house import API, House
from tests.polling import until

ONE = {
    "ropewalk": 1,
    "name": "one",
    "nodes": [{"id": "a", "type": "set", "with": {"values": {"text": "secret {{ input }}"}}}],
    "output": "{{ nodes.a.output.text }}",
}
TOLD = {
    "ropewalk": 1,
    "name": "told",
    "nodes": [{"id": "word", "type": "wait", "with": {"signal": "word"}}],
    "output": "{{ nodes.word.output }}",
}
START = "/workflow/executions/start"


class Caller:
    """A caller who asks an app and stays until it hangs up."""

    def __init__(self, house: House, method: str, path: str, body: Any = None) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        headers = [("authorization", f"Bearer {house.root}")]
        if body is not None:
            headers.append(("content-length", str(len(content))))
        self._scope = _scope(method, f"{API}{path}", headers, "127.0.0.1")
        self._sent = [{"type": "http.request", "body": content}]
        self._gone = asyncio.Event()
        self.status: int | None = None
        self._body = bytearray()
        self.answer = asyncio.ensure_future(house.app(self._scope, self._receive, self._send))

    async def _receive(self) -> Message:
        if self._sent:
            return self._sent.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        self._body += message.get("body", b"")

    def hang_up(self) -> None:
        self._gone.set()

    @property
    def json(self) -> Any:
        return json.loads(self._body)


async def until_waiting(house: House, count: int) -> None:
    await until(lambda: len(house.backend.waiters) == count, f"{count} callers wait")


async def started(house: House) -> str:
    answer = await house.ask("POST", START, json={"workflowDefinitionId": "told"})
    return str(answer.json()["executionId"])


async def test_a_start_that_waits_is_answered_with_the_ended_execution_and_its_output(house: House):
    await house.save(ONE)

    answer = await house.ask("POST", f"{START}?wait=30s", json={"workflowDefinitionId": "one", "input": 7})

    said = answer.json()
    assert answer.status_code == 202
    assert said["status"] == said["execution"]["state"] == "SUCCESS"
    assert said["execution"]["output"] == "secret 7"
    assert said["executionId"] == said["queueId"] == said["execution"]["id"]


async def test_a_start_that_does_not_wait_is_answered_as_ever(house: House):
    await house.save(ONE)

    answer = await house.ask("POST", START, json={"workflowDefinitionId": "one"})

    assert answer.json().keys() == {"queueId", "executionId", "status"}


async def test_a_batch_that_waits_is_answered_when_all_have_ended(house: House):
    await house.save(ONE)
    starts = [{"workflowDefinitionId": "one", "input": number} for number in range(20)]

    answer = await house.ask("POST", f"{START}-batch?wait=30", json={"starts": starts})

    outputs = [each["execution"]["output"] for each in answer.json()["started"]]
    assert outputs == [f"secret {number}" for number in range(20)]


async def test_reading_an_execution_waits_for_its_end(house: House):
    await house.save(TOLD)
    execution = await started(house)
    caller = Caller(house, "GET", f"/workflow/executions/{execution}?wait=60s")
    await until_waiting(house, 1)

    await house.service.signal(execution, "word", {"n": 1})
    await asyncio.wait_for(caller.answer, 30)

    assert (caller.status, caller.json["state"], caller.json["output"]) == (200, "SUCCESS", {"n": 1})


@pytest.mark.parametrize("wait", ["0", "0s", "50ms", "0.05", "PT0.05S"])
async def test_when_the_time_is_over_the_answer_is_the_state_then(wait: str, house: House):
    await house.save(TOLD)
    execution = await started(house)

    read = await house.ask("GET", f"/workflow/executions/{execution}?wait={wait}")
    begun = await house.ask("POST", f"{START}?wait={wait}", json={"workflowDefinitionId": "told"})

    assert (read.status_code, read.json()["state"]) == (200, "RUNNING")
    assert begun.status_code == 202
    assert begun.json()["status"] == begun.json()["execution"]["state"] in ("PENDING", "RUNNING")


@pytest.mark.parametrize("wait", ["61s", "1h", "-1", "nan", "inf", "soon", "", "1e1", "9" * 80, "%00", "30s&wait=30s"])
async def test_a_wait_that_is_out_of_range_is_refused_with_its_field_and_starts_nothing(wait: str, house: House):
    await house.save(ONE)

    answers = [
        await house.ask("POST", f"{START}?wait={wait}", json={"workflowDefinitionId": "one"}),
        await house.ask("POST", f"{START}-batch?wait={wait}", json={"starts": [{"workflowDefinitionId": "one"}]}),
        await house.ask("GET", f"/workflow/executions/nosuch?wait={wait}"),
    ]

    assert [answer.status_code for answer in answers] == [422] * 3
    assert [[each["field"] for each in answer.json()["problems"]] for answer in answers] == [["query.wait"]] * 3
    assert (await house.ask("GET", "/workflow/executions")).json()["items"] == []


async def test_a_viewer_who_waits_sees_the_end_and_no_output(house: House):
    await house.save(ONE)
    execution = (await house.ask("POST", START, json={"workflowDefinitionId": "one"})).json()["executionId"]

    answer = await house.ask("GET", f"/workflow/executions/{execution}?wait=30s", await house.key(Role.VIEWER))

    assert (answer.json()["state"], answer.json()["output"], answer.json()["payloads"]) == ("SUCCESS", None, False)
    assert "secret" not in answer.text


async def test_a_caller_without_a_part_in_the_workspace_waits_for_nothing(house: House):
    await house.save(TOLD)
    await house.workspace("other")
    stranger = await house.key(Role.ADMIN, "other")
    execution = await started(house)

    answer = await house.ask("GET", f"/workflow/executions/{execution}?wait=60s", stranger)

    assert answer.status_code == 404


async def test_a_key_that_is_revoked_during_a_wait_gets_no_answer(house: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ropewalk.api.streaming.waiting.RECHECKED_AFTER", 0.0)
    await house.save(TOLD)
    execution = await started(house)
    caller = Caller(house, "GET", f"/workflow/executions/{execution}?wait=60s")
    await until_waiting(house, 1)

    monkeypatch.setattr(house.backend.keys, "believed", lambda _: None)

    async def no_actor(_: str) -> None:
        return None

    monkeypatch.setattr(house.backend, "actor", no_actor)
    await house.service.signal(execution, "word", {"n": 1})
    await asyncio.wait_for(caller.answer, 30)

    assert caller.status == 401


async def test_a_waiter_that_hangs_up_leaves_nothing_behind(house: House):
    await house.save(TOLD)
    execution = await started(house)
    callers = [
        Caller(house, "GET", f"/workflow/executions/{execution}?wait=60s"),
        Caller(house, "POST", f"{START}?wait=60s", {"workflowDefinitionId": "told"}),
    ]
    await until_waiting(house, 2)

    for caller in callers:
        caller.hang_up()
    await asyncio.wait_for(asyncio.gather(*(caller.answer for caller in callers)), 30)

    assert len(house.backend.waiters) == 0
    assert not house.service.engine.watching._waiting


@pytest.mark.parametrize("is_pipelined", [False, True])
async def test_a_waiter_that_closes_its_connection_leaves_nothing_behind(house: House, is_pipelined: bool):
    await house.save(TOLD)
    execution = await started(house)
    listener = listen("127.0.0.1", 0)
    request = (
        f"GET {API}/workflow/executions/{execution}?wait=60s HTTP/1.1\r\nhost: x\r\n"
        f"authorization: Bearer {house.root}\r\n\r\n"
    )
    async with serving(house.app, listener, ServerSettings(drain=2)):
        _, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(request.encode() * (2 if is_pipelined else 1))
        await until_waiting(house, 1)
        writer.close()
        await until_waiting(house, 0)

    assert not house.service.engine.watching._waiting


async def test_a_whole_answer_is_the_same_as_one_in_parts(house: House):
    await house.save(ONE)
    started = await house.ask("POST", f"{START}?wait=30s", json={"workflowDefinitionId": "one", "input": 7})
    path = f"{API}/workflow/executions/{started.json()['executionId']}"
    listener = listen("127.0.0.1", 0)
    heads, bodies = [], []
    async with serving(house.app, listener, ServerSettings(drain=2)):
        # The second asks for the end of the connection, which is for the server's own way to see to.
        for last in ("", "connection: close\r\n"):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            request = f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {house.root}\r\n{last}\r\n"
            writer.write(request.encode())
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
            heads.append(sorted(line.partition(b":")[0] for line in head.splitlines()[1:-1]))
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            bodies.append(json.loads(await asyncio.wait_for(reader.readexactly(length), 30)))
            writer.close()

    assert sorted([*heads[0], b"connection"]) == heads[1]
    assert bodies[0] == bodies[1]
    assert bodies[0]["output"] == "secret 7"


async def test_a_result_is_read_by_one_question(house: House, monkeypatch: pytest.MonkeyPatch):
    await house.save(TOLD)
    execution = await started(house)
    caller = Caller(house, "GET", f"/workflow/executions/{execution}?wait=60s")
    await until_waiting(house, 1)
    await house.service.signal(execution, "word", {"n": 1})
    asked: list[str] = []
    fetch = SqliteReader.fetch

    async def noted(self: SqliteReader, name: str, *arguments: Any) -> Any:
        asked.append(name)
        return await fetch(self, name, *arguments)

    monkeypatch.setattr(SqliteReader, "fetch", noted)
    await asyncio.wait_for(caller.answer, 30)

    assert (caller.json["state"], caller.json["workflow"], asked) == ("SUCCESS", "told", ["short_log"])


async def test_ten_thousand_callers_wait_at_once_and_all_are_answered(house: House):
    await house.save(TOLD)
    executions = [await started(house) for _ in range(10)]
    callers = [
        Caller(house, "GET", f"/workflow/executions/{executions[number % 10]}?wait=60s") for number in range(10_000)
    ]
    await until_waiting(house, 10_000)

    for execution in executions:
        await house.service.signal(execution, "word", execution)
    await asyncio.wait_for(asyncio.gather(*(caller.answer for caller in callers)), 55)

    assert [caller.json["output"] for caller in callers] == [executions[number % 10] for number in range(10_000)]


async def test_a_server_that_ends_answers_the_callers_who_wait(house: House):
    await house.save(TOLD)
    execution = await started(house)
    caller = Caller(house, "GET", f"/workflow/executions/{execution}?wait=60s")
    await until_waiting(house, 1)

    house.backend.waiters.end()
    await asyncio.wait_for(caller.answer, 30)
    late = await house.ask("GET", f"/workflow/executions/{execution}?wait=60s")

    assert (caller.status, caller.json["state"]) == (200, "RUNNING")
    assert late.json()["state"] == "RUNNING"

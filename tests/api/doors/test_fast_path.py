"""The short way to a route gives the answers of the long one."""

import json
from typing import Any

from ropewalk.access.rights import Role
from tests.api.house import API, House

ONE = {"ropewalk": 1, "name": "one", "nodes": [{"id": "a", "type": "noop"}]}
START = f"{API}/workflow/executions/start"
SHORT = "application/json"
LONG = "application/json; charset=utf-8"
"""As good as the other, and not plain enough for the short way."""


def body(**more: Any) -> bytes:
    return json.dumps({"workflowDefinitionId": "WORKFLOW", **more}).encode()


def without_names(answer: Any) -> tuple[int, str, Any]:
    """The answer without what is never the same twice."""
    said = answer.json()
    for name in ("instance", "queueId", "executionId"):
        said.pop(name, None)
    return answer.status_code, answer.headers["content-type"], said


SENT = {
    "a start": body(input={"a": 1}, priority=3),
    "a field out of range": body(priority=30),
    "two things to mend": body(other=1, priority="x"),
    "another workspace": body(workspaceId="nowhere"),
    "a version that is not there": body(version=7),
    "nothing said": b"{}",
    "no object": b"[]",
    "null": b"null",
    "no JSON": b"{",
    "a key twice": b'{"a": 1, "a": 2}',
    "too deep": b"[" * 100 + b"]" * 100,
    "too large": b'"' + b"x" * 1_100_000 + b'"',
    "no UTF-8": b"\xff",
    "nothing at all": b"",
}
HEADERS: dict[str, dict[str, str]] = {
    "plain": {},
    "with a key": {"Idempotency-Key": "k"},
    "with a bad key": {"Idempotency-Key": "x" * 300},
}


async def asked(house: House, token: str | None, sent: bytes, headers: dict[str, str], kind: str) -> Any:
    async with house.client(token) as client:
        return without_names(await client.post(START, content=sent, headers={**headers, "content-type": kind}))


async def test_the_short_way_answers_as_the_long_one(house: House):
    workflow = (await house.save(ONE)).encode()
    cases = {
        (what, how): (sent.replace(b"WORKFLOW", workflow), headers)
        for what, sent in SENT.items()
        for how, headers in HEADERS.items()
    }

    short, long = [
        {case: await asked(house, house.root, *request, kind) for case, request in cases.items()}
        for kind in (SHORT, LONG)
    ]

    assert short == long
    assert short["a start", "plain"][0] == 202


async def test_the_short_way_has_the_same_gate(house: House):
    sent = body().replace(b"WORKFLOW", (await house.save(ONE)).encode())
    tokens = {None: None, Role.VIEWER: await house.key(Role.VIEWER), Role.OPERATOR: await house.key(Role.OPERATOR)}

    short, long = [
        {role: await asked(house, token, sent, {}, kind) for role, token in tokens.items()} for kind in (SHORT, LONG)
    ]

    assert short == long
    assert {role: answer[0] for role, answer in short.items()} == {None: 401, Role.VIEWER: 403, Role.OPERATOR: 202}


async def test_a_start_takes_what_was_published_a_moment_ago(house: House):
    workflow = await house.save(ONE)
    seen = []
    for number in range(2, 12):
        document = {**ONE, "vars": {"number": number}}
        answer = await house.ask("POST", f"/workflow/definitions/{workflow}/versions?publish=true", json=document,
                                 headers={"If-Match": "*"})  # fmt: skip
        assert answer.status_code == 201
        await house.ask("POST", "/workflow/executions/start", json={"workflowDefinitionId": workflow})
        seen.append((await house.ask("GET", "/workflow/executions?limit=1")).json()["items"][0]["version"])

    assert seen == list(range(2, 12))


async def test_what_is_said_twice_in_a_query_is_refused(house: House):
    answer = await house.ask("GET", "/workflow/executions?limit=1&limit=2&state=FAILED")

    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["problems"]] == ["query.limit"]


async def test_the_short_way_to_an_execution_answers_as_the_long_one(house: House):
    await house.save(ONE)
    answer = await house.ask("POST", "/workflow/executions/start?wait=30s", json={"workflowDefinitionId": "one"})
    execution, viewer = answer.json()["executionId"], await house.key(Role.VIEWER)
    paths = [execution, f"{execution}?wait=30s", f"{execution}?wait=90s", f"{execution}?workspaceId=default",
             f"{execution}?workspaceId=nowhere", f"{execution}?other=1", f"{execution}?wait=1&wait=1", "nosuch", "",
             "a%20b", "x" * 70]  # fmt: skip

    async def read(path: str, token: str | None, headers: list[tuple[str, str]]) -> Any:
        async with house.client(token) as client:
            said = await client.get(f"{API}/workflow/executions/{path}", headers=headers)
            return said.status_code, said.headers["content-type"], {**said.json(), "instance": None}

    short, long = [
        [await read(path, token, headers) for path in paths for token in (house.root, viewer, None)]
        for headers in ([("x-said", "once")], [("x-said", "once"), ("x-said", "twice")])
    ]

    assert short == long
    assert [status for status, _, _ in short[:6]] == [200, 200, 401] * 2

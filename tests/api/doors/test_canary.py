"""One text stands for all payloads: in no answer and no stream to a caller without `read-payloads`, in no form.

Every way to read is walked: a GET route or a WebSocket that is not walked fails the test. The same walk by a caller
with the right finds the text, so that the test can fail.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any

import pytest
import pytest_asyncio
from fastapi.routing import APIRoute, APIWebSocketRoute, iter_route_contexts
from msgspec import Struct
from starlette.types import Message

from ropewalk.access.rights import EVERYTHING, Right, Role
from ropewalk.api.app import assemble
from ropewalk.cli.backend.server import event_of
from ropewalk.core import events
from ropewalk.service import payloads
from ropewalk.service.reasons import Cause
from tests.api.asking import SOCKET, _scope, ask
from tests.api.canary import CANARY, GIVEN, ONE_TITLE, SUCCEEDS, Canaries, Found, is_in
from tests.api.samples import A_HASH
from tests.api.stories import EXECUTIONS, LETTERS, Json, Town, town_on

pytestmark = pytest.mark.asyncio(loop_scope="module")
PATIENCE = 20.0
OPEN = ("getHealth", "getReadiness", "getOpenApi")
NEED_THE_RIGHT = ("getExecutionFile", "getExecutionOutput", "getRunOutput", "listExecutionFiles")
"""These are refused to a caller without it."""
FREE = {
    "countExecutions", "diffDefinition", "getDefinition", "getDefinitionVersion", "getMe", "getMetrics", "getNodeType",
    "explainTrigger", "getCredential", "getTrigger", "getWorkspace", "listCredentialTypes", "listCredentials",
    "listPermits", "listTriggers", "previewNext",
    "listDefinitionVersions", "listDefinitions", "listKeys", "listMembers", "listNodeTypes", "listShares",
    "listWorkers", "listWorkspaces",
}  # fmt: skip
"""What these tell of has no payloads; all others show the text to a caller who may read it."""
STREAMS = {"streamExecution", "streamWorkflow", "streamWorkspace"}
SOCKETS = {"subscribeToExecution", "subscribeToWorkflow", "subscribeToWorkspace"}
QUERIES: Mapping[str, tuple[str, ...]] = {
    "listRuns": ("executionId={executionId}&limit=200",),
    "listRunResources": ("executionId={executionId}&limit=200",),
    "getRun": ("executionId={runExecutionId}",),
    "getRunResource": ("executionId={runExecutionId}",),
    "getRunOutput": ("executionId={runExecutionId}",),
    "diffDefinition": ("from=1&to=1",),
    "listDeadLetters": ("limit=200", "limit=1"),
    "listDeadLetterQueue": ("limit=200", "limit=1"),
    "listDeadLetterGroups": ("limit=200", "limit=1"),
    "listBreakers": ("limit=200", "limit=1"),
    "listExecutions": ("limit=200", "limit=1"),
    "listApprovals": ("limit=200", "limit=1"),
    "listWorkflowExecutions": ("limit=200", "limit=1"),
    "listActivity": ("limit=200", "limit=1", "verb=note", "verb=discard", "verb=publish", "verb=reset"),
    "listExecutionEvents": ("limit=200", "limit=1"),
    "listExecutionNodes": ("limit=200", "limit=1"),
    "listExecutionRuns": ("limit=200", "limit=1"),
    "explainExecution": ("", "node=ask", "node=event", "node=filtered", "node=signal", "node=child", "node=again",
                         "node=held", "node=fail", "node=items", "node=n0", "node=traced", "node=raised",
                         "node=traced_items"),
}  # fmt: skip


class Read(Struct, frozen=True):
    """A way to read."""

    id: str
    path: str
    is_socket: bool


def reads() -> Iterator[Read]:
    for context in iter_route_contexts(assemble("test").routes):
        route = context.original_route
        if isinstance(route, APIWebSocketRoute):
            yield Read(route.name, str(context.path), True)
        elif isinstance(route, APIRoute) and "GET" in route.methods:
            yield Read(str(route.operation_id), str(context.path), False)


READS = sorted(reads(), key=lambda each: each.path)


class Scene(Struct, frozen=True):
    """A filled town, who reads in it, and what there is to read."""

    town: Town
    found: Found
    viewer: str
    blind: str
    """A root key with every right but that to read payloads."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    path = tmp_path_factory.mktemp("canary") / "ropewalk.db"
    async with town_on(str(path)) as town:
        found = await Canaries(town).fill()
        scopes = tuple(sorted(EVERYTHING - {Right.READ_PAYLOADS}))
        blind = await town.key(Role.ADMIN, scopes=scopes, is_root=True)
        yield Scene(town, found, await town.key(Role.VIEWER), blind)


# The walk


def _addresses(read: Read, found: Found) -> Iterator[str]:
    """Every address of a way to read, for everything there is."""
    template = read.path
    for query in QUERIES.get(read.id, ("",)):
        whole = f"{template}?{query}" if query else template
        for names in _names(whole, found):
            yield whole.format(**names)


def _names(template: str, found: Found) -> Iterator[Mapping[str, str]]:
    fixed = {"workspaceId": "default", "version": "1", "type": "noop", "credentialName": "absent", "hash": A_HASH}
    if "{runId}" in template:
        yield from ({**fixed, "runId": run, "runExecutionId": execution} for run, execution in found.runs.items())
    elif "{executionId}" in template or "{queueId}" in template:
        yield from ({**fixed, "executionId": each, "queueId": each} for each in found.executions.values())
    elif "{triggerId}" in template:
        yield {**fixed, "triggerId": found.trigger}
    elif "{letterId}" in template:
        yield from ({**fixed, "letterId": each} for each in found.letters)
    elif "{workflowId}" in template or "{definitionId}" in template:
        yield from ({**fixed, "workflowId": each, "definitionId": each} for each in found.workflows.values())
    else:
        yield fixed


async def _walked(scene: Scene, read: Read, token: str) -> dict[str, tuple[int, str]]:
    """What a caller is answered at every address, cursors and headers included."""
    answers = {}
    for address in _addresses(read, scene.found):
        reply = await ask(scene.town.app, "GET", address, [("Authorization", f"Bearer {token}")])
        answers[address] = reply.status, reply.body.decode() + str(reply.headers)
    return answers


WALKED = [each for each in READS if each.id not in {*OPEN, *STREAMS, *SOCKETS}]


@pytest.mark.parametrize("read", WALKED, ids=lambda each: f"{each.id} {each.path}")
async def test_no_answer_shows_a_payload_without_the_right(scene: Scene, read: Read):
    told = {name: await _walked(scene, read, token) for name, token in _readers(scene).items()}

    for name in ("viewer", "blind"):
        assert [address for address, (_, text) in told[name].items() if is_in(text)] == [], name
    statuses = {status for status, _ in told["blind"].values()}
    assert statuses <= ({403} if read.id in NEED_THE_RIGHT else {200, 404, 500})
    is_shown = any(is_in(text) for _, text in told["root"].values())
    assert is_shown is (read.id not in FREE)


def _readers(scene: Scene) -> dict[str, str]:
    return {"viewer": scene.viewer, "blind": scene.blind, "root": scene.town.root}


async def test_tracebacks_and_bodies_are_for_those_who_may_read_payloads(scene: Scene):
    told = {name: await _details(scene, token) for name, token in _readers(scene).items()}

    assert told["viewer"] == told["blind"] == dict.fromkeys(told["root"], (None, None))
    assert [name for name, (detail, _) in told["root"].items() if not detail.startswith("Traceback")] == []
    assert {name: body for name, (_, body) in told["root"].items()} == {
        "node": CANARY, "run": CANARY, "letter": CANARY, "explanation": None, "event": CANARY,
    }  # fmt: skip


async def _details(scene: Scene, token: str) -> dict[str, tuple[Any, Any]]:
    """What is told of one failure beyond its message, by where it is told: its detail and its body."""
    town, execution = scene.town, scene.found.executions["fails"]
    root = f"{EXECUTIONS}/{execution}"
    (letter,) = (await town.get(f"{LETTERS}?executionId={execution}&node=traced"))["items"]
    nodes = {each["id"]: each for each in (await town.get(f"{root}/nodes?limit=200", token))["items"]}
    run = await town.get(f"/workflow/runs/{letter['runId']}?executionId={execution}", token)
    one = await town.get(f"{LETTERS}/{letter['id']}", token)
    (reason,) = (await town.get(f"{root}/explain?node=traced", token))["nodes"]
    events = (await town.get(f"{root}/events?limit=200", token))["items"]
    (data,) = [each["data"] for each in events if each["type"] == "NodeFailed" and each["data"]["node"] == "traced"]
    return {
        "node": (nodes["traced"]["error"]["detail"], nodes["traced"]["error"]["body"]),
        "run": (run["errorDetail"], run["errorBody"]),
        "letter": (one["errorDetail"], one["errorBody"]),
        "explanation": (reason["waitsFor"]["detail"], None),
        "event": (data["error"].get("detail"), data["error"].get("body")),
    }


async def test_every_way_to_read_is_walked():
    known = {each.id for each in WALKED} | set(OPEN) | STREAMS | SOCKETS

    assert {each.id for each in READS} <= known
    assert {"getExecution", "listBreakers", "listActivity", "getWorkflowExecution", *STREAMS, *SOCKETS} <= known


async def test_what_is_not_gated_shows_no_payload_to_a_stranger(scene: Scene):
    replies = [await ask(scene.town.app, "GET", each.path, []) for each in READS if each.id in OPEN]

    assert [reply for reply in replies if is_in(reply.body.decode())] == []


async def test_what_is_left_of_an_event_is_still_an_event(scene: Scene):
    paths = [
        f"{EXECUTIONS}/{each}/events?limit=200" for name, each in scene.found.executions.items() if name != "damaged"
    ]
    envelopes = [each for path in paths for each in (await scene.town.get(path, scene.viewer))["items"]]

    kinds = {type(event_of(each)).__name__ for each in envelopes}

    assert {"ExecutionAccepted", "RunWaiting", "NodeFailed", "SignalReceived", "NodesCarriedOver"} <= kinds


# Streams


class Follower:
    """Reads a stream of either kind until it has heard what was waited for."""

    def __init__(self) -> None:
        self.text = ""
        self._heard = asyncio.Condition()
        self._leaves = asyncio.Event()
        self._has_asked = False

    async def receive(self) -> Message:
        if not self._has_asked:
            self._has_asked = True
            return {"type": "http.request", "body": b""} if not self.is_socket else {"type": "websocket.connect"}
        await self._leaves.wait()
        return {"type": "websocket.disconnect" if self.is_socket else "http.disconnect", "code": 1001}

    async def send(self, message: Message) -> None:
        async with self._heard:
            self.text += message.get("body", b"").decode() + (message.get("text") or "")
            self._heard.notify_all()

    async def hears(self, *words: str) -> None:
        async with asyncio.timeout(PATIENCE), self._heard:
            await self._heard.wait_for(lambda: all(word in self.text for word in words))

    @asynccontextmanager
    async def following(self, town: Town, address: str, token: str, *, is_socket: bool) -> AsyncIterator["Follower"]:
        self.is_socket = is_socket
        scope = _scope(SOCKET if is_socket else "GET", address, [("Authorization", f"Bearer {token}")], "127.0.0.1")
        task = asyncio.ensure_future(town.app(scope, self.receive, self.send))
        try:
            yield self
        finally:
            self._leaves.set()
            await asyncio.wait_for(task, PATIENCE)


STREAMED = [each for each in READS if each.id in STREAMS | SOCKETS]


@pytest.mark.parametrize("read", STREAMED, ids=lambda each: f"{each.id} {each.path}")
async def test_no_stream_shows_a_payload_without_the_right(scene: Scene, read: Read):
    hears = _follow_one if read.id.endswith("Execution") else _follow_many

    told = {name: await hears(scene, read, token) for name, token in _readers(scene).items()}

    assert {name: is_in(text) for name, text in told.items()} == {"viewer": False, "blind": False, "root": True}


async def _follow_one(scene: Scene, read: Read, token: str) -> str:
    """Every execution, from its beginning and from its snapshot on."""
    heard = ""
    for name, execution in scene.found.executions.items():
        heads = [] if name == "damaged" else [await _head(scene, execution)]
        for query in ("", "?after=0"):
            address = read.path.format(executionId=execution) + query
            async with Follower().following(scene.town, address, token, is_socket=read.is_socket) as follower:
                await follower.hears(*[f'"seq":{head}' for head in heads] or ["cannot be read"])
            heard += follower.text
    return heard


async def _head(scene: Scene, execution: str) -> int:
    found = await scene.town.service.store.fetch_one("last_entry", execution)
    assert found is not None
    entry = json.loads(found[-1])
    return int(entry["seq"] + len(entry["events"]) - 1)


async def _follow_many(scene: Scene, read: Read, token: str) -> str:
    """What happens in a workspace while a reader follows it."""
    town, workflow = scene.town, scene.found.workflows["told"]
    address = read.path.format(workspaceId="default", workflowId=workflow)
    async with Follower().following(town, address, token, is_socket=read.is_socket) as follower:
        await follower.hears('"executions":')
        execution = await town.start({**ONE_TITLE, "name": "told"}, GIVEN)
        await follower.hears(f'"executionId":"{execution}"', '"RunWaiting"')
        await town.service.signal(execution, CANARY, CANARY, "test")
        await town.service.cancel(execution, "test", CANARY)
        await follower.hears('"SignalReceived"', '"ExecutionCancelled"')
    return follower.text


# What verbs answer


async def test_no_verb_on_many_letters_answers_a_payload_without_the_right(scene: Scene):
    town = scene.town
    path = f"{LETTERS}?executionId={scene.found.executions['fails']}&node=function"
    (wanted,) = (await town.get(path))["items"]

    body = {"fingerprint": wanted["fingerprint"], "stopAfterFailures": 1}
    answer = await town.tell(f"{LETTERS}/requeue", body, scene.blind)

    assert (answer.status_code, is_in(answer.text)) == (200, False)
    assert {each["outcome"] for each in answer.json()["letters"]} == {"REQUEUED", "FAILED"}


async def test_a_rerun_that_another_version_refuses_quotes_no_payload_without_the_right(scene: Scene):
    town, execution = scene.town, scene.found.executions["succeeds"]
    changed = {**SUCCEEDS, "concurrencyKey": "{{ number(input.c) }}"}
    version = (await town.backend.service("default").save(changed)).version
    path, body = f"{EXECUTIONS}/{execution}/rerun", {"node": "each", "version": version}

    answers = {name: await town.tell(path, body, token) for name, token in _readers(scene).items() if name != "viewer"}

    assert {name: answer.status_code for name, answer in answers.items()} == {"blind": 422, "root": 422}
    assert {name: is_in(answer.text) for name, answer in answers.items()} == {"blind": False, "root": True}


# The tables


def _event_types() -> list[type[Any]]:
    return list(events.Event.__args__)


async def test_every_event_and_every_reason_has_its_place_in_the_tables():
    assert set(payloads.EVENTS) == {each.__name__ for each in _event_types()}
    assert set(payloads._REASONS) == set(Cause)


async def test_a_field_that_no_table_knows_is_withheld():
    answer: Json = {"id": "x", "state": "FAILED", "secret": CANARY, "error": CANARY}
    envelope: Json = {"type": "Later", "seq": 1, "data": {"node": "a", "said": CANARY}}
    reason: Json = {"code": "LATER", "why": CANARY, "waitsFor": {"x": CANARY}, "command": CANARY, "action": None}

    shown = payloads.shown(answer, payloads.EXECUTION, may_read=False)

    assert shown == {"id": "x", "state": "FAILED", "secret": None, "error": payloads.WITHHELD}
    assert payloads.shown_event(envelope, may_read=False)["data"] == {}
    assert not is_in(json.dumps(payloads.shown_reason(reason, may_read=False)))


async def test_the_text_is_found_in_every_form():
    texts = [f"x{CANARY}", CANARY[::-1], CANARY.encode().hex(), "".join(f"%{each:02X}" for each in CANARY.encode())]
    texts += [base64.urlsafe_b64encode((ahead + CANARY + behind).encode()).decode()
              for ahead, behind in chain((("", ""), ("a", "b"), ("ab", "c"), ("\0ab", "")))]  # fmt: skip

    assert [text for text in texts if not is_in(text)] == []

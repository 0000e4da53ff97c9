"""Live streams over HTTP: server-sent events and WebSockets, of an execution, a workflow or a workspace.

First comes a snapshot, then every event after it, last an `end` that says why (see Reason). A reader that comes back
with the id of the last event it has seen (`Last-Event-ID`, or `after`) gets what followed and no snapshot. If that is
not kept any more, which happens to workflows and workspaces only, a new snapshot says how far each execution is.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Annotated, Any, Final

from fastapi import Header, Path, Query, WebSocket
from msgspec import Struct
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ropewalk.access.actor import Actor
from ropewalk.access.rights import Right
from ropewalk.api.backend import Backend
from ropewalk.api.doors.authentication import session_cookie
from ropewalk.api.doors.authorization import Call, authorize_in_workspace
from ropewalk.api.nouns.executions import ExecutionId
from ropewalk.api.nouns.workspaces import WorkspaceId
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import BY_NAME, LONGEST_NAME, NAMED
from ropewalk.api.shapes.problems import Refused
from ropewalk.api.streaming.transports import SseTransport, WebSocketTransport
from ropewalk.core.errors import Unauthenticated, Unavailable
from ropewalk.service.channels import Channel
from ropewalk.service.execution_channel import ExecutionChannel
from ropewalk.service.stream_readers import Reader, Transport
from ropewalk.service.streaming import Streams, TooMany
from ropewalk.service.workspace_channel import WorkspaceChannel

routes = Routes("", "Streams")
seed_routes = Routes("", "Streams")

LARGEST_NUMBER: Final = 2**53
LONGEST_ID: Final = 64
RETRY_AFTER: Final = 5
WorkflowId = Annotated[str, Path(alias="workflowId", max_length=LONGEST_NAME, pattern=NAMED, description=BY_NAME)]
AfterNumber = Annotated[int | None, Query(ge=0, le=LARGEST_NUMBER, description="Go on after the event of this number.")]
AfterId = Annotated[str | None, Query(max_length=LONGEST_ID, description="Go on after the event of this id.")]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=LONGEST_ID)]


class StreamRequest(Struct, frozen=True):
    """What the caller wants to follow, and from where; `workflow` is what their rights are asked for."""

    call: Call
    connection: HTTPConnection
    key: tuple[Hashable, Callable[[], Channel]]
    workflow: str | None
    after: str | None

    @property
    def credentials(self) -> Hashable:
        """The same for all readers that come with the same proof to the same stream."""
        headers = self.connection.headers
        said = "\0".join(headers.getlist("authorization") + headers.getlist("cookie"))
        return hashlib.sha256(said.encode()).digest(), self.call.workspace, self.workflow

    async def may_see_payloads(self) -> bool:
        """Asked again and again while the stream lasts; raises when nothing may be seen any more."""
        actor = await _still(self.connection, self.call.actor)
        call = await authorize_in_workspace(self.call.backend, actor, self.call.workspace, Right.READ)
        return await _may_see_payloads(call, self.workflow)


async def _may_see_payloads(call: Call, workflow: str | None) -> bool:
    if workflow is None:
        call.require()
        return Right.READ_PAYLOADS in call.rights
    await call.allow(workflow)
    return await call.may_read(workflow)


async def _still(connection: HTTPConnection, known: Actor) -> Actor:
    """The actor that opened the stream, if its proof is still valid. Not counted as a request: the server asks.

    While the store or the issuer does not answer, the proof holds, but not beyond its end.
    """
    backend: Backend = connection.app.state.backend
    try:
        actor = await _proved(connection, backend)
    except Unavailable:
        is_over = known.expires_at is not None and known.expires_at <= backend.store.now()
        actor = None if is_over else known
    if actor is None:
        raise Unauthenticated("the key, token or session is no longer valid")
    return actor


async def _proved(connection: HTTPConnection, backend: Backend) -> Actor | None:
    said = connection.headers.get("authorization")
    if said is not None:
        return await backend.actor(said.partition(" ")[2].strip())
    visit = await backend.sessions.find(session_cookie(connection) or "")
    return None if visit is None else visit.actor


def streams_of(connection: HTTPConnection, call: Call) -> Streams:
    """The streams of this server, made with the first."""
    state = connection.app.state
    if not hasattr(state, "streams"):
        state.streams = Streams(call.service.engine, call.backend.stream_limits)
    found: Streams = state.streams
    return found


async def drain(app: Any) -> None:
    """End every stream, before the server waits for its connections to end."""
    streams: Streams | None = getattr(getattr(app, "state", None), "streams", None)
    if streams is not None:
        await streams.close()


# Following


async def _follow(
    wanted: StreamRequest, transport: Transport, begin: Callable[[], Awaitable[None]], receive: Receive
) -> None:
    """Let the caller read until the end, or until they hang up. What is refused is refused before `begin`."""
    streams = streams_of(wanted.connection, wanted.call)
    payloads = await _may_see_payloads(wanted.call, wanted.workflow)
    async with streams.channel(*wanted.key) as channel:
        place = await _place(channel, wanted.after)
        guard = streams.guard(wanted.credentials, wanted.may_see_payloads, payloads)
        reader = Reader(channel, guard, place, wanted.after or "")
        try:
            async with streams.reader(reader, guard, wanted.call.actor.subject):
                await reader.prepare()
                await begin()
                await _until_gone(reader.run(transport), receive)
        except TooMany as refusal:
            raise Refused(429, str(refusal), retry_after=RETRY_AFTER) from refusal


async def _place(channel: Channel, after: str | None) -> int | None:
    """Where to go on; None where only a snapshot helps."""
    if after is None:
        return None
    if isinstance(channel, WorkspaceChannel):
        return channel.place_of(after)
    assert isinstance(channel, ExecutionChannel)
    if not after.isdecimal():
        raise Refused(422, "this is no number of an event of this execution", "after")
    # What was told of an execution may be lost with its database: then it is shown as it is now.
    return int(after) if await channel.has(int(after)) else None


async def _until_gone(telling: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Send until there is nothing more to send, the stream was ended, or the reader has hung up."""
    running = {asyncio.ensure_future(telling), asyncio.ensure_future(_gone(receive))}
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in running:
            task.cancel()
        results = await asyncio.gather(*running, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _gone(receive: Receive) -> None:
    """What is said to a stream is not listened to, but for the end."""
    while (await receive())["type"] not in ("http.disconnect", "websocket.disconnect"):
        continue


class EventStream(Response):
    """An answer that goes on as long as there is something to tell."""

    media_type = "text/event-stream"

    def __init__(self, wanted: StreamRequest | None = None, **given: Any) -> None:
        super().__init__(**given)
        self._wanted = wanted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._wanted is not None
        transport = SseTransport(send)
        await _follow(self._wanted, transport, transport.begin, receive)


async def _subscribe(socket: WebSocket, wanted: StreamRequest) -> None:
    await _follow(wanted, WebSocketTransport(socket), socket.accept, socket.receive)


# Routes


async def _execution(call: Call, connection: HTTPConnection, execution: str, after: str | None) -> StreamRequest:
    found = await call.execution(execution)
    return StreamRequest(call, connection, streams_of(connection, call).of_execution(found.id), found.workflow, after)


async def _workflow(call: Call, connection: HTTPConnection, workflow: str, after: str | None) -> StreamRequest:
    found = await call.workflow(workflow)
    return StreamRequest(
        call, connection, streams_of(connection, call).of_workspace(call.workspace, found.id), found.id, after
    )


async def _workspace(call: Call, connection: HTTPConnection, workspace: str, after: str | None) -> StreamRequest:
    here = await authorize_in_workspace(call.backend, call.actor, workspace, call.right)
    here.require()
    return StreamRequest(here, connection, streams_of(connection, call).of_workspace(workspace), None, after)


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


_EXAMPLE: Final = (
    'event: snapshot\nid: 4\ndata: {"seq": 4, "execution": {"state": "RUNNING"}}\n\n'
    'id: 5\ndata: {"v": 2, "type": "NodeSucceeded", "executionId": "…", "seq": 5, "at": "…", "data": {"node": "a"}}\n\n'
    'event: end\ndata: {"reason": "finished", "id": "5", "state": "SUCCESS"}\n\n'
)
_SSE: Final[dict[str, Any]] = {
    "response_class": EventStream,
    "response_model": None,
    "status_code": 200,
    "responses": {
        200: {
            "description": "A snapshot, then events, then the end, as server-sent events.",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}},
        }
    },
}


@routes.get("/workflow/executions/{executionId}/stream", Right.READ, **_SSE)
async def stream_execution(
    call: Caller, request: Request, execution_id: ExecutionId, after: AfterNumber = None, last: LastEventId = None
) -> Response:
    """An execution with its nodes, then every event as it is recorded, until it is over."""
    return EventStream(await _execution(call, request, execution_id, last or _text(after)))


@routes.get("/workflow/definitions/{workflowId}/stream", Right.READ, **_SSE)
async def stream_workflow(
    call: Caller, request: Request, workflow_id: WorkflowId, after: AfterId = None, last: LastEventId = None
) -> Response:
    """What is under way of a workflow, then every event of every execution of it."""
    return EventStream(await _workflow(call, request, workflow_id, last or after))


@routes.get("/workspaces/{workspaceId}/stream", Right.READ, anywhere=True, **_SSE)
async def stream_workspace(
    call: Caller, request: Request, workspace_id: WorkspaceId, after: AfterId = None, last: LastEventId = None
) -> Response:
    """What is under way in a workspace, then every event of every execution in it."""
    return EventStream(await _workspace(call, request, workspace_id, last or after))


@routes.socket("/workflow/executions/{executionId}/subscribe", Right.READ)
async def subscribe_to_execution(
    socket: WebSocket, call: Caller, execution_id: ExecutionId, after: AfterNumber = None
) -> None:
    """The stream of an execution as a WebSocket."""
    await _subscribe(socket, await _execution(call, socket, execution_id, _text(after)))


@routes.socket("/workflow/definitions/{workflowId}/subscribe", Right.READ)
@seed_routes.socket("/v1/vaiworkflow/subscribe/{workflowId}", Right.READ)
async def subscribe_to_workflow(
    socket: WebSocket, call: Caller, workflow_id: WorkflowId, after: AfterId = None
) -> None:
    """The stream of a workflow as a WebSocket."""
    await _subscribe(socket, await _workflow(call, socket, workflow_id, after))


@routes.socket("/workspaces/{workspaceId}/subscribe", Right.READ, anywhere=True)
async def subscribe_to_workspace(
    socket: WebSocket, call: Caller, workspace_id: WorkspaceId, after: AfterId = None
) -> None:
    """The stream of a workspace as a WebSocket."""
    await _subscribe(socket, await _workspace(call, socket, workspace_id, after))

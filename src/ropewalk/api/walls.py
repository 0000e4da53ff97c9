"""The walls beside the gate: there is no way in but the routes we know, and no telling from outside where they are."""

import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any, Final

from fastapi import FastAPI
from fastapi.routing import APIWebSocketRoute, iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ropewalk.access.rights import Right
from ropewalk.api.express import ExpressRoute, way, ways
from ropewalk.api.metrics import count
from ropewalk.api.problems import HEADERS, Refused, answer_to, problem
from ropewalk.api.proofs import authenticate
from ropewalk.api.rates import refusal
from ropewalk.api.routes import GatedRoute, SocketGate
from ropewalk.api.whole import ANSWER, WHOLE, in_parts
from ropewalk.core.errors import RopewalkError

# What the server answers a handshake; anything else that comes first is an answer with a status of its own.
_STATUS: Final = {"websocket.accept": 101, "websocket.close": 403}
_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class WalledApp(FastAPI):
    """Whatever comes passes the walls first, before all that FastAPI puts around its routes."""

    walls: "Walls"

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Coroutine[Any, Any, None]:
        scope["app"] = self
        return self.walls(scope, receive, send)


def install(app: WalledApp) -> None:
    """To be called when every route is there; refuses to go on with one that has no gate."""
    ungated = [str(getattr(route, "path", route)) for route in every_route(app) if not _is_gated(route)]
    if ungated:
        raise ValueError(f"these routes have no gate: {', '.join(ungated)}")
    # A redirect would tell where a route is, and take a body elsewhere.
    app.router.redirect_slashes = False
    app.router.default = _no_route
    for status in (404, 405):
        app.add_exception_handler(status, _nothing_there)
    app.walls = Walls(partial(FastAPI.__call__, app), ways(app))


def every_route(app: FastAPI) -> Iterator[BaseRoute]:
    """The routes of the app, those of its routers included."""
    return (context.original_route for context in iter_route_contexts(app.routes))


def _is_gated(route: BaseRoute) -> bool:
    if isinstance(route, APIWebSocketRoute):
        return any(isinstance(each.dependency, SocketGate) for each in route.dependencies)
    # The class sees to it that it names a right, or is one of PUBLIC; others have to name one.
    return isinstance(route, GatedRoute) or isinstance(getattr(route, "right", None), Right)


async def _no_route(scope: Scope, receive: Receive, send: Send) -> None:
    """Requests and WebSockets alike: else a stranger could tell by the answer where there is a WebSocket."""
    raise HTTPException(404)


async def _nothing_there(request: Request, error: Exception) -> Response:
    """That there is no such path or method is for those to know who may come in."""
    assert isinstance(error, HTTPException)
    try:
        await authenticate(request)
    except (RopewalkError, Refused) as refusal:
        return answer_to(refusal)
    return problem(error.status_code, _said(request, error), (), error.headers)


def _said(request: Request, error: HTTPException) -> str:
    if isinstance(error, Refused):
        return error.detail
    return f"there is no {request.method} here" if error.status_code == 405 else "there is nothing at this address"


class Walls:
    """What every request passes, in one layer, since each costs every request: the limit of its address, a count, and
    headers that say what an answer is and that nobody keeps it who was not told to.

    What is asked most often and plainly goes on by a short way, the rest to the routes.
    """

    def __init__(self, app: ASGIApp, ways: Mapping[str, ExpressRoute]) -> None:
        self._app = app
        self._ways = ways

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            other = self._app if scope["type"] == "lifespan" else self._shake_hands
            await other(scope, receive, send)
            return
        began, answer = time.perf_counter(), _Answer(send, scope.get(WHOLE))
        try:
            await (refusal(scope) or way(self._ways, scope) or self._app)(scope, receive, answer.send)
        finally:
            count(scope, answer.status, time.perf_counter() - began)

    async def _shake_hands(self, scope: Scope, receive: Receive, send: Send) -> None:
        handshake = _Handshake(scope, send)
        try:
            await (refusal(scope) or self._app)(scope, receive, handshake.send)
        finally:
            handshake.answered(500)


class _Answer:
    """One answer on its way out; the status of one that never begins is that of a fault."""

    __slots__ = ("_send", "_whole", "status")

    def __init__(self, send: Send, whole: Callable[[Message], bool] | None) -> None:
        self._send = send
        self._whole = whole
        self.status = 500

    async def send(self, message: Message) -> None:
        is_whole = message["type"] == ANSWER
        if is_whole or message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message.setdefault("headers", [])
            there = {name for name, _ in headers}
            headers += [header for header in _HEADERS if header[0] not in there]
        if not is_whole:
            await self._send(message)
        elif self._whole is None or not self._whole(message):
            await in_parts(message, self._send)


class _Handshake:
    """The answer to a handshake: counted once and when it is given, since a WebSocket may stay open for days."""

    __slots__ = ("_began", "_is_answered", "_scope", "_send")

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._began = time.perf_counter()
        self._is_answered = False

    def send(self, message: Message) -> Awaitable[None]:
        if not self._is_answered:
            # To close a WebSocket that was never accepted is to refuse it; the server says 403 then.
            self.answered(_STATUS.get(message["type"]) or message["status"])
        return self._send(message)

    def answered(self, status: int) -> None:
        """Counts the answer, unless there was one before."""
        if not self._is_answered:
            self._is_answered = True
            count(self._scope, status, time.perf_counter() - self._began)

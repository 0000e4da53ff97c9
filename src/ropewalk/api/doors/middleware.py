"""What every request passes before its route.

There is no way in but the known routes, and only callers with a valid proof are told which paths exist.
"""

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
from ropewalk.api.doors.authentication import authenticate
from ropewalk.api.doors.authorization import PUBLIC
from ropewalk.api.doors.fast_path import FastHook, FastRoute, fast_route, fast_routes
from ropewalk.api.doors.rate_limits import refusal
from ropewalk.api.doors.whole_answers import ANSWER, WHOLE, in_parts
from ropewalk.api.nouns.metrics import count
from ropewalk.api.routes import AuthorizedRoute, SocketAuthorization
from ropewalk.api.shapes.problems import HEADERS, Refused, answer_to, problem
from ropewalk.core.errors import RopewalkError

# The status of the answer to a handshake; another first message is an answer with a status of its own.
_STATUS: Final = {"websocket.accept": 101, "websocket.close": 403}
_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class GuardedApp(FastAPI):
    """An app whose requests pass our middleware before everything that FastAPI puts around its routes."""

    outermost: "RequestMiddleware"

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Coroutine[Any, Any, None]:
        scope["app"] = self
        return self.outermost(scope, receive, send)


def install(app: GuardedApp) -> None:
    """To be called when every route is there; refuses an app with a route that names no right."""
    unprotected = [str(getattr(route, "path", route)) for route in every_route(app) if not _is_protected(route)]
    if unprotected:
        raise ValueError(f"these routes name no right: {', '.join(unprotected)}")
    # A redirect would tell where a route is, and take a body elsewhere.
    app.router.redirect_slashes = False
    app.router.default = _no_route
    for status in (404, 405):
        app.add_exception_handler(status, _nothing_there)
    app.outermost = RequestMiddleware(partial(FastAPI.__call__, app), fast_routes(app))


def every_route(app: FastAPI) -> Iterator[BaseRoute]:
    """The routes of the app, those of its routers included."""
    return (context.original_route for context in iter_route_contexts(app.routes))


def _is_protected(route: BaseRoute) -> bool:
    if isinstance(route, APIWebSocketRoute):
        return any(isinstance(each.dependency, SocketAuthorization) for each in route.dependencies)
    # The class sees to it that its routes name a right, or are PUBLIC; routes of another class have to name one.
    is_public = getattr(route, "operation_id", None) in PUBLIC
    return isinstance(route, AuthorizedRoute) or is_public or isinstance(getattr(route, "right", None), Right)


async def _no_route(scope: Scope, receive: Receive, send: Send) -> None:
    """Requests and WebSockets alike: else a stranger could tell by the answer where there is a WebSocket."""
    raise HTTPException(404)


async def _nothing_there(request: Request, error: Exception) -> Response:
    """Only a caller with a valid proof is told that there is no such path or method."""
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


class RequestMiddleware:
    """What every request passes, in one layer, since each costs every request: the limit of its address, a count, and
    headers that say what an answer is and that no cache may keep it.

    A plain request to one of the hottest routes takes the fast path, every other goes to its route.
    """

    def __init__(self, app: ASGIApp, fast: Mapping[str, FastRoute | FastHook]) -> None:
        self._app = app
        self._fast = fast

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            other = self._app if scope["type"] == "lifespan" else self._answer_handshake
            await other(scope, receive, send)
            return
        began, answer = time.perf_counter(), _Answer(send, scope.get(WHOLE))
        try:
            await (refusal(scope) or fast_route(self._fast, scope) or self._app)(scope, receive, answer.send)
        finally:
            count(scope, answer.status, time.perf_counter() - began)

    async def _answer_handshake(self, scope: Scope, receive: Receive, send: Send) -> None:
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

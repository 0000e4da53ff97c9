"""The walls beside the gate: there is no way in but the routes we know, and no telling from outside where they are."""

from collections.abc import Iterator

from fastapi import FastAPI
from fastapi.routing import APIWebSocketRoute, iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ropewalk.access.rights import Right
from ropewalk.api.problems import Refused, of_error, problem
from ropewalk.api.proofs import authenticate
from ropewalk.api.rates import RateLimit
from ropewalk.api.routes import GatedRoute, SocketGate
from ropewalk.core.errors import RopewalkError

_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


def install(app: FastAPI) -> None:
    """To be called when every route is there; refuses to go on with one that has no gate."""
    ungated = [str(getattr(route, "path", route)) for route in every_route(app) if not _is_gated(route)]
    if ungated:
        raise ValueError(f"these routes have no gate: {', '.join(ungated)}")
    # A redirect would tell where a route is, and take a body elsewhere.
    app.router.redirect_slashes = False
    app.router.default = _no_route
    for status in (404, 405):
        app.add_exception_handler(status, _nothing_there)
    app.add_middleware(RateLimit)
    app.add_middleware(PlainHeaders)


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
    except RopewalkError as refusal:
        return of_error(refusal)
    except Refused as refusal:
        return problem(refusal.status_code, refusal.detail, refusal.problems, refusal.headers)
    return problem(error.status_code, _said(request, error), (), error.headers)


def _said(request: Request, error: HTTPException) -> str:
    if isinstance(error, Refused):
        return error.detail
    return f"there is no {request.method} here" if error.status_code == 405 else "there is nothing at this address"


class PlainHeaders:
    """Answers are what they say they are, and nobody keeps them who was not told to."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                there = {name for name, _ in headers}
                headers.extend(header for header in _HEADERS if header[0] not in there)
            await send(message)

        await self._app(scope, receive, sent if scope["type"] == "http" else send)

"""How a route is made: it names the right it needs, and no caller without it reaches the handler or sends it a body."""

from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection
from starlette.responses import Response

from ropewalk.access.rights import Right
from ropewalk.api.doors.authorization import (
    PUBLIC,
    WORKSPACE,
    Call,
    authorize,
    authorize_by_body,
    authorize_without_workspace,
)
from ropewalk.api.doors.request_bodies import LARGEST_BODY, StrictRequest, require_json, require_single
from ropewalk.api.shapes.problems import MEDIA_TYPE
from ropewalk.core.errors import InvalidInput, Problem

RIGHT: Final = "x-right"
LARGEST: Final = "x-largest-body"
ANYWHERE: Final = "x-anywhere"
BY_BODY: Final = "x-workspace-in-body"
Handler = TypeVar("Handler", bound=Callable[..., Any])


class AuthorizedRoute(APIRoute):
    """A route whose caller is authorized before its body is read."""

    @property
    def right(self) -> Right | None:
        """What it needs; None if it is open to all."""
        named = (self.openapi_extra or {}).get(RIGHT)
        return None if named is None else Right(named)

    @property
    def authorize(self) -> Callable[[HTTPConnection, Right], Coroutine[Any, Any, Call]]:
        """How its callers are authorized, by where they name the workspace."""
        marks = self.openapi_extra or {}
        if marks.get(ANYWHERE):
            return authorize_without_workspace
        return authorize_by_body if marks.get(BY_BODY) else authorize

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        right, largest, known = self.right, largest_of(self), known_queries(self.dependant)
        takes_json = self.body_field is not None
        authorize = self.authorize
        if right is None and self.operation_id not in PUBLIC:
            raise ValueError(f"{self.operation_id} names no right and is not among the public operations")

        async def gated(request: Request) -> Response:
            if right is not None:
                request.state.call = await authorize(request, right)
            require_plain_query(request, known)
            require_single(request.scope)
            if takes_json:
                require_json(request)
            return await handle(StrictRequest(request.scope, request.receive, largest))

        return gated


def known_queries(taken: Dependant) -> frozenset[str]:
    """The names that a query string may have for this handler."""
    inner = (known_queries(each) for each in taken.dependencies)
    return frozenset({WORKSPACE, *(each.alias for each in taken.query_params)}).union(*inner)


def require_plain_query(request: Request, known: frozenset[str]) -> None:
    """Refuse a filter that is unknown, which the caller would take for heeded, or ambiguous since it comes twice."""
    if not request.scope["query_string"]:
        return
    counted = Counter(name for name, _ in request.query_params.multi_items())
    twice = [Problem(("query", name), "comes more than once") for name, count in counted.items() if count > 1]
    unknown = [Problem(("query", name[:64]), "is no parameter of this route") for name in counted if name not in known]
    if twice or unknown:
        raise InvalidInput(twice + unknown)


def largest_of(route: APIRoute) -> int:
    """How large its bodies may be."""
    return int((route.openapi_extra or {}).get(LARGEST, LARGEST_BODY))


class SocketAuthorization:
    """The authorization of a WebSocket, before its handshake is answered."""

    def __init__(self, right: Right, *, anywhere: bool = False) -> None:
        self.right = right
        self._authorize = authorize_without_workspace if anywhere else authorize

    async def __call__(self, connection: HTTPConnection) -> None:
        connection.state.call = await self._authorize(connection, self.right)


async def _call(connection: HTTPConnection) -> Call:
    found: Call = connection.state.call
    return found


Caller = Annotated[Call, Depends(_call)]
"""The first parameter of a handler: the authorized call."""

_PROBLEM: Final[dict[str, Any]] = {
    "description": "Refused; `problems` says which fields.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


class Routes:
    """The routes of one noun. A route costs a millisecond, and so it is made once: where it goes into an app."""

    def __init__(self, prefix: str, tag: str) -> None:
        self.tag = tag
        self._prefix = prefix
        self._additions: list[Callable[[APIRouter, str], None]] = []

    def install(self, app: FastAPI, prefix: str = "") -> None:
        """Puts the routes into the app, under a prefix before their own."""
        for add in self._additions:
            add(app.router, prefix + self._prefix)

    def get(self, path: str, right: Right, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("GET", path, right, **more)

    def post(self, path: str, right: Right, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("POST", path, right, **more)

    def put(self, path: str, right: Right, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("PUT", path, right, **more)

    def patch(self, path: str, right: Right, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("PATCH", path, right, **more)

    def delete(self, path: str, right: Right, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("DELETE", path, right, **more)

    def socket(self, path: str, right: Right, *, anywhere: bool = False) -> Callable[[Handler], Handler]:
        """A WebSocket with the same authorization: a refused caller gets a problem instead of a handshake."""

        def register(handler: Handler) -> Handler:
            gate, name = Depends(SocketAuthorization(right, anywhere=anywhere)), _operation(handler.__name__)

            def add(router: APIRouter, prefix: str) -> None:
                router.add_api_websocket_route(prefix + path, handler, name, dependencies=[gate])

            self._additions.append(add)
            return handler

        return register

    def public(self, method: str, path: str, **more: Any) -> Callable[[Handler], Handler]:
        """A route that answers without a token; PUBLIC has to name it too."""
        return self._add(method, path, None, **more)

    def _add(self, method: str, path: str, right: Right | None, *, largest: int = LARGEST_BODY,
             problems: tuple[int, ...] = (), responses: Mapping[int | str, dict[str, Any]] | None = None,
             openapi_extra: Mapping[str, Any] | None = None, anywhere: bool = False,
             by_body: bool = False, **more: Any) -> Callable[[Handler], Handler]:  # fmt: skip
        extra: dict[str, Any] = dict(openapi_extra or {})
        if right is not None:
            extra[RIGHT] = str(right)
        if largest != LARGEST_BODY:
            extra[LARGEST] = largest
        extra |= {mark: True for mark, is_set in ((ANYWHERE, anywhere), (BY_BODY, by_body)) if is_set}
        refusals = {*problems, 400, 422, 429, 503, *(() if right is None else (401, 403, 404))}
        if method != "GET":
            refusals |= {413, 415}

        def register(handler: Handler) -> Handler:
            def add(router: APIRouter, prefix: str) -> None:
                router.add_api_route(
                    prefix + path,
                    handler,
                    methods=[method],
                    tags=[self.tag],
                    operation_id=_operation(handler.__name__),
                    openapi_extra=extra,
                    responses={**dict.fromkeys(sorted(refusals), _PROBLEM), **(responses or {})},
                    route_class_override=AuthorizedRoute,
                    **more,
                )

            self._additions.append(add)
            return handler

        return register


def _operation(name: str) -> str:
    """`start_execution` is startExecution to the outside, for as long as there is an outside."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)

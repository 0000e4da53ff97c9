"""The fast path: the hottest routes are found first, and answered without the parts of FastAPI that they do not use.

The rules are those of the route itself: its authorization, its limit, the schemas of its body, headers and answer, its
handler. A request that is not plain is left to the route.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic_core import SchemaSerializer, SchemaValidator
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ropewalk.access.rights import Right
from ropewalk.api.doors.admission import Admission
from ropewalk.api.doors.request_bodies import read_json, require_readable, whole_body
from ropewalk.api.doors.whole_answers import ANSWER
from ropewalk.api.routes import AuthorizedRoute, known_queries, largest_of
from ropewalk.api.shapes.problems import answered

HOT: Final = frozenset({"startExecution", "getExecution"})
HOOK: Final = "/hooks/{token}"
PLAIN: Final = b"application/json"
_PLAIN_QUERY: Final = re.compile(rb"[A-Za-z0-9]+=[A-Za-z0-9_.-]+(?:&[A-Za-z0-9]+=[A-Za-z0-9_.-]+)*")


def fast_routes(app: FastAPI) -> dict[str, "FastRoute | FastHook"]:
    """The fast routes by their paths; to be called when every route is there.

    A path that ends with a parameter is known by what is before it.
    """
    found = [(str(context.path), context.original_route) for context in iter_route_contexts(app.routes)]
    fast: dict[str, FastRoute | FastHook] = {
        path: FastRoute(route)
        for path, route in found
        if isinstance(route, AuthorizedRoute) and route.operation_id in HOT
    }
    fast |= {path: FastHook(route) for path, route in found if isinstance(route, Route) and path == HOOK}
    return {path.partition("{")[0]: route for path, route in fast.items()}


def fast_route(routes: Mapping[str, "FastRoute | FastHook"], scope: Scope) -> "FastRoute | FastHook | None":
    """The fast route that takes this request, if there is one."""
    path = scope["path"]
    short = routes.get(path) or routes.get(path[: path.rfind("/") + 1])
    return short if short is not None and short.takes(scope) else None


class FastHook:
    """The fast path of deliveries to a webhook: its handler checks everything itself."""

    right: Right | None = None

    def __init__(self, route: Route) -> None:
        self.route = route

    def takes(self, scope: Scope) -> bool:
        """Whether it is a delivery as most are."""
        return bool(scope["method"] == "POST")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self.route
        scope["path_params"] = {"token": scope["path"].rpartition("/")[2]}
        request = Request(scope, receive)
        answer: ASGIApp
        try:
            answer = await self.route.endpoint(request)
        except Exception as error:  # noqa: BLE001 -- no other handler is behind this one
            answer = answered(request, error)
        await answer(scope, receive, send)


class FastRoute:
    """The fast path to a route that takes a body of JSON or none, perhaps some headers and queries, and at most the
    last step of its path."""

    def __init__(self, route: AuthorizedRoute) -> None:
        taken, right = route.dependant, route.right
        if (
            taken.cookie_params
            or len(taken.path_params) > 1
            or len(taken.body_params) > 1
            or right is None
            or [each.name for each in taken.dependencies] != ["call"]
        ):
            raise ValueError(f"{route.operation_id} takes more than a fast route gives")
        self.route = route
        self.right: Right = right
        self._authorize = route.authorize
        self._largest = largest_of(route)
        self._method = min(route.methods or ())
        self._path = next(iter(taken.path_params), None)
        self._body = next(iter(taken.body_params), None)
        self._headers = [(field.alias.lower().encode(), field) for field in taken.header_params]
        self._queries = {field.alias: field for field in taken.query_params}
        self._known_queries = known_queries(taken)
        self._request = taken.request_param_name
        self._unsaid = {field.name: field.get_default() for field in (*taken.header_params, *taken.query_params)}
        self._answers = _Answers(route)
        self._admission = Admission()

    def takes(self, scope: Scope) -> bool:
        """Whether a request is plain: its body is JSON as it is, nothing of it is encoded, and nothing comes twice."""
        headers = dict(scope["headers"])
        if scope["method"] != self._method or len(headers) != len(scope["headers"]):
            return False
        if scope["path"].endswith("/") or (scope["query_string"] and not self._has_plain_query(scope["query_string"])):
            return False
        if self._body is None:
            return b"content-length" not in headers and b"transfer-encoding" not in headers
        return (
            headers.get(b"content-type") == PLAIN
            and headers.get(b"content-length", b"0") != b"0"
            and b"content-encoding" not in headers
        )

    def _has_plain_query(self, text: bytes) -> bool:
        if _PLAIN_QUERY.fullmatch(text) is None:
            return False
        names = [name for name, _ in _queried(text)]
        return self._known_queries.issuperset(names) and len(set(names)) == len(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self.route
        answer: ASGIApp
        request = Request(scope, receive)
        try:
            # Of many starts at once, half are admitted at a time; one that waits for its end is not held.
            if self._body is None or scope["query_string"]:
                answer = await self._answer(request)
            else:
                with self._admission:
                    # An embedded store is written by this process itself: it would gain nothing by the wait.
                    if request.app.state.backend.store.is_shared:
                        await self._admission.wait()
                    answer = await self._answer(request)
        except Exception as error:  # noqa: BLE001 -- no other handler is behind this one
            answer = answered(request, error)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> ASGIApp:
        scope = request.scope
        call = request.state.call = await self._authorize(request, self.right)
        headers: dict[bytes, bytes] = dict(scope["headers"])
        body = None
        if self._body is not None:
            require_readable(headers[b"content-length"].decode("latin-1"), None, self._largest)
            body = await read_json(await whole_body(request.receive, self._largest))
        taken = self._taken(scope, body, headers)
        if self._request is not None:
            taken[self._request] = request
        return self._answers.of(await self.route.endpoint(call=call, **taken))

    def _taken(self, scope: Scope, body: Any, headers: Mapping[bytes, bytes]) -> dict[str, Any]:
        """What the handler gets; everything that is wrong with it is said together."""
        taken = self._unsaid.copy()
        problems: list[Any] = []
        for field, said, place in self._said(scope, body, headers):
            taken[field.name], found = field.validate(said, {}, loc=place)
            problems += found
        if problems:
            raise RequestValidationError(problems, body=body)
        return taken

    def _said(self, scope: Scope, body: Any, headers: Mapping[bytes, bytes]) -> Iterator[tuple[Any, Any, Any]]:
        """The fields that are there, with what they hold and where; in the order in which a route checks them."""
        if self._path is not None:
            yield self._path, scope["path"].rpartition("/")[2], ("path", self._path.alias)
        for name, text in _queried(scope["query_string"]) if scope["query_string"] else ():
            if name in self._queries:
                yield self._queries[name], text, ("query", name)
        for header, field in self._headers:
            if (said := headers.get(header)) is not None:
                yield field, said.decode("latin-1"), ("header", field.alias)
        if self._body is not None:
            yield self._body, body, ("body",)


def _queried(text: bytes) -> list[tuple[str, str]]:
    """The names and values of a plain query."""
    pairs = (pair.partition("=") for pair in text.decode("ascii").split("&"))
    return [(name, value) for name, _, value in pairs]


class _Answers:
    """Makes answers as the route does: by its model, under its status."""

    def __init__(self, route: APIRoute) -> None:
        self._status = route.status_code or 200
        # What `model_validate` and `model_dump_json` call.
        self._made: SchemaValidator = route.response_model.__pydantic_validator__
        self._json: SchemaSerializer = route.response_model.__pydantic_serializer__
        self._is_short = route.response_model_exclude_unset

    def of(self, value: Any) -> "_Said":
        return _Said(self._status, self._written(value))

    def _written(self, value: Any) -> bytes:
        made = self._made.validate_python(value)
        return self._json.to_json(made, by_alias=True, exclude_unset=self._is_short)


class _Said:
    """An answer of JSON with no headers but those it needs."""

    __slots__ = ("_body", "_status")

    def __init__(self, status: int, body: bytes) -> None:
        self._status = status
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", str(len(self._body)).encode()), (b"content-type", PLAIN)]
        await send({"type": ANSWER, "status": self._status, "headers": headers, "body": self._body})

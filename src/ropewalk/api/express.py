"""The routes that are asked most often, without detours: found first, and answered without what they do not use.

The rules are those of the route itself: its gate, its limit, the schemas of its body, headers and answer, its handler.
A request that is anything but plain is left to the route.
"""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from ropewalk.access.rights import Right
from ropewalk.api.intake import require_readable, understand, whole_body
from ropewalk.api.problems import answer_to
from ropewalk.api.routes import GatedRoute, largest_of
from ropewalk.api.turns import Turns

HOT: Final = frozenset({"startExecution"})
PLAIN: Final = b"application/json"


def ways(app: FastAPI) -> dict[str, "ExpressRoute"]:
    """The short ways by their paths; to be called when every route is there."""
    found = [(str(context.path), context.original_route) for context in iter_route_contexts(app.routes)]
    return {
        path: ExpressRoute(route)
        for path, route in found
        if isinstance(route, GatedRoute) and route.operation_id in HOT
    }


class ExpressRoute:
    """The short way to a route that takes a body of JSON and perhaps some headers, and nothing else."""

    def __init__(self, route: GatedRoute) -> None:
        taken, right = route.dependant, route.right
        others = (*taken.path_params, *taken.query_params, *taken.cookie_params)
        if (
            others
            or right is None
            or route.body_field is None
            or [each.name for each in taken.dependencies] != ["call"]
        ):
            raise ValueError(f"{route.operation_id} takes more than an express route gives")
        self.route = route
        self.right: Right = right
        self._let_in = route.let_in
        self._largest = largest_of(route)
        self._method = min(route.methods or ())
        self._body = taken.body_params[0]
        self._headers = [(field.alias.lower().encode(), field) for field in taken.header_params]
        self._unsaid = {field.name: field.get_default() for field in taken.header_params}
        self._answers = _Answers(route)
        self._turns = Turns()

    def takes(self, scope: Scope) -> bool:
        """Whether a request is plain: a body of JSON as it is, no query, and no header that comes twice."""
        headers = dict(scope["headers"])
        return (
            scope["method"] == self._method
            and not scope["query_string"]
            and len(headers) == len(scope["headers"])
            and headers.get(b"content-type") == PLAIN
            and headers.get(b"content-length", b"0") != b"0"
            and b"content-encoding" not in headers
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self.route
        answer: ASGIApp
        with self._turns:
            try:
                answer = await self._answer(scope, receive)
            except Exception as error:  # noqa: BLE001 -- whatever it is, nobody behind this answers it
                answer = answer_to(error)
        await answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> ASGIApp:
        # An embedded store is written by this process itself: nothing would be gained by the wait.
        if scope["app"].state.office.store.is_shared:
            await self._turns.wait()
        call = await self._let_in(HTTPConnection(scope), self.right)
        headers: dict[bytes, bytes] = dict(scope["headers"])
        require_readable(headers[b"content-length"].decode("latin-1"), None, self._largest)
        taken = self._taken(await understand(await whole_body(receive, self._largest)), headers)
        return self._answers.of(await self.route.endpoint(call=call, **taken))

    def _taken(self, body: Any, headers: Mapping[bytes, bytes]) -> dict[str, Any]:
        """What the handler gets; everything that is wrong with it is said together."""
        taken = self._unsaid.copy()
        problems: list[Any] = []
        for name, field in self._headers:
            if (said := headers.get(name)) is not None:
                text = said.decode("latin-1")
                taken[field.name], found = field.validate(text, {}, loc=("header", field.alias))
                problems += found
        taken[self._body.name], found = self._body.validate(body, {}, loc=("body",))
        problems += found
        if problems:
            raise RequestValidationError(problems, body=body)
        return taken


class _Answers:
    """Makes answers as the route does: by its model, under its status."""

    def __init__(self, route: APIRoute) -> None:
        self._status = route.status_code or 200
        self._model = route.response_model

    def of(self, value: Any) -> "_Said":
        return _Said(self._status, self._model.model_validate(value).model_dump_json(by_alias=True).encode())


class _Said:
    """An answer of JSON with no headers but those it needs."""

    __slots__ = ("_body", "_status")

    def __init__(self, status: int, body: bytes) -> None:
        self._status = status
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", str(len(self._body)).encode()), (b"content-type", PLAIN)]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": self._body})

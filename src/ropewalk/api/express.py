"""The routes that are asked most often, without detours: found first, and answered without what they do not use.

The rules are those of the route itself: its gate, its limit, the schemas of its body, headers and answer, its handler.
A request that is anything but plain is left to the route.
"""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from ropewalk.access.rights import Right
from ropewalk.api.gate import enter
from ropewalk.api.intake import StrictRequest
from ropewalk.api.routes import GatedRoute, largest_of

HOT: Final = frozenset({"startExecution"})
PLAIN: Final = "application/json"


def install(app: FastAPI) -> None:
    """To be called when every route is there."""
    found = [(context.path, context.original_route) for context in iter_route_contexts(app.routes)]
    for path, route in found:
        if isinstance(route, GatedRoute) and route.operation_id in HOT:
            app.router.routes.insert(0, ExpressRoute(str(path), route))


class ExpressRoute(BaseRoute):
    """The short way to a route that takes a body of JSON and perhaps some headers, and nothing else."""

    def __init__(self, path: str, route: GatedRoute) -> None:
        taken, right = route.dependant, route.right
        others = (*taken.path_params, *taken.query_params, *taken.cookie_params)
        if (
            others
            or right is None
            or route.body_field is None
            or [each.name for each in taken.dependencies] != ["call"]
        ):
            raise ValueError(f"{route.operation_id} takes more than an express route gives")
        self.path = path
        self.right: Right = right
        self._route = route
        self._largest = largest_of(route)
        self._method = min(route.methods or ())
        self._answers = _Answers(route)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["path"] == self.path and scope.get("method") == self._method and not scope["query_string"]:
            headers = Headers(scope=scope)
            if headers.get("content-type") == PLAIN and headers.get("content-length", "0") != "0":
                return Match.FULL, {"route": self._route, "endpoint": self._route.endpoint}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = StrictRequest(scope, receive, self._largest)
        call = await enter(request, self.right)
        taken = self._taken(await request.json(), request.headers)
        answer = self._answers.of(await self._route.endpoint(call=call, **taken))
        await answer(scope, receive, send)

    def _taken(self, body: Any, headers: Headers) -> dict[str, Any]:
        """What the handler gets; everything that is wrong with it is said together."""
        taken: dict[str, Any] = {}
        problems: list[Any] = []
        for field in self._route.dependant.header_params:
            if (said := headers.get(field.alias)) is None:
                taken[field.name] = field.get_default()
            else:
                taken[field.name], found = field.validate(said, {}, loc=("header", field.alias))
                problems += found
        field = self._route.dependant.body_params[0]
        taken[field.name], found = field.validate(body, {}, loc=("body",))
        problems += found
        if problems:
            raise RequestValidationError(problems, body=body)
        return taken


class _Answers:
    """Makes answers as the route does: by its model, under its status."""

    def __init__(self, route: APIRoute) -> None:
        self._status = route.status_code or 200
        self._model = route.response_model

    def of(self, value: Any) -> Response:
        return Response(
            self._model.model_validate(value).model_dump_json(by_alias=True), self._status, media_type=PLAIN
        )

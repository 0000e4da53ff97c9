"""How a route is made: it names the right it needs, and nobody reaches its handler, or sends it a body, without."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from ropewalk.access.rights import Right
from ropewalk.api.gate import PUBLIC, Call, enter
from ropewalk.api.intake import LARGEST_BODY, StrictRequest
from ropewalk.api.problems import MEDIA_TYPE

RIGHT: Final = "x-right"
LARGEST: Final = "x-largest-body"
Handler = TypeVar("Handler", bound=Callable[..., Any])


class GatedRoute(APIRoute):
    """A route whose gate comes before its body."""

    @property
    def right(self) -> Right | None:
        """What it needs; None if it is open to all."""
        named = (self.openapi_extra or {}).get(RIGHT)
        return None if named is None else Right(named)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        right, largest = self.right, (self.openapi_extra or {}).get(LARGEST, LARGEST_BODY)
        if right is None and self.operation_id not in PUBLIC:
            raise ValueError(f"{self.operation_id} names no right and is not among the public operations")

        async def gated(request: Request) -> Response:
            if right is not None:
                request.state.call = await enter(request, right)
            return await handle(StrictRequest(request.scope, request.receive, largest))

        return gated


async def _call(request: Request) -> Call:
    found: Call = request.state.call
    return found


Caller = Annotated[Call, Depends(_call)]
"""The first parameter of a handler: who was let in."""

_PROBLEM: Final[dict[str, Any]] = {
    "description": "Refused; `problems` says which fields.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


class Routes:
    """The routes of one noun."""

    def __init__(self, prefix: str, tag: str) -> None:
        self.router = APIRouter(prefix=prefix, tags=[tag], route_class=GatedRoute)

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

    def public(self, method: str, path: str, **more: Any) -> Callable[[Handler], Handler]:
        """A route that answers without a token; PUBLIC has to name it too."""
        return self._add(method, path, None, **more)

    def _add(self, method: str, path: str, right: Right | None, *, largest: int = LARGEST_BODY,
             problems: tuple[int, ...] = (), **more: Any) -> Callable[[Handler], Handler]:  # fmt: skip
        extra = {} if right is None else {RIGHT: str(right)}
        if largest != LARGEST_BODY:
            extra[LARGEST] = largest  # type: ignore[assignment]  # one is a number
        refusals = {*problems, 400, 422, 429, 503, *(() if right is None else (401, 403, 404))}
        if method != "GET":
            refusals |= {413, 415}

        def register(handler: Handler) -> Handler:
            self.router.add_api_route(
                path,
                handler,
                methods=[method],
                operation_id=_operation(handler.__name__),
                openapi_extra=extra,
                responses=dict.fromkeys(sorted(refusals), _PROBLEM),
                **more,
            )
            return handler

        return register


def _operation(name: str) -> str:
    """`start_execution` is startExecution to the outside, for as long as there is an outside."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)

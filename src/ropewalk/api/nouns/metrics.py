"""The metrics of this server, for Prometheus."""

from typing import Final

from fastapi.routing import APIWebSocketRoute
from starlette.responses import Response
from starlette.types import Scope

from ropewalk.access.rights import Right
from ropewalk.api.routes import Caller, Routes
from ropewalk.core.errors import NotFound
from ropewalk.service.metrics import Sampler
from ropewalk.telemetry.metrics import CONTENT_TYPE, Metrics

routes = Routes("", "Metrics")

_UNMATCHED: Final = "unmatched"
_TEXT: Final = {"text/plain": {"schema": {"type": "string"}, "example": "ropewalk_executions_started_total 12.0\n"}}


class ServerMetrics:
    """What this server counts, and what it asks the store for."""

    def __init__(self, metrics: Metrics, sampler: Sampler) -> None:
        self.metrics = metrics
        self.sampler = sampler

    async def render(self) -> bytes:
        """Everything, in the text Prometheus reads."""
        self.metrics.show(await self.sampler.sample())
        return self.metrics.render()


@routes.get("/metrics", Right.OBSERVE, response_class=Response,
            responses={200: {"description": "The metrics.", "content": _TEXT}})  # fmt: skip
async def get_metrics(call: Caller) -> Response:
    """The metrics of this process and of the store it is on, in the text format of Prometheus."""
    metrics = call.backend.metrics
    if metrics is None:
        raise NotFound("this server keeps no figures: telemetry.metrics is off")
    return Response(await metrics.render(), media_type=CONTENT_TYPE)


def count(scope: Scope, status: int, seconds: float) -> None:
    """Counts a request, or a handshake, by its operation and its status, if the server has metrics."""
    metrics = scope["app"].state.backend.metrics
    if metrics is not None:
        metrics.metrics.request_ended(_operation(scope), status, seconds)


def _operation(scope: Scope) -> str:
    """The name of the route, never the path: that is the caller's, and without end."""
    route = scope.get("route")
    named = route.name if isinstance(route, APIWebSocketRoute) else getattr(route, "operation_id", None)
    return named or _UNMATCHED

"""The figures of this server, for Prometheus."""

import time
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ropewalk.access.rights import Right
from ropewalk.api.routes import Caller, Routes
from ropewalk.core.errors import NotFound
from ropewalk.service.sampling import Sampler
from ropewalk.telemetry.metrics import CONTENT_TYPE, Metrics

routes = Routes("", "Metrics")

_UNMATCHED: Final = "unmatched"
_TEXT: Final = {"text/plain": {"schema": {"type": "string"}, "example": "ropewalk_executions_started_total 12.0\n"}}


class Figures:
    """What this server counts, and what it asks the store for."""

    def __init__(self, metrics: Metrics, sampler: Sampler) -> None:
        self.metrics = metrics
        self.sampler = sampler

    async def render(self) -> bytes:
        """Everything, in the text Prometheus reads."""
        self.metrics.show(await self.sampler.sample())
        return self.metrics.render()


@routes.get("/metrics", Right.OPERATE, response_class=Response,
            responses={200: {"description": "The figures.", "content": _TEXT}})  # fmt: skip
async def get_metrics(call: Caller) -> Response:
    """The figures of this process and of the store it is on, in the text format of Prometheus."""
    figures = call.office.figures
    if figures is None:
        raise NotFound("this server keeps no figures: telemetry.metrics is off")
    return Response(await figures.render(), media_type=CONTENT_TYPE)


class Counted:
    """Counts every request by its operation and its status, and how long it took."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            # The name of the route, never the path: that is the caller's, and without end.
            operation = getattr(scope.get("route"), "operation_id", None) or _UNMATCHED
            self._metrics.requests.labels(operation, str(status)).inc()
            self._metrics.request_time.labels(operation).observe(time.perf_counter() - began)

"""Webhooks: deliveries from outside start workflows. Each has its own check instead of a token of ours."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ropewalk.api.backend import Backend
from ropewalk.api.doors.request_bodies import require_readable, strict_json, whole_body
from ropewalk.api.shapes.problems import HEADERS, Refused, answer_to, problem
from ropewalk.core.duration import SECOND, parse_duration
from ropewalk.core.errors import RopewalkError
from ropewalk.core.state import ExecutionState
from ropewalk.service.triggers.firing import Fired, Reason, settings_of
from ropewalk.store.triggers import Trigger
from ropewalk.triggers.webhook import LARGEST_BODY, BadDelivery, Hooks, NoHook, Sent
from ropewalk.triggers.webhook import Response as Said

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
OPERATION: Final = "deliverWebhook"
DEFAULT_WAIT: Final = 30.0
_OWN: Final = frozenset({"connection", "content-length", "transfer-encoding", "set-cookie", "date", "server"})
"""What a workflow may not say in an answer of ours."""


class HookRoute(Route):
    """A route that answers without a token: the hook's own check decides."""

    operation_id = OPERATION


def routes() -> list[HookRoute]:
    """Where deliveries come in; under `/hooks/test` what came is shown, and nothing is started."""
    return [
        HookRoute(path, handler, methods=list(METHODS))
        for path, handler in (
            ("/hooks/test/{token}", try_out),
            ("/hooks/test/{token}/{path:path}", try_out),
            ("/hooks/{token}", deliver),
            ("/hooks/{token}/{path:path}", deliver),
        )
    ]


_all: Final[WeakKeyDictionary[Backend, Hooks]] = WeakKeyDictionary()


def hooks_of(backend: Backend) -> Hooks:
    """What takes the deliveries of this server."""
    if backend not in _all:
        _all[backend] = Hooks(backend.service("default"), strict_json)
    return _all[backend]


async def deliver(request: Request) -> Response:
    """Start what the delivery asks for, and answer as its webhook says."""
    return await _answered(request, is_test=False)


async def try_out(request: Request) -> Response:
    """Show what came, and what it would start."""
    return await _answered(request, is_test=True)


async def _answered(request: Request, *, is_test: bool) -> Response:
    backend: Backend = request.app.state.backend
    service = backend.service("default")
    hooks = hooks_of(backend)
    try:
        wanted = request.headers.get("access-control-request-method") if request.method == "OPTIONS" else request.method
        found = await hooks.find(request.path_params["token"], wanted or "", _address(request))
        allowed = _cors(request, settings_of(found))
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={**HEADERS, **allowed})
        event, key = await hooks.event(found, await _sent(request, settings_of(found)))
        if is_test:
            would = await service.of(found.workspace).triggers.try_out(found.id, event)
            return _json(200, {"event": event, "deliveryId": key, **would}, allowed)
        fired = await hooks.deliver(found, event, key)
        return await _said(request, hooks, found, fired, allowed)
    except NoHook:
        return problem(404, "there is no such hook", ())
    except BadDelivery as error:
        return problem(400, str(error), ())
    except (RopewalkError, Refused) as error:
        return answer_to(error)


async def _sent(request: Request, settings: Mapping[str, Any]) -> Sent:
    largest = settings.get("maxBody", LARGEST_BODY)
    headers = {name.lower(): value for name, value in request.headers.items()}
    require_readable(headers.get("content-length", "0"), headers.get("content-encoding"), largest)
    body = await whole_body(request.receive, largest)
    return Sent(request.method, _path(request), request.url.query, headers, body)


def _path(request: Request) -> str:
    """What follows the address, as it was sent: a step may hold an encoded slash."""
    sent = request.scope.get("raw_path", b"").decode("latin-1").partition("?")[0]
    return str(sent.partition(f"{request.path_params['token']}")[2]).lstrip("/")


def _address(request: Request) -> str:
    return "" if request.client is None else request.client.host


def _cors(request: Request, settings: Mapping[str, Any]) -> dict[str, str]:
    """What a browser is told, if the page that calls is one of those that may."""
    origin, allowed = request.headers.get("origin"), settings.get("cors", [])
    if origin is None or not ("*" in allowed or origin in allowed):
        return {}
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": ", ".join(settings.get("methods", ["POST"])),
        "access-control-allow-headers": "content-type, idempotency-key",
        "access-control-max-age": "600",
        "vary": "origin",
    }


async def _said(request: Request, hooks: Hooks, trigger: Trigger, fired: Fired, more: Mapping[str, str]) -> Response:
    """The answer to a delivery that was taken."""
    if fired.execution is None:
        return _skipped(fired, more)
    settings = settings_of(trigger)
    kind = settings.get("answer", "accepted")
    about = {"executionId": fired.execution, "status": "accepted"}
    if kind == "accepted":
        return _json(202, about, more)
    seconds = parse_duration(settings["timeout"]) / SECOND if "timeout" in settings else DEFAULT_WAIT
    wait = _result if kind == "result" else _response
    try:
        async with asyncio.timeout(seconds):
            return await wait(request, hooks, fired.execution, more)
    except TimeoutError:
        link = f"/api/v1/workflow/executions/{fired.execution}"
        return _json(504, {**about, "status": "running", "execution": link}, more)


def _skipped(fired: Fired, more: Mapping[str, str]) -> Response:
    if fired.reason == Reason.INVALID:
        return problem(422, "the workflow cannot be started with what was sent", ())
    if fired.reason in (Reason.MISSING, Reason.DISABLED):
        return problem(404, "there is no such hook", ())
    return _json(200, {"executionId": None, "status": "skipped", "reason": fired.reason}, more)


async def _result(request: Request, hooks: Hooks, execution: str, more: Mapping[str, str]) -> Response:
    backend: Backend = request.app.state.backend
    ended = await backend.service("default").ended(execution)
    if ended.state is not ExecutionState.SUCCESS:
        return _json(500, {"executionId": execution, "status": ended.state}, more)
    if ended.blob is not None:
        return _plain(200, await backend.store.blobs.get(ended.blob.hash), "application/json", more)
    return _json(200, ended.output, more)


async def _response(request: Request, hooks: Hooks, execution: str, more: Mapping[str, str]) -> Response:
    said = await hooks.response(execution)
    return await _result(request, hooks, execution, more) if said is None else _as_said(said, more)


def _as_said(said: Said, more: Mapping[str, str]) -> Response:
    """What a workflow answers; a browser is told to run nothing of it."""
    headers = {name.lower(): value for name, value in said.headers.items() if name.lower() not in _OWN}
    kind = headers.pop("content-type", None)
    is_text = isinstance(said.body, str)
    body = b"" if said.body is None else said.body.encode() if is_text else msgspec.json.encode(said.body)
    default = "text/plain; charset=utf-8" if is_text else "application/json"
    return _plain(said.status, body, kind or default, {**headers, **more})


def _json(status: int, value: Any, more: Mapping[str, str]) -> Response:
    return _plain(status, msgspec.json.encode(value), "application/json", more)


def _plain(status: int, body: bytes, kind: str, more: Mapping[str, str]) -> Response:
    safe = {**HEADERS, "content-security-policy": "sandbox; default-src 'none'"}
    return Response(body, status, headers={**more, **safe, "content-type": kind})

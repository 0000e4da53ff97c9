"""Refusals as RFC 9457 problems: what is wrong, where, and an id to ask about; never a traceback."""

import logging
import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
import uuid_utils
from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ropewalk.access.rights import Right
from ropewalk.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    InvalidTransition,
    NotFound,
    Problem,
    RopewalkError,
    Unauthenticated,
    Unavailable,
    Unreadable,
)
from ropewalk.engines.fair_turns import TooManyWaiting
from ropewalk.service import payloads
from ropewalk.store.errors import StoreDamaged

MEDIA_TYPE: Final = "application/problem+json"
KIND: Final = "urn:ropewalk:problem:"
UNREADABLE: Final = "unreadable"
"""The kind of every problem with what is stored of an execution: a client tells its user the same of all of them."""
PLAIN: Final = "about:blank"
"""The type of a problem that its status says everything about."""
RETRY_AFTER: Final = "1"
HEADERS: Final = {"x-content-type-options": "nosniff", "cache-control": "no-store"}
"""What every answer says: its type is what it says, and no cache keeps it."""
TOLD_EVERY: Final = 60.0
"""How often (s) the log tells of a store that is damaged."""
_log = logging.getLogger("ropewalk.api")
_last_told: Final[dict[str, float]] = {}

_STATUS: Final[Mapping[type[RopewalkError], int]] = {
    TooManyWaiting: 429,
    Invalid: 422,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    InvalidTransition: 409,
    Conflict: 409,
    Unavailable: 503,
}
_TITLES: Final = {
    400: "Malformed request",
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "No such method here",
    406: "No such form of the answer",
    408: "Too slow",
    409: "Not in this state",
    411: "Length missing",
    412: "Changed meanwhile",
    413: "Too large",
    415: "Not a form we read",
    422: "Invalid",
    428: "Precondition missing",
    429: "Too many requests",
    500: "Our fault",
    503: "Try again",
}


class Refused(HTTPException):
    """A request that is refused before its handler looks at it."""

    def __init__(self, status: int, detail: str, field: str | None = None, retry_after: int | None = None) -> None:
        headers = None if retry_after is None else {"Retry-After": str(retry_after)}
        super().__init__(status, detail, headers)
        self.problems = () if field is None else ({"field": field, "message": detail},)


def problem(
    status: int,
    detail: str,
    problems: Iterable[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
    instance: str | None = None,
    kind: str = PLAIN,
    title: str | None = None,
) -> Response:
    """The answer to a refused request."""
    body: dict[str, Any] = {
        "type": kind,
        "title": title or _TITLES.get(status, "Refused"),
        "status": status,
        "detail": detail,
        "instance": instance or f"urn:uuid:{uuid_utils.uuid7()}",
    }
    if listed := list(problems):
        body["problems"] = listed
    return Response(msgspec.json.encode(body), status, {**HEADERS, **(headers or {})}, MEDIA_TYPE)


def install(app: Starlette) -> None:
    """Every error in this app is answered as a problem."""
    for kind in (RopewalkError, RequestValidationError, WebSocketRequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _answered)


async def _answered(request: Request, error: Exception) -> Response:
    return answered(request, error)


def answered(request: Request, error: Exception) -> Response:
    """The answer to a request that ended with this, as its caller may read it."""
    return answer_to(error, may_read=_may_read(request))


def _may_read(request: Request) -> bool:
    """Whether the caller may read the payloads of the workspace; the answer to other callers quotes nothing stored."""
    call = getattr(request.state, "call", None)
    return call is not None and Right.READ_PAYLOADS in call.rights


def answer_to(error: Exception, *, may_read: bool = False) -> Response:
    """The answer to a request that ended with this; `may_read` if the caller may read payloads."""
    match error:
        case Unreadable():
            return _unreadable(error, may_read)
        case RopewalkError():
            return of_error(error)
        case RequestValidationError() | WebSocketRequestValidationError():
            return _invalid(error)
        case HTTPException():
            return _refused(error)
        case _:
            return _fault(error)


def of_error(error: RopewalkError) -> Response:
    """The answer to what a rule of ours refuses."""
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
    if status == 500:
        return _fault(error)
    if isinstance(error, StoreDamaged):
        _tell_of_damage(error)
    listed = [_listed(each) for each in error.problems] if isinstance(error, Invalid) else []
    detail = f"{len(listed)} things to mend" if len(listed) > 1 else str(error)
    return problem(status, detail, listed, _headers(status), kind=_kind(error))


def _tell_of_damage(error: StoreDamaged) -> None:
    """The cause and the remedy, in one line a minute: every request may meet the same damage."""
    now, last = time.monotonic(), _last_told.get("damage", -math.inf)
    if now - last >= TOLD_EVERY:
        _last_told["damage"] = now
        _log.error("a request could not be answered: %s", error)


def _kind(error: RopewalkError) -> str:
    """The error's name, so that a client can raise the same: `urn:ropewalk:problem:invalid-transition`."""
    name = next(each.__name__ for each in type(error).__mro__ if each.__module__ == RopewalkError.__module__)
    return KIND + re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def _headers(status: int) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    return {"Retry-After": RETRY_AFTER} if status in (429, 503) else {}


def _listed(each: Problem) -> dict[str, str]:
    return {"field": each.where, "message": each.message}


def _invalid(error: RequestValidationError | WebSocketRequestValidationError) -> Response:
    """What does not fit the schema of the route; the field as the caller wrote it."""
    listed = [_listed(_located(each)) for each in error.errors()]
    first = f"{listed[0]['field']}: {listed[0]['message']}"
    return problem(422, first if len(listed) == 1 else f"{len(listed)} things to mend", listed)


def _located(each: Mapping[str, Any]) -> Problem:
    # The first step says where the request has it: body, path, query, header. In the body, the field alone is clear.
    path = tuple(each["loc"])
    return Problem(path[1:] if path[:1] == ("body",) and len(path) > 1 else path, str(each["msg"]))


def _refused(error: HTTPException) -> Response:
    problems = error.problems if isinstance(error, Refused) else ()
    return problem(error.status_code, error.detail, problems, error.headers)


def _unreadable(error: Unreadable, may_read: bool) -> Response:
    """Asking again does not help, and the caller cannot mend it; but the caller can report what is to be mended."""
    instance = f"urn:uuid:{uuid_utils.uuid7()}"
    _log.error("what was asked for is damaged (%s)", instance, exc_info=error)
    said = payloads.said(error, may_read=may_read)
    return problem(500, said, (), None, instance, KIND + UNREADABLE, "Cannot be read")


def _fault(error: Exception) -> Response:
    instance = f"urn:uuid:{uuid_utils.uuid7()}"
    _log.error("a request failed by a fault of ours (%s)", instance, exc_info=error)
    return problem(500, "this is a fault of ours; the log has more under this instance", (), None, instance)

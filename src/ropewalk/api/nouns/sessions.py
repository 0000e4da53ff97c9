"""Sessions for browsers, and who the caller is."""

from typing import Annotated, Any, Final

from fastapi import Request, Response
from pydantic import Field

from ropewalk.access.parts import parts_of
from ropewalk.access.rights import Right, Role
from ropewalk.access.sessions import LASTS, Visit
from ropewalk.api.backend import Backend
from ropewalk.api.doors.authentication import (
    cookie_name,
    identify,
    is_secure,
    require_origin,
    require_rate,
    session_cookie,
)
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, exemplified
from ropewalk.api.shapes.problems import Refused
from ropewalk.core.duration import SECOND
from ropewalk.core.instant import moment, rfc3339

routes = Routes("", "Sessions")

_WHEN: Final = "2026-11-16T20:00:00.000000Z"
_CSRF: Final = "5f0c9a7e11d1c43b9e8a7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a3928"
Token = Annotated[str, Field(min_length=1, max_length=8_192, pattern=r"^[\x21-\x7e]+$")]


class OpenSessionBody(Body):
    """An API key, or a token of an issuer."""

    model_config = exemplified(Body, {"token": "rw_<id>_<secret>"})

    token: Token


class Session(Answer):
    """An open session: the cookie is in the headers, out of a page's reach."""

    model_config = exemplified(Answer, {"subject": "user:ann", "csrfToken": _CSRF, "expiresAt": _WHEN})

    subject: str
    csrf_token: str
    expires_at: str


class SessionClosed(Answer):
    """Whether there was one to close."""

    model_config = exemplified(Answer, {"changed": True})

    changed: bool


class Part(Answer):
    """The caller's role in a workspace; without a role, something in it is shared with the caller."""

    model_config = exemplified(Answer, {"workspaceId": "default", "role": "viewer", "rights": ["read"]})

    workspace_id: str
    role: Role | None
    rights: list[Right]


class Me(Answer):
    """Who the caller is. `csrfToken` is what unsafe requests of this session say; null without one."""

    model_config = exemplified(Answer, {
        "subject": "user:ann", "root": False, "expiresAt": _WHEN, "csrfToken": None,
        "workspaces": [{"workspaceId": "default", "role": "viewer", "rights": ["read"]}],
    })  # fmt: skip

    subject: str
    root: bool
    expires_at: str | None
    csrf_token: str | None
    workspaces: list[Part]


@routes.public("POST", "/session", status_code=201, response_model=Session, problems=(401, 403))
async def open_session(request: Request, body: OpenSessionBody, response: Response) -> dict[str, Any]:
    """Exchange a token for a cookie that pages cannot read; at most twelve hours, and never beyond the token."""
    require_origin(request)
    backend: Backend = request.app.state.backend
    actor = await identify(request, body.token)
    require_rate(backend, actor)
    wait = backend.rate_limits.sessions.take(actor.subject, backend.store.now())
    if wait is not None:
        raise Refused(429, "too many sessions of yours", retry_after=wait)
    cookie, visit = await backend.sessions.open(actor)
    _set_cookie(request, response, cookie, LASTS // SECOND)
    return {"subject": actor.subject, "csrfToken": visit.csrf, "expiresAt": rfc3339(visit.expires_at)}


@routes.delete("/session", Right.COME_IN, response_model=SessionClosed)
async def close_session(call: Caller, request: Request, response: Response) -> dict[str, Any]:
    """End the session of the cookie: here at once, on every server within five seconds."""
    cookie = session_cookie(request)
    changed = cookie is not None and await call.backend.sessions.close(cookie, call.actor)
    _set_cookie(request, response, "", 0)
    return {"changed": changed}


@routes.get("/me", Right.COME_IN, response_model=Me)
async def get_me(call: Caller, request: Request) -> dict[str, Any]:
    """The caller, and the rights they have in each workspace. A root key may name any workspace; its home is listed."""
    visit = await _visit(call, request)
    parts = await parts_of(call.backend.store, call.actor)
    return {
        "subject": call.actor.subject,
        "root": call.actor.is_root,
        "expiresAt": moment(call.actor.expires_at),
        "csrfToken": None if visit is None else visit.csrf,
        "workspaces": [
            {"workspaceId": each.workspace, "role": each.role, "rights": sorted(each.rights)} for each in parts
        ],
    }


async def _visit(call: Caller, request: Request) -> Visit | None:
    """The session that was the proof, if it was one."""
    cookie = None if "authorization" in request.headers else session_cookie(request)
    return None if cookie is None else await call.backend.sessions.find(cookie)


def _set_cookie(request: Request, response: Response, value: str, seconds: int) -> None:
    name, secure = cookie_name(request), is_secure(request)
    response.set_cookie(name, value, max_age=seconds, path="/", secure=secure, httponly=True, samesite="strict")
    response.headers["Cache-Control"] = "no-store"

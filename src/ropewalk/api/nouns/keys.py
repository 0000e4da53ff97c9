"""API keys: made (the token is shown this once), listed, revoked."""

from typing import Annotated, Any, Final

import msgspec
from fastapi import Path, Response
from pydantic import Field

from ropewalk.access import keys as access
from ropewalk.access.rights import EVERYTHING, RIGHTS, Right, Role
from ropewalk.api.doors.authorization import Call
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, Cursor, Limit, Page, exemplified, page
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import Forbidden, InvalidInput, Problem
from ropewalk.core.instant import moment, rfc3339
from ropewalk.store import keys

routes = Routes("/keys", "Keys")

LONGEST_LIFE: Final = 10 * 365 * 24 * 3600
_AN_ID: Final = "019a8b0c3f1e7c4e9d532b1f0c9a7e11"
_A_KEY: Final = {
    "id": _AN_ID, "workspaceId": "default", "name": "deploy", "role": "operator", "scopes": ["read", "execute"],
    "pools": None, "root": False, "createdAt": "2026-11-16T08:00:00.000000Z", "createdBy": "user:ann",
    "expiresAt": None, "lastUsedAt": None, "revokedAt": None,
}  # fmt: skip

KeyId = Annotated[str, Path(alias="keyId", max_length=64, pattern=r"^[0-9a-f]+$")]
Name = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]
Pool = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")]


class CreateKeyBody(Body):
    """A key: at most what its maker may do. `scopes` are all that is used of the role, or of root."""

    model_config = exemplified(
        Body,
        {"name": "deploy", "role": "operator", "scopes": ["read", "execute"], "expiresInSeconds": 7_776_000},
        {"name": "gpu runner", "role": "runner", "pools": ["gpu"]},
        {"name": "prometheus", "role": "admin", "root": True, "scopes": ["observe"]},
    )

    name: Name
    role: Role = Field(strict=False)
    scopes: list[Annotated[Right, Field(strict=False)]] | None = Field(None, min_length=1, max_length=len(Right))
    pools: list[Pool] | None = Field(None, min_length=1, max_length=100)
    expires_in_seconds: int | None = Field(None, ge=1, le=LONGEST_LIFE)
    root: bool = False


class Key(Answer):
    """A key, without what opens."""

    model_config = exemplified(Answer, _A_KEY)

    id: str
    workspace_id: str
    name: str
    role: Role
    scopes: list[Right] | None
    pools: list[str] | None
    root: bool
    created_at: str
    created_by: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None


class NewKey(Key):
    """A key with its token, which is shown only here."""

    model_config = exemplified(Answer, _A_KEY | {"token": f"rw_{_AN_ID}_<43 characters>"})

    token: str


@routes.post("", Right.ADMINISTER, status_code=201, response_model=NewKey)
async def create_key(call: Caller, body: CreateKeyBody, response: Response) -> dict[str, Any]:
    """Make a key of this workspace. Its token is in this answer and nowhere else."""
    call.require()
    _check(call, body)
    store, now = call.backend.store, call.backend.store.now()
    async with store.transaction() as tx:
        key_id, token = await access.make(tx, _wanted(call, body, now), call.actor.subject, now)
        made = await keys.get(tx, key_id)
    assert made is not None, "it was inserted"
    response.headers["Cache-Control"] = "no-store"
    return _shown(made) | {"token": token}


def _check(call: Call, body: CreateKeyBody) -> None:
    """A caller grants nothing that it lacks: rights, pools, root, or time."""
    given = _given(body)
    if not given:
        raise InvalidInput([Problem(("scopes",), f"leave nothing of what the role {body.role} may do")])
    if body.pools is not None and Right.RUN not in given:
        raise InvalidInput([Problem(("pools",), f"are for keys with the right to {Right.RUN}")])
    if body.root and body.role is not Role.ADMIN:
        raise InvalidInput([Problem(("role",), "of a root key is admin")])
    call.giver.require({*given, Right.OPERATE} if body.root else given)
    mine, wanted = call.actor.pools, body.pools
    if mine is not None and Right.RUN in given and (wanted is None or not mine.issuperset(wanted)):
        raise Forbidden("a caller cannot give what it lacks: other pools than its own")


def _given(body: CreateKeyBody) -> frozenset[Right]:
    """What the key will be able to do: what its scopes leave of its role, or of everything if it is root."""
    most = EVERYTHING if body.root else RIGHTS[body.role]
    return most if body.scopes is None else most & frozenset(body.scopes)


def _wanted(call: Call, body: CreateKeyBody, now: int) -> access.Wanted:
    return access.Wanted(
        workspace=call.workspace,
        name=body.name,
        role=body.role,
        scopes=None if body.scopes is None else tuple(sorted(set(body.scopes))),
        pools=None if body.pools is None else tuple(sorted(set(body.pools))),
        is_root=body.root,
        expires_at=_end(call, body.expires_in_seconds, now),
    )


def _end(call: Call, seconds: int | None, now: int) -> int | None:
    """A key that expires makes none that outlive it."""
    asked = None if seconds is None else now + seconds * SECOND
    latest = call.giver.expires_at
    if latest is None or asked is None:
        return asked if latest is None else latest
    return min(asked, latest)


@routes.get("", Right.ADMINISTER, response_model=Page[Key])
async def list_keys(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> dict[str, Any]:
    """The keys of the workspace, newest first, revoked and expired ones too."""
    call.require()
    listing = call.listing("keys")
    before = keys.NEWEST if cursor is None else call.backend.cursors.read(listing, cursor)
    found = await keys.listed(call.backend.store, call.workspace, before=before, limit=limit)
    return page(call.backend.cursors, listing, [_shown(each) for each in found], limit, found[-1].id if found else None)


@routes.delete("/{keyId}", Right.ADMINISTER, response_model=Key, problems=(409,))
async def revoke_key(call: Caller, key_id: KeyId) -> dict[str, Any]:
    """Revoke a key and the sessions it opened: here at once, on every server within five seconds."""
    call.require()
    store = call.backend.store
    async with store.transaction() as tx:
        revoked = await access.revoke(tx, call.giver, key_id, store.now())
    call.backend.forget()
    return _shown(revoked)


def _shown(key: keys.ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "workspaceId": key.workspace,
        "name": key.name,
        "role": key.role,
        "scopes": None if key.scopes is None else msgspec.json.decode(key.scopes),
        "pools": None if key.pools is None else msgspec.json.decode(key.pools),
        "root": bool(key.is_root),
        "createdAt": rfc3339(key.created_at),
        "createdBy": key.created_by,
        "expiresAt": moment(key.expires_at),
        "lastUsedAt": moment(key.last_used_at),
        "revokedAt": moment(key.revoked_at),
    }

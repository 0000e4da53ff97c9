"""Credentials over HTTP: set, changed, tried, shared. A secret goes in and never comes out."""

from typing import Annotated, Any, Final

from fastapi import Path, Response
from pydantic import Field, JsonValue

from ropewalk.access import credentials as access
from ropewalk.access.rights import Right
from ropewalk.api.nouns.members import LetGo, Subject, SubjectQuery
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, Body, Cursor, Limit, Page, exemplified, page
from ropewalk.api.shapes.executions import A_MOMENT

routes = Routes("/credentials", "Credentials")

_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
_A_CREDENTIAL: Final = {
    "id": "019a8b0c-3f1e-7c4e-9d53-2b1f0c9a7e11", "name": "shop", "type": "http.basic",
    "values": {"username": "shop"}, "secrets": {"password": "stored"}, "hosts": ["api.example.org"], "revision": 1,
    "createdAt": A_MOMENT, "createdBy": "user:ann", "updatedAt": A_MOMENT, "updatedBy": "user:ann",
    "lastUsedAt": A_MOMENT,
}  # fmt: skip
_A_WORKFLOW: Final = {"id": "019a8b0c-3f1e-7c4e-9d53-2b1f0c9a7e12", "name": "refund", "version": 3}

Name = Annotated[str, Field(min_length=1, max_length=128, pattern=_NAME, description="How workflows name it.")]
CredentialName = Annotated[str, Path(alias="credentialName", max_length=128, pattern=_NAME)]
Hosts = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=253)]],
    Field(max_length=100, description="The hosts it may be sent to, like `api.example.org` or `*.example.org`."),
]
Values = Annotated[
    dict[str, JsonValue],
    Field(max_length=32, description="Its fields. A secret may be `env:NAME` or `file:/path`, if the settings say so."),
]


class CreateCredentialBody(Body):
    """A credential: its type says which fields it has."""

    model_config = exemplified(
        Body,
        {
            "name": "shop",
            "type": "http.basic",
            "values": {"username": "shop", "password": "…"},
            "hosts": ["api.example.org"],
        },
    )

    name: Name
    type: str = Field(min_length=1, max_length=64)
    values: Values
    hosts: Hosts = Field(default_factory=list)


class ChangeCredentialBody(Body):
    """The fields to set anew; null takes one away, and what is not named stays. `hosts` are replaced whole."""

    model_config = exemplified(Body, {"values": {"password": "…"}})

    values: Values = Field(default_factory=dict)
    hosts: Hosts | None = None


class PermitBody(Body):
    """Who is to use it."""

    model_config = exemplified(Body, {"subject": "user:cem"})

    subject: Subject


class Credential(Answer):
    """A credential. Of each secret it says whether it is stored, or the reference that stands for it."""

    model_config = exemplified(Answer, _A_CREDENTIAL)

    id: str
    name: str
    type: str
    values: dict[str, Any]
    secrets: dict[str, str]
    hosts: list[str]
    revision: int
    created_at: str
    created_by: str
    updated_at: str
    updated_by: str
    last_used_at: str | None


class UsingWorkflow(Answer):
    """A workflow whose published version names the credential."""

    id: str
    name: str
    version: int


class UsedCredential(Credential):
    """A credential, and the workflows whose published versions name it."""

    model_config = exemplified(Answer, _A_CREDENTIAL | {"usedBy": [_A_WORKFLOW]})

    used_by: list[UsingWorkflow]


class RemovedCredential(Answer):
    """A credential that is gone; `changed` is false if there was none."""

    model_config = exemplified(Answer, {"name": "shop", "changed": True})

    name: str
    changed: bool


class Trial(Answer):
    """What came of trying a credential; `ok` is null if its type cannot be tried."""

    model_config = exemplified(Answer, {"ok": True, "message": "https://api.example.org/me answers 200"})

    ok: bool | None
    message: str


class Permit(Answer):
    """A subject that may use a credential."""

    model_config = exemplified(Answer, {"subject": "user:cem", "createdAt": A_MOMENT, "createdBy": "user:ann"})

    subject: str
    created_at: str
    created_by: str


class Rotation(Answer):
    """How many keys of workspaces were wrapped by another master key before."""

    model_config = exemplified(Answer, {"rewrapped": 2})

    rewrapped: int


@routes.post("", Right.ADMINISTER, status_code=201, response_model=Credential, problems=(409,))
async def create_credential(call: Caller, body: CreateCredentialBody, response: Response) -> dict[str, Any]:
    """Keep a credential under a name that is not taken."""
    call.require()
    response.headers["Cache-Control"] = "no-store"
    about = (body.name, body.type, body.values, body.hosts)
    return await call.service.credentials.create(*about, call.actor.subject)


@routes.get("", Right.USE_CREDENTIALS, response_model=Page[Credential])
async def list_credentials(call: Caller, limit: Limit = 50, cursor: Cursor = None) -> dict[str, Any]:
    """The credentials of the workspace by name, without their secrets."""
    call.require()
    listing = call.listing("credentials")
    after = "" if cursor is None else call.backend.cursors.read(listing, cursor)
    found = await call.service.credentials.listed(after=after, limit=limit)
    return page(call.backend.cursors, listing, found, limit, found[-1]["name"] if found else None)


@routes.post("/rotate", Right.OPERATE, response_model=Rotation, problems=(409,))
async def rotate_master_key(call: Caller) -> dict[str, Any]:
    """Wrap the keys of all workspaces with the master key of this server; it has to know the one from before too."""
    call.require()
    return await call.service.credentials.rotate(call.actor.subject)


@routes.get("/{credentialName}", Right.USE_CREDENTIALS, response_model=UsedCredential)
async def get_credential(call: Caller, credential_name: CredentialName) -> dict[str, Any]:
    """A credential without its secrets, and which workflows use it."""
    call.require()
    return await call.service.credentials.get(credential_name)


@routes.patch("/{credentialName}", Right.ADMINISTER, response_model=Credential, problems=(409,))
async def change_credential(call: Caller, credential_name: CredentialName, body: ChangeCredentialBody
                            ) -> dict[str, Any]:  # fmt: skip
    """Set fields of a credential anew; workflows get them from their next attempt on."""
    call.require()
    about = (credential_name, body.values, body.hosts)
    return await call.service.credentials.change(*about, call.actor.subject)


@routes.delete("/{credentialName}", Right.ADMINISTER, response_model=RemovedCredential)
async def remove_credential(call: Caller, credential_name: CredentialName) -> dict[str, Any]:
    """Forget a credential, its secrets and its shares. Workflows that name it fail from then on."""
    call.require()
    changed = await call.service.credentials.remove(credential_name, call.actor.subject)
    return {"name": credential_name, "changed": changed}


@routes.post("/{credentialName}/test", Right.USE_CREDENTIALS, response_model=Trial, problems=(409,))
async def test_credential(call: Caller, credential_name: CredentialName) -> dict[str, Any]:
    """Try whether the counterpart takes the credential."""
    call.require()
    return await call.service.credentials.test(credential_name, call.actor.subject)


@routes.get("/{credentialName}/acl", Right.ADMINISTER, response_model=Page[Permit])
async def list_permits(
    call: Caller, credential_name: CredentialName, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, Any]:
    """Who may use the credential beside the members that may use any, by subject."""
    call.require()
    listing = call.listing("permits", credential_name)
    after = "" if cursor is None else call.backend.cursors.read(listing, cursor)
    found = await call.service.credentials.permits(credential_name, after=after, limit=limit)
    return page(call.backend.cursors, listing, found, limit, found[-1]["subject"] if found else None)


@routes.put("/{credentialName}/acl", Right.ADMINISTER, response_model=Permit)
async def share_credential(call: Caller, credential_name: CredentialName, body: PermitBody) -> dict[str, Any]:
    """Let a subject use the credential in workflows that are shared with it."""
    call.require()
    await access.require_giving(call.backend.store, call.giver, body.subject)
    return await call.service.credentials.share(credential_name, body.subject, call.actor.subject)


@routes.delete("/{credentialName}/acl", Right.ADMINISTER, response_model=LetGo)
async def unshare_credential(call: Caller, credential_name: CredentialName, subject: SubjectQuery) -> dict[str, Any]:
    """Let a subject use the credential no more, from the next attempt on."""
    call.require()
    call.giver.require({Right.USE_CREDENTIALS})
    changed = await call.service.credentials.unshare(credential_name, subject, call.actor.subject)
    return {"subject": subject, "changed": changed}

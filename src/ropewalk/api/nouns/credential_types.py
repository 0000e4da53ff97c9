"""The types of credentials over HTTP: for forms, and for those who write bodies by hand."""

from typing import Any

from ropewalk.access.rights import Right
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, exemplified

routes = Routes("/credential-types", "Credentials")


class CredentialType(Answer):
    """A type of credentials; in the schema of its fields a secret one is `writeOnly`."""

    model_config = exemplified(Answer, {
        "name": "generic", "title": "Secret", "summary": "One secret text, such as a key to sign with.",
        "fields": {"type": "object", "properties": {"value": {"type": "string", "writeOnly": True}}}, "canTest": False,
    })  # fmt: skip

    name: str
    title: str
    summary: str
    fields: dict[str, Any]
    can_test: bool


class CredentialTypes(Answer):
    """Every type there is."""

    items: list[CredentialType]


@routes.get("", Right.READ, response_model=CredentialTypes)
async def list_credential_types(call: Caller) -> dict[str, Any]:
    """The types of credentials, each with the JSON Schema of its fields."""
    from ropewalk.service.credential_types import shown_types  # here, since most servers are never asked

    return {"items": shown_types()}

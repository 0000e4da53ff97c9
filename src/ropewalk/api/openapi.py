"""The description of this API: OpenAPI 3.1, made from the routes."""

from collections.abc import Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, Final

import msgspec
from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from starlette.responses import Response

from ropewalk.access.rights import Right
from ropewalk.api.doors.authorization import PUBLIC, WORKSPACE
from ropewalk.api.routes import ANYWHERE, BY_BODY, LARGEST, RIGHT, Routes
from ropewalk.api.shapes.base import Answer, Body, FieldProblem, Problem

routes = Routes("", "Description")

_REF: Final = "#/components/schemas/{model}"
_WORKSPACE: Final = {
    "name": WORKSPACE,
    "in": "query",
    "required": False,
    "description": "The workspace that is meant; the home of the key if it is left out.",
    "schema": {"type": "string", "maxLength": 255},
}
_DESCRIPTION: Final = """\
Every route but the public ones needs a proof: send `Authorization: Bearer <API key or token>`. A refusal is an RFC 9457
problem whose `problems` name the fields. Lists come in pages; `next` is the cursor to go on. `x-right` says what an
operation needs.
"""


@routes.public("GET", "/openapi.json", response_model=dict[str, Any])
async def get_open_api(request: Request) -> Response:
    """This document."""
    text: bytes = request.app.state.description()
    return Response(text, media_type="application/json")


def install(app: FastAPI, nouns: Iterable[ModuleType]) -> None:
    """The app describes itself; made once, when it is first asked for."""
    named = tuple(nouns)

    @cache
    def described() -> dict[str, Any]:
        return describe(app, named)

    @cache
    def written() -> bytes:
        return msgspec.json.encode(described())

    app.openapi = described  # type: ignore[method-assign]  # the way FastAPI offers
    app.state.description = written


def describe(app: FastAPI, nouns: Iterable[ModuleType]) -> dict[str, Any]:
    """Every route with its schemas; problems are described once, for all."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=_DESCRIPTION,
        routes=app.routes,
        tags=_tags(nouns),
        separate_input_output_schemas=app.separate_input_output_schemas,
    )
    components = document.setdefault("components", {})
    for model in (Problem, FieldProblem):
        schema = model.model_json_schema(ref_template=_REF)
        schema.pop("$defs", None)
        components.setdefault("schemas", {})[model.__name__] = schema
    _restore_examples(components["schemas"])
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"bearer": []}]
    for path in document["paths"].values():
        for operation in path.values():
            _tidy(operation)
    return document


def _restore_examples(schemas: dict[str, Any]) -> None:
    """FastAPI leaves out each null, also inside examples; here they are as they were written."""
    for model in (*_below(Body), *_below(Answer)):
        extra = model.model_config.get("json_schema_extra")
        if isinstance(extra, dict) and "examples" in extra and model.__name__ in schemas:
            schemas[model.__name__]["examples"] = extra["examples"]


def _below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in model.__subclasses__():
        yield each
        yield from _below(each)


def _tags(nouns: Iterable[ModuleType]) -> list[dict[str, str]]:
    """Each tag with the first line of the first file that has it."""
    found: dict[str, str] = {}
    for noun in nouns:
        found.setdefault(noun.routes.tag, (noun.__doc__ or "").partition("\n")[0])
    return [{"name": tag, "description": description} for tag, description in found.items()]


def _tidy(operation: dict[str, Any]) -> None:
    """Describe the workspace parameter, say which routes are public, and leave out marks for our own use."""
    if operation["operationId"] in PUBLIC:
        operation["security"] = []
    elif not operation.get(ANYWHERE) and operation[RIGHT] != Right.COME_IN:
        operation.setdefault("parameters", []).append(_WORKSPACE)
    for mark in (ANYWHERE, BY_BODY, LARGEST):
        operation.pop(mark, None)

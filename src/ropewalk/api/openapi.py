"""What describes the API: OpenAPI 3.1, made from the routes."""

from functools import cache
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ropewalk.api.shapes import FieldProblem, Problem

_REF: Final = "#/components/schemas/{model}"


def install(app: FastAPI) -> None:
    """The app describes itself; made once, when it is first asked for."""

    @cache
    def described() -> dict[str, Any]:
        return describe(app)

    app.openapi = described  # type: ignore[method-assign]  # the way FastAPI offers


def describe(app: FastAPI) -> dict[str, Any]:
    """Every route with its schemas; problems are described once, for all."""
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    components = document.setdefault("components", {})
    for model in (Problem, FieldProblem):
        schema = model.model_json_schema(ref_template=_REF)
        schema.pop("$defs", None)
        components.setdefault("schemas", {})[model.__name__] = schema
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"bearer": []}]
    return document

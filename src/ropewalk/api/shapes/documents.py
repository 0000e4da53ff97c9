"""Workflow documents as they are sent: JSON, or YAML with the line of everything that is wrong with it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from msgspec import Struct

from ropewalk.api.doors.request_bodies import LARGEST_DEFINITION, strict_json
from ropewalk.api.shapes.problems import Refused
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import Invalid, InvalidDefinition, Problem
from ropewalk.documents import Document, PlacedProblem, load_document

_JSON: Final = "application/json"
_YAML: Final = ("application/yaml", "application/x-yaml", "text/yaml")
_EXAMPLE: Final = {
    "ropewalk": 1,
    "name": "greet",
    "input": {"type": "object", "required": ["who"], "properties": {"who": {"type": "string"}}},
    "nodes": [{"id": "hello", "type": "log", "with": {"message": "Hello {{ input.who }}"}}],
}
_YAML_EXAMPLE: Final = """\
ropewalk: 1
name: greet
nodes:
  - { id: hello, type: log, with: { message: "Hello {{ input.who }}" } }
"""
_DOCUMENT: Final = {
    "title": "WorkflowDocument",
    "description": "A workflow; `docs/workflow.schema.json` has every field.",
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 200},
        "nodes": {"type": "array", "items": {"type": "object"}},
        "edges": {"type": "array", "items": {"type": "object"}},
    },
}


def _request(document: dict[str, Any], text: dict[str, Any]) -> dict[str, Any]:
    content = {
        _JSON: {"schema": document, "example": _EXAMPLE},
        _YAML[0]: {"schema": text, "example": _YAML_EXAMPLE},
    }
    return {"requestBody": {"required": True, "content": content}}


REQUEST: Final = _request(_DOCUMENT, {"type": "string"})
"""How routes that take a document describe their body."""
DRAFT: Final = _request({"description": "A document that may be a workflow."}, {})
"""The same where a document may be no good: what is wrong with it is the answer."""


class Unread(Struct, frozen=True):
    """A document as it was sent, before it is parsed."""

    body: bytes
    is_yaml: bool

    async def read(self) -> Document | JSON:
        """What it says: for YAML with its lines. In a thread, since four megabytes take a while."""
        return await asyncio.to_thread(self._loaded if self.is_yaml else self._parsed)

    def _parsed(self) -> JSON:
        return strict_json(self.body)

    def _loaded(self) -> Document:
        try:
            text = self.body.decode()
        except UnicodeDecodeError as error:
            raise Refused(400, f"the body is not UTF-8 (byte {error.start})", "body") from error
        return load_document(text, largest=LARGEST_DEFINITION)


async def _unread(request: Request) -> Unread:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _JSON and kind not in _YAML:
        raise Refused(415, f"send the document as {_JSON} or {_YAML[0]}", "header.content-type")
    return Unread(await request.body(), kind in _YAML)


Manuscript = Annotated[Unread, Depends(_unread)]
"""The parameter of a handler that takes a document."""


def value_of(document: Document | JSON) -> JSON:
    """The document without its lines."""
    return document.value if isinstance(document, Document) else document


def line_of(problem: Problem, document: Document | JSON) -> int | None:
    """Where in the text a problem is, if that was YAML."""
    if isinstance(problem, PlacedProblem):
        return problem.line
    return document.places.line_of(problem.path) if isinstance(document, Document) else None


@contextmanager
def with_lines(document: Document | JSON = None) -> Iterator[None]:
    """Each problem that is found inside names its line of this document."""
    try:
        yield
    except Invalid as error:
        raise InvalidDefinition([_with_line(each, document) for each in error.problems]) from error


def _with_line(problem: Problem, document: Document | JSON) -> Problem:
    line = line_of(problem, document)
    return problem if line is None else Problem(problem.path, f"line {line}: {problem.message}")

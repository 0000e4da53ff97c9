"""Documents that declare node types, read and checked: every problem at once, each with its place."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias

from ropewalk.core.canonical import Path
from ropewalk.core.definition.authoring import certainty_of
from ropewalk.core.definition.node_type import CATEGORIES, About
from ropewalk.core.errors import ErrorType, InvalidDefinition, Problem
from ropewalk.core.expression import Template, check_template, compile_template
from ropewalk.core.schema import check_schema, validate
from ropewalk.documents import Document, PlacedProblem, read_document
from ropewalk.nodes.base import NodeType
from ropewalk.nodes.credential_types import TYPES
from ropewalk.nodes.declared import Declaration, DeclaredNode, ErrorRow
from ropewalk.nodes.describing import titled
from ropewalk.nodes.http.request import HttpRequest
from ropewalk.nodes.http.statuses import span_of
from ropewalk.nodes.own_retry import own_retry

JSON: TypeAlias = Any

MOST_TYPES: Final = 200
MANY: Final = "nodeTypes"
_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 1_000}
_STATUS: Final = {"type": ["integer", "string"]}
SCHEMA: Final = {
    "type": "object",
    "additionalProperties": False,
    "required": ["nodeType", "summary", "request"],
    "properties": {
        "nodeType": {"type": "string", "pattern": r"^[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*$"},
        "summary": _TEXT,
        "title": _TEXT,
        "category": {"enum": list(CATEGORIES)},
        "icon": _TEXT,
        "keywords": {"type": "array", "items": _TEXT, "maxItems": 50},
        "credential": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 20}]},
        "parameters": {"type": "object"},
        "request": {"type": "object", "required": ["url"]},
        "message": _TEXT,
        "errors": {
            "type": "array",
            "maxItems": 100,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["type"],
                "properties": {
                    "status": {"anyOf": [_STATUS, {"type": "array", "items": _STATUS, "minItems": 1}]},
                    "when": _TEXT,
                    "type": {"enum": [ErrorType.PERMANENT.value, ErrorType.TRANSIENT.value]},
                    "message": _TEXT,
                    "retryAfter": _TEXT,
                },
            },
        },
        "output": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"value": {}, "schema": {"type": "object"}},
        },
        "retry": {"type": "object"},
    },
}
"""What a document that declares a node type looks like."""

# What the expressions of each part may name.
REQUEST_NAMES: Final = ("input", "vars", "execution")
ANSWER_NAMES: Final = ("input", "item")


def load_node_types(file: str | FilePath) -> list[NodeType]:
    """The node types that a YAML or JSON file declares; InvalidDefinition names every problem with its line.

    A package brings them by an entry point that leads to this list.
    """
    try:
        document = read_document(file)
    except OSError as error:
        raise InvalidDefinition(f"{file} cannot be read: {error.strerror}") from error
    try:
        return [*types_of(document.value)]
    except InvalidDefinition as refusal:
        raise InvalidDefinition(_placed(problem, document) for problem in refusal.problems) from None


def _placed(problem: Problem, document: Document) -> Problem:
    return PlacedProblem(problem.path, problem.message, document.name, document.places.line_of(problem.path), 1)


def types_of(value: JSON) -> list[DeclaredNode]:
    """The node types that a document declares: one, or those that it lists."""
    if not isinstance(value, dict) or not (MANY in value or "nodeType" in value):
        raise InvalidDefinition([Problem((), f"declares no node type: it has neither nodeType nor {MANY}")])
    if MANY not in value:
        return [_type_of(value, ())]
    found = value[MANY]
    if len(value) != 1 or not isinstance(found, list) or not 0 < len(found) <= MOST_TYPES:
        raise InvalidDefinition([Problem((MANY,), f"must be a list of 1 to {MOST_TYPES} node types, and stand alone")])
    return [_type_of(each, (MANY, at)) for at, each in enumerate(found)]


def _type_of(value: JSON, at: Path) -> DeclaredNode:
    problems = validate(SCHEMA, value, at) or list(_problems(value, at))
    if problems:
        raise InvalidDefinition(problems)
    return DeclaredNode(_declaration(value))


def _problems(value: Mapping[str, JSON], at: Path) -> Iterator[Problem]:
    """What no schema tells."""
    yield from check_schema(_parameters(value), (*at, "parameters"))
    yield from check_schema(value.get("output", {}).get("schema", {}), (*at, "output", "schema"))
    yield from validate(_request_schema(), value["request"], (*at, "request"), certainty_of)
    yield from _misnamed(value["request"], (*at, "request"), REQUEST_NAMES)
    yield from _misnamed(value.get("message"), (*at, "message"), ANSWER_NAMES)
    yield from _misnamed(value.get("output", {}).get("value"), (*at, "output", "value"), ANSWER_NAMES)
    for kind in _listed(value.get("credential", [])):
        if kind not in TYPES:
            close = get_close_matches(kind, TYPES, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(TYPES)}"
            yield Problem((*at, "credential"), f"there is no type of credentials {kind!r}{hint}")
    for row, error in enumerate(value.get("errors", ())):
        yield from _row_problems(error, (*at, "errors", row))
    try:
        own_retry(value["nodeType"], _defaults(value))
    except ValueError as error:
        yield Problem((*at, "retry"), str(error))


@cache
def _request_schema() -> dict[str, JSON]:
    return HttpRequest().schema()


def _row_problems(row: Mapping[str, JSON], at: Path) -> Iterator[Problem]:
    if "status" not in row and "when" not in row:
        yield Problem(at, "needs a status, or a condition in `when`")
    for field in ("when", "message", "retryAfter"):
        yield from _misnamed(row.get(field), (*at, field), ANSWER_NAMES)
    for status in _listed(row.get("status", [])):
        try:
            span_of(status)
        except ValueError as error:
            yield Problem((*at, "status"), str(error))


def _misnamed(value: JSON, at: Path, names: tuple[str, ...]) -> Iterator[Problem]:
    """Expressions that are none, or name what is not there; the depth of a document is bounded."""
    if isinstance(value, dict | list):
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _misnamed(inner, (*at, step), names)
        return
    template, problems = check_template(value, at)
    yield from problems
    for name in sorted({path[0] for path in template.references} - {*names}) if template is not None else ():
        yield Problem(at, f"there is no {name!r} here; there are {', '.join(names)}")


def _declaration(value: Mapping[str, JSON]) -> Declaration:
    about = About(
        title=value.get("title", ""),
        category=value.get("category", "custom"),
        icon=value.get("icon", "plug"),
        keywords=tuple(value.get("keywords", ())),
        output=value.get("output", {}).get("schema", {}),
    )
    return Declaration(
        name=value["nodeType"],
        summary=value["summary"],
        about=about,
        parameters=titled(_parameters(value)),
        credential_types=tuple(_listed(value.get("credential", []))),
        request=compile_template(value["request"]),
        message=_optional(value.get("message")),
        errors=tuple(map(_row, value.get("errors", ()))),
        output=compile_template(value.get("output", {}).get("value", "{{ item.body }}")),
        defaults=_defaults(value),
    )


def _parameters(value: Mapping[str, JSON]) -> dict[str, JSON]:
    """The schema of the parameters; what it does not name is refused unless it says otherwise."""
    given: dict[str, JSON] = value.get("parameters", {})
    return {"type": "object", "additionalProperties": False, "properties": {}} | given


def _defaults(value: Mapping[str, JSON]) -> dict[str, JSON]:
    return {"retry": value["retry"]} if "retry" in value else {}


def _row(row: Mapping[str, JSON]) -> ErrorRow:
    return ErrorRow(
        ErrorType(row["type"]),
        row.get("status"),
        _optional(row.get("when")),
        _optional(row.get("message")),
        _optional(row.get("retryAfter")),
    )


def _optional(value: JSON) -> Template | None:
    return None if value is None else compile_template(value)


def _listed(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else [value]

"""What a schema itself must look like: its keywords, types, formats and references."""

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import re2
from msgspec import Struct

from ropewalk.core.canonical import JSON, LARGEST_INTEGER, Path, json_problems, kind_of, shown, step
from ropewalk.core.definition.kinds import Anything, Choice, Either, Flag, Kind, ListOf, MapOf, Number, Text, Whole
from ropewalk.core.definition.report import Report
from ropewalk.core.errors import Problem

LONGEST_PATTERN = 1_000
LONGEST_FORMATTED = 2_048
PATTERN_MEMORY = 1 << 20
SMALL_PATTERN = 16
"""Up to so many instructions the automaton of a pattern always fits the memory, and takes the same for each character.
"""
MOST_IN_PLACE = 10_000
"""So many schemas one value may have to be looked at with."""


class Form(Struct, frozen=True):
    """A class of values and its name in a sentence."""

    words: str
    holds: Callable[[Any], bool]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


TYPES = {
    "object": Form("an object", lambda value: isinstance(value, dict)),
    "array": Form("a list", lambda value: isinstance(value, list)),
    "string": Form("text", lambda value: isinstance(value, str)),
    "number": Form("a number", _is_number),
    "integer": Form("an integer", lambda value: _is_number(value) and math.isfinite(value) and value == int(value)),
    "boolean": Form("true or false", lambda value: isinstance(value, bool)),
    "null": Form("null", lambda value: value is None),
}


def _shaped(pattern: str, read: Callable[[str], object] | None = None) -> Callable[[str], bool]:
    """Whether a text has a shape, and means something if it must be read as well."""
    shape = re.compile(pattern, re.ASCII | re.IGNORECASE)

    def holds(text: str) -> bool:
        if len(text) > LONGEST_FORMATTED or not shape.fullmatch(text):
            return False
        return read is None or _reads(read, text)

    return holds


def _reads(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _read_instant(text: str) -> datetime:
    # A leap second is a time of RFC 3339 that Python has no value for.
    return datetime.fromisoformat(text.upper().replace(":60", ":59"))


_DAY = r"\d{4}-\d{2}-\d{2}"

FORMATS = {
    "date-time": Form(
        "a date and time like 2030-01-31T12:00:00Z",
        _shaped(_DAY + r"T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})", _read_instant),
    ),
    "date": Form("a date like 2030-01-31", _shaped(_DAY, date.fromisoformat)),
    "email": Form("an e-mail address", _shaped(r"[^\s@\x00-\x1f]{1,64}@[^\s@.]+(?:\.[^\s@.]+)*")),
    "uri": Form("an absolute URI", _shaped(r"[a-z][a-z0-9+.-]*:[^\s\x00-\x1f<>\"{}|\\^`]+")),
    "uuid": Form("a UUID", _shaped(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")),
}


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Any:
    """The pattern as a linear-time automaton of bounded size; re2.error if it is none."""
    options = re2.Options()
    options.max_mem = PATTERN_MEMORY
    options.log_errors = False
    return re2.compile(pattern, options)


class _Pattern(Text):
    def refusal(self, value: JSON) -> str | None:
        if refusal := super().refusal(value):
            return refusal
        try:
            compile_pattern(value)
        except re2.error as error:
            return f"{shown(value)} is no RE2 pattern: {_words(error)}"
        return None


def _words(error: re2.error) -> str:
    text = error.args[0] if error.args else "malformed"
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)


class _AnyNumber(Number):
    def __init__(self) -> None:
        super().__init__(-math.inf, math.inf)

    def refusal(self, value: JSON) -> str | None:
        return "must be a number" if super().refusal(value) else None


class _Positive(_AnyNumber):
    def refusal(self, value: JSON) -> str | None:
        return super().refusal(value) or (None if value > 0 else "must be more than 0")


class _NonEmpty(ListOf):
    def check(self, value: JSON, path: Path, report: Report) -> None:
        super().check(value, path, report)
        if value == []:
            report.add(path, "must have at least one element")


class _Reference(Text):
    def refusal(self, value: JSON) -> str | None:
        if refusal := super().refusal(value):
            return refusal
        is_local = value == "#" or definition_named(value)
        return None if is_local else f"{shown(value)} must be '#' or '#/$defs/' and a name"


def definition_named(reference: str) -> str | None:
    """The name of the definition a reference points to."""
    head, _, name = reference.partition("#/$defs/")
    if head or not name or "/" in name:
        return None
    return name.replace("~1", "/").replace("~0", "~")


class _SubSchema:
    """A schema inside a schema."""

    def check(self, value: JSON, path: Path, report: Report) -> None:
        if isinstance(value, bool):
            return
        if not isinstance(value, dict):
            report.add(path, f"must be a schema, not {kind_of(value)}")
            return
        for keyword, expected in value.items():
            if kind := KEYWORDS.get(keyword):
                kind.check(expected, (*path, keyword), report)
            elif not keyword.startswith("x-"):
                report.add((*path, step(keyword)), "unknown keyword")

    def schema(self) -> dict[str, JSON]:
        return {"type": ["object", "boolean"]}


_schema = _SubSchema()
_schemas = _NonEmpty(_schema, longest=1_000)
_named_schemas = MapOf(Text(1_000), _schema, longest=10_000)
_number = _AnyNumber()
_size = Whole(0, LARGEST_INTEGER)
_type_name = Choice(*TYPES)
_names = ListOf(Text(1_000), longest=10_000)

_DESCRIBING = ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "discriminator")
_ANNOTATIONS = (*_DESCRIBING, "contentMediaType", "contentEncoding", "$comment", "$schema")

KEYWORDS: dict[str, Kind] = {
    "type": Either(list, _NonEmpty(_type_name, longest=len(TYPES)), _type_name),
    "enum": _NonEmpty(Anything(), longest=1_000),
    "const": Anything(),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
    "multipleOf": _Positive(),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _size),
    **dict.fromkeys(("minContains", "maxContains"), _size),
    "pattern": _Pattern(LONGEST_PATTERN),
    "format": Text(100),
    "required": _names,
    "dependentRequired": MapOf(Text(1_000), _names, longest=10_000),
    "uniqueItems": Flag(),
    **dict.fromkeys(("properties", "$defs"), _named_schemas),
    "patternProperties": MapOf(_Pattern(LONGEST_PATTERN), _schema, longest=100),
    **dict.fromkeys(("additionalProperties", "propertyNames", "items", "contains"), _schema),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _schemas),
    **dict.fromkeys(("not", "if", "then", "else"), _schema),
    "$ref": _Reference(1_000),
    **dict.fromkeys(_ANNOTATIONS, Anything()),
}

_IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})


def check_schema(schema: JSON, path: Path = ()) -> list[Problem]:
    """What is wrong with a schema: unknown keywords, bad values, references to nothing."""
    report = Report()
    report.extend(json_problems(schema, path))
    if not report.count:
        _schema.check(schema, path, report)
    if not report.count:
        _check_references(schema, path, report)
    if not report.count:
        _check_cost(schema, path, report)
    return report.result()


def _check_cost(schema: JSON, path: Path, report: Report) -> None:
    """No value may have to be looked at with more schemas than can be checked soon, or with one for ever."""
    counts = _Counts(schema)
    waiting: list[tuple[JSON, Path]] = [(schema, path)]
    while waiting:
        part, where = waiting.pop()
        if counts.of(part) > MOST_IN_PLACE:
            report.add(where, f"looks at one value with more than {MOST_IN_PLACE:,} schemas, or refers to itself "
                              "without going into the value; use fewer forms and references")  # fmt: skip
            return
        waiting.extend(_inner_schemas(part, where))


class _Counts:
    """How many schemas a value is looked at with by each schema, those behind references each time they are named."""

    def __init__(self, root: JSON) -> None:
        self._root = root
        self._known: dict[int, int] = {}

    def of(self, schema: JSON) -> int:
        """The count, or just more than the most; of one that comes back to itself, that too."""
        if not isinstance(schema, dict):
            return 1
        known = self._known.get(id(schema))
        if known is None:
            self._known[id(schema)] = MOST_IN_PLACE + 1
            total = 1 + sum(self.of(part) for part, place in _inner_schemas(schema, ()) if place[0] in _IN_PLACE)
            if isinstance(reference := schema.get("$ref"), str):
                total += self.of(self._root if reference == "#" else self._root["$defs"][definition_named(reference)])
            known = self._known[id(schema)] = min(total, MOST_IN_PLACE + 1)
        return known


def _check_references(schema: JSON, path: Path, report: Report) -> None:
    """Every reference in a well-formed schema must name a definition at its top."""
    defined = schema.get("$defs", {}) if isinstance(schema, dict) else {}
    waiting: list[tuple[JSON, Path]] = [(schema, path)]
    while waiting:
        part, where = waiting.pop()
        if isinstance(part, dict):
            reference = part.get("$ref")
            if isinstance(reference, str) and reference != "#" and definition_named(reference) not in defined:
                report.add((*where, "$ref"), f"{shown(reference)} does not exist")
        waiting.extend(_inner_schemas(part, where))


def _inner_schemas(part: JSON, where: Path) -> list[tuple[JSON, Path]]:
    """The schemas directly inside one."""
    if not isinstance(part, dict):
        return []
    inner: list[tuple[JSON, Path]] = []
    for keyword, value in part.items():
        kind = KEYWORDS.get(keyword)
        if kind is _schema:
            inner.append((value, (*where, keyword)))
        elif kind is _schemas:
            inner.extend((schema, (*where, keyword, place)) for place, schema in enumerate(value))
        elif isinstance(kind, MapOf) and kind.value is _schema:
            inner.extend((schema, (*where, keyword, step(name))) for name, schema in value.items())
    return inner

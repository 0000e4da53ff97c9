"""The kinds of value a field of the document may have: each checks a value and describes itself as JSON Schema.

One table of fields (`fields.py`) is thus the rule at save and the schema that editors complete from.
"""

import re
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

from ropewalk.core.canonical import JSON, Path, is_text, json_problems, kind_of, shown, step
from ropewalk.core.definition.report import Report
from ropewalk.core.duration import YEAR, parse_duration

Schema = dict[str, Any]


class Kind(Protocol):
    """A sort of value."""

    def check(self, value: JSON, path: Path, report: Report) -> None:
        """Reports what keeps the value from being of this kind."""

    def schema(self) -> Schema:
        """The kind as JSON Schema."""


class Scalar(ABC):
    """A kind decided by looking at one value."""

    @abstractmethod
    def schema(self) -> Schema:
        """The kind as JSON Schema."""

    def check(self, value: JSON, path: Path, report: Report) -> None:
        if reason := self.refusal(value):
            report.add(path, reason)

    @abstractmethod
    def refusal(self, value: JSON) -> str | None:
        """Why the value is not of this kind."""


class Field:
    """A named place in the document, the kind of value it takes, what it is for, and the field that it needs."""

    __slots__ = ("is_required", "kind", "needs", "refusal", "summary")

    def __init__(self, kind: Kind, summary: str, *, is_required: bool = False, needs: str | None = None) -> None:
        self.kind = kind
        # Scalars are asked without making a path for each: a large document has hundreds of thousands.
        self.refusal = kind.refusal if isinstance(kind, Scalar) else None
        self.summary = summary
        self.is_required = is_required
        self.needs = needs


class Text(Scalar):
    """Text of bounded length; with a pattern, of a form that `form` says in words."""

    def __init__(self, longest: int, pattern: str | None = None, form: str = "") -> None:
        self.longest = longest
        self.pattern = pattern
        self.form = form
        self._match = re.compile(pattern).fullmatch if pattern else None

    def refusal(self, value: JSON) -> str | None:
        if not isinstance(value, str):
            return f"must be text, not {kind_of(value)}"
        if len(value) > self.longest:
            return f"must have at most {self.longest} characters"
        if self._match and not self._match(value):
            return f"{shown(value)} must be {self.form}"
        return None if is_text(value) else "must be text without NUL and lone surrogates"

    def schema(self) -> Schema:
        anchored = {"pattern": f"^(?:{self.pattern})$"} if self.pattern else {}
        return {"type": "string", "maxLength": self.longest, **anchored}


class Choice(Scalar):
    """One of a few words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def refusal(self, value: JSON) -> str | None:
        if isinstance(value, str) and value in self.words:
            return None
        return f"{shown(value)} must be one of {', '.join(self.words)}"

    def schema(self) -> Schema:
        return {"enum": list(self.words)}


class Flag(Scalar):
    """true or false."""

    def refusal(self, value: JSON) -> str | None:
        return None if isinstance(value, bool) else f"must be true or false, not {kind_of(value)}"

    def schema(self) -> Schema:
        return {"type": "boolean"}


class Whole(Scalar):
    """An integer within bounds."""

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high

    def refusal(self, value: JSON) -> str | None:
        if isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high:
            return None
        return f"must be an integer from {self.low} to {self.high}"

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


class Number(Scalar):
    """A finite number within bounds."""

    def __init__(self, low: float, high: float) -> None:
        self.low = low
        self.high = high

    def refusal(self, value: JSON) -> str | None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and self.low <= value <= self.high:
            return None
        return f"must be a number from {self.low:g} to {self.high:g}"

    def schema(self) -> Schema:
        return {"type": "number", "minimum": self.low, "maximum": self.high}


class Duration(Scalar):
    """A length of time within bounds."""

    def __init__(self, shortest: int = 0, longest: int = YEAR) -> None:
        self.shortest = shortest
        self.longest = longest

    def refusal(self, value: JSON) -> str | None:
        try:
            parse_duration(value, self.shortest, self.longest)
        except ValueError as error:
            return str(error)
        return None

    def schema(self) -> Schema:
        return {
            "anyOf": [
                {"type": "string", "pattern": r"^(\d|P)", "examples": ["30s", "5m", "1h30m", "2d", "PT30S"]},
                {"type": "number", "minimum": 0},
            ]
        }


class Share(Scalar):
    """A count, or a percentage as text."""

    PERCENT: ClassVar[str] = r"(?:100(?:\.00?)?|[0-9]{1,2}(?:\.[0-9]{1,2})?)%"

    def __init__(self, highest: int) -> None:
        self.count = Whole(0, highest)

    def refusal(self, value: JSON) -> str | None:
        if isinstance(value, str):
            is_share = len(value) <= 8 and re.fullmatch(self.PERCENT, value)
            return None if is_share else f"{shown(value)} must be a count, or a share like 10%"
        return self.count.refusal(value)

    def schema(self) -> Schema:
        return {"anyOf": [self.count.schema(), {"type": "string", "pattern": f"^{self.PERCENT}$"}]}


class Anything:
    """Any JSON value of sane depth; expressions in it are looked at elsewhere."""

    def check(self, value: JSON, path: Path, report: Report) -> None:
        report.extend(json_problems(value, path))

    def schema(self) -> Schema:
        return {}


class Apart:
    """A list of records, checked by the module that knows the rules between them."""

    def __init__(self, element: "Record") -> None:
        self.element = element

    def check(self, value: JSON, path: Path, report: Report) -> None:
        if not isinstance(value, list):
            report.add(path, f"must be a list, not {kind_of(value)}")

    def schema(self) -> Schema:
        return {"type": "array", "items": self.element.schema()}


class Free(Anything):
    """An object with any keys."""

    def check(self, value: JSON, path: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report.add(path, f"must be an object, not {kind_of(value)}")
        else:
            super().check(value, path, report)

    def schema(self) -> Schema:
        return {"type": "object"}


class Parameters:
    """An object that is looked into by the code that knows the node type."""

    def check(self, value: JSON, path: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report.add(path, f"must be an object, not {kind_of(value)}")

    def schema(self) -> Schema:
        return {"type": "object"}


class ListOf:
    """A list whose every element is of one kind."""

    def __init__(self, element: Kind, longest: int) -> None:
        self.element = element
        self.longest = longest

    def check(self, value: JSON, path: Path, report: Report) -> None:
        if not isinstance(value, list):
            report.add(path, f"must be a list, not {kind_of(value)}")
        elif len(value) > self.longest:
            report.add(path, f"has {len(value)} elements, at most {self.longest} are allowed")
        else:
            for place, element in enumerate(value):
                self.element.check(element, (*path, place), report)

    def schema(self) -> Schema:
        return {"type": "array", "maxItems": self.longest, "items": self.element.schema()}


class MapOf:
    """An object whose every value is of one kind, under keys of another."""

    def __init__(self, key: Text, value: Kind, longest: int) -> None:
        self.key = key
        self.value = value
        self.longest = longest

    def check(self, value: JSON, path: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report.add(path, f"must be an object, not {kind_of(value)}")
        elif len(value) > self.longest:
            report.add(path, f"has {len(value)} keys, at most {self.longest} are allowed")
        else:
            for key, inner in value.items():
                self.key.check(key, (*path, step(key)), report)
                self.value.check(inner, (*path, step(key)), report)

    def schema(self) -> Schema:
        return {
            "type": "object",
            "maxProperties": self.longest,
            "propertyNames": self.key.schema(),
            "additionalProperties": self.value.schema(),
        }


class Either:
    """Of the one kind if the value is of a Python type, else of the other."""

    def __init__(self, first_type: type, first: Kind, second: Kind) -> None:
        self.first_type = first_type
        self.first = first
        self.second = second

    def check(self, value: JSON, path: Path, report: Report) -> None:
        kind = self.first if isinstance(value, self.first_type) else self.second
        kind.check(value, path, report)

    def schema(self) -> Schema:
        return {"anyOf": [self.first.schema(), self.second.schema()]}


class Record:
    """An object with known fields only."""

    def __init__(self, fields: dict[str, Field]) -> None:
        self.fields = fields
        self.required = tuple(name for name, field in fields.items() if field.is_required)
        self.needed = {name: field.needs for name, field in fields.items() if field.needs is not None}

    def check(self, value: JSON, path: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report.add(path, f"must be an object, not {kind_of(value)}")
            return
        for name in self.required:
            if name not in value:
                report.add(path, f"needs the field '{name}'")
        for name, inner in value.items():
            field = self.fields.get(name)
            if field is None:
                report.add((*path, step(name)), f"unknown field; known are {', '.join(self.fields)}")
            elif field.refusal is None:
                field.kind.check(inner, (*path, name), report)
            elif reason := field.refusal(inner):
                report.add((*path, name), reason)
        for name, needed in self.needed.items():
            if name in value and needed not in value:
                report.add((*path, name), f"has an effect only together with '{needed}', which is missing")

    def schema(self) -> Schema:
        return {
            "type": "object",
            "properties": {name: described(field) for name, field in self.fields.items()},
            **({"required": list(self.required)} if self.required else {}),
            **({"dependentRequired": {name: [each] for name, each in self.needed.items()}} if self.needed else {}),
            "additionalProperties": False,
        }


def described(field: Field) -> Schema:
    """The schema of a field, with what it is for."""
    return {"description": field.summary, **field.kind.schema()}


class OneOf:
    """An object that is one of several records, told apart by which key field it has."""

    def __init__(self, records: dict[str, Record]) -> None:
        self.records = records

    def check(self, value: JSON, path: Path, report: Report) -> None:
        if not isinstance(value, dict):
            report.add(path, f"must be an object, not {kind_of(value)}")
            return
        present = [key for key in self.records if key in value]
        if len(present) != 1:
            report.add(path, f"needs exactly one of the fields {', '.join(self.records)}")
        else:
            self.records[present[0]].check(value, path, report)

    def schema(self) -> Schema:
        return {"oneOf": [record.schema() for record in self.records.values()]}

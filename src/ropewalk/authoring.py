"""References to what an execution will know, for workflows written in Python.

`order.output.total` stands for a value that does not exist yet: it turns into the text `{{ nodes.order.output.total }}`
wherever it is put, also inside an f-string. It cannot be compared or looped over in Python, and says so.
"""

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import NoReturn

from ropewalk.core.canonical import DEEPEST, JSON, Path, json_problems, kind_of
from ropewalk.core.duration import format_duration
from ropewalk.core.errors import InvalidDefinition, Problem

_NAME = re.compile(r"[^\W\d]\w*")


class Reference:
    """A value that an execution looks up by its path; fields by dot, other keys and places in lists by index."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> "Reference":
        # Python itself asks for names like __copy__ or _repr_html_; a reference must not seem to have them.
        if name.startswith("_"):
            raise AttributeError(f"a key that starts with _ goes in brackets: [{name!r}]")
        return self[name]

    def __getitem__(self, key: "str | int | Reference") -> "Reference":
        if isinstance(key, str) and _NAME.fullmatch(key):
            return Reference(f"{self._path}.{key}")
        return Reference(f"{self._path}[{_literal(key)}]")

    def __str__(self) -> str:
        return f"{{{{ {self._path} }}}}"

    def __repr__(self) -> str:
        return f"Reference({self._path!r})"

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{self._path} has no items before the workflow runs; give it to for_each")

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self._path} is neither true nor false before the workflow runs; use a node of type if")

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError(f'{self._path} has no value before the workflow runs; compare in a text: "{{{{ … == … }}}}"')

    __lt__ = __le__ = __gt__ = __ge__ = __ne__ = __eq__

    __hash__ = None  # type: ignore[assignment]  # what cannot be compared cannot be a key


def _literal(key: object) -> str:
    match key:
        case Reference():
            return key._path
        case bool():
            raise TypeError("true and false are no keys")
        case str() | int():
            return json.dumps(key)
        case _:
            raise TypeError(f"a key is text or a whole number, not {kind_of(key)}")


item = Reference("item")
"""The item that a run of a node with `for_each` works on."""

index = Reference("index")
"""The place of that item in the list, or the number of a round, from 0."""

last = Reference("last")
"""What the round before gave, in a node with `repeat`; null in the first."""

execution = Reference("execution")
"""The execution itself: its `id` and `startedAt`."""


def as_json(value: JSON, path: Path) -> JSON:
    """The value as it stands in the document, a copy; InvalidDefinition names what JSON cannot say."""
    plain = _plain(value, path, DEEPEST)
    if problems := json_problems(plain, path):
        raise InvalidDefinition(problems)
    return plain


def _plain(value: JSON, path: Path, depth: int) -> JSON:
    match value:
        case Reference():
            return str(value)
        case timedelta():
            return format_duration(value // timedelta(microseconds=1))
        case Mapping() | list() | tuple() if depth == 0:
            raise InvalidDefinition([Problem(path, f"is nested more than {DEEPEST} levels deep")])
        case Mapping():
            return {key: _plain(inner, (*path, str(key)), depth - 1) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner, (*path, place), depth - 1) for place, inner in enumerate(value)]
        case _:
            return value

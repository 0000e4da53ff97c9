"""Files as people write them, YAML or JSON, made into values; every field keeps the line it stands on.

Plain words of YAML mean what they look like: null, true and false, numbers as JSON has them (and `.5`); everything
else is text, also `on`, `yes`, `010`, `+49`, `1:30` and dates. Both languages come as the same events, so that one
reader holds all the limits.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path as FilePath

import yaml
from msgspec import Struct

from ropewalk.core.canonical import DEEPEST, JSON, LARGEST_INTEGER, Path, is_text, shown, step
from ropewalk.core.errors import Invalid, InvalidDefinition, Problem
from ropewalk.json_events import is_json, json_events

LARGEST_DOCUMENT = 4 * 1024 * 1024
MOST_PROBLEMS = 100

_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|-?Infinity|NaN")
_LONGEST_INTEGER = len(str(-LARGEST_INTEGER))
_UNREADABLE = re.compile(r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class PlacedProblem(Problem, frozen=True):
    """A problem that knows its line, found before there was a document to look it up in."""

    document: str
    line: int
    column: int

    def __str__(self) -> str:
        inside = f"{self.where}: " if self.path else ""
        return f"{self.document}:{self.line}:{self.column}: {inside}{self.message}"


class Place(Struct, frozen=True, gc=False):
    """Where a value stands, what stands in it, and what repeating it by an alias would cost."""

    line: int
    inside: dict[str | int, "Place"] = {}
    size: int = 1
    height: int = 0


class Places:
    """The lines of a document."""

    def __init__(self, root: Place) -> None:
        self._root = root

    def line_of(self, path: Path) -> int:
        """The line of a field, or of the nearest thing around it when it is missing."""
        place = self._root
        for part in path:
            inner = place.inside.get(part)
            if inner is None:
                break
            place = inner
        return place.line


class Document(Struct, frozen=True):
    """What a file says, and where it says it."""

    value: JSON
    places: Places
    name: str = "(document)"


def read_document(path: str | FilePath, *, largest: int = LARGEST_DOCUMENT) -> Document:
    """The document in a file; OSError if the file cannot be read."""
    with FilePath(path).open("rb") as file:
        # One byte more than allowed is enough to know, with a file of any size.
        content = file.read(largest + 1)
    if len(content) > largest:
        raise _refusal(str(path), _too_large(largest))
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refusal(str(path), "is not UTF-8; save it in that encoding", line) from error
    return load_document(text, name=str(path), largest=largest)


def load_document(text: str, *, name: str = "(document)", largest: int = LARGEST_DOCUMENT) -> Document:
    """The document in a text; InvalidDefinition with lines and columns when there is none."""
    if len(text) > largest or len(text.encode(errors="surrogatepass")) > largest:
        raise _refusal(name, _too_large(largest))
    text = text.removeprefix("\ufeff")
    has_json = is_json(text)
    if not has_json and (found := _UNREADABLE.search(text)):
        raise _refusal(name, f"the character {found[0]!a} is not allowed", *_position(text, found.start()))
    reader = _Reader(json_events(text) if has_json else yaml.parse(text, Loader=_LOADER), name, largest)
    try:
        return reader.document()
    except yaml.MarkedYAMLError as error:
        raise _syntax_refusal(name, text, error) from error


def problems_with_lines(error: Invalid, document: Document | None = None) -> list[str]:
    """Every problem as `refund.yaml:14: nodes[2].retry.delay: …`."""
    return [_with_line(problem, document) for problem in error.problems]


def _with_line(problem: Problem, document: Document | None) -> str:
    if document is None or isinstance(problem, PlacedProblem):
        return str(problem)
    return f"{document.name}:{document.places.line_of(problem.path)}: {problem}"


def _refusal(name: str, message: str, line: int = 1, column: int = 1) -> InvalidDefinition:
    return InvalidDefinition([PlacedProblem((), message, name, line, column)])


def _too_large(largest: int) -> str:
    return f"is larger than {largest:,} bytes"


def _position(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _syntax_refusal(name: str, text: str, error: yaml.MarkedYAMLError) -> InvalidDefinition:
    mark = error.problem_mark or error.context_mark
    index, line, column = (mark.index, mark.line + 1, mark.column + 1) if mark else (0, 1, 1)
    message = f"{error.problem or 'cannot be read'}{f' ({error.context})' if error.context else ''}"
    sign = text[index : index + 1]
    if sign == "\t":
        message = "there is a tab where YAML wants spaces"
    elif sign and "cannot start any token" in message:
        message = f"a value cannot start with {sign}; put quotes around it"
    return _refusal(name, message, line, column)


_Found = tuple[JSON, Place]


class _Reader:
    """Makes one document of events. Its recursion ends at the depth a document may have."""

    def __init__(self, events: Iterator[yaml.Event], name: str, largest: int) -> None:
        self.events = events
        self.name = name
        self.largest = largest
        self.repeatable = largest
        self.path: list[str | int] = []
        self.anchors: dict[str, _Found | None] = {}
        self.problems: list[PlacedProblem] = []

    def document(self) -> Document:
        """The only document there is."""
        first = self._next_content()
        if first is None:
            raise _refusal(self.name, "is empty")
        value, place = self._value(first, _spot(first)[0])
        second = self._next_content()
        if second is not None:
            raise self._stop(second, "a second document starts here; one file holds one")
        if self.problems:
            raise InvalidDefinition(self.problems)
        return Document(value, Places(place), self.name)

    def _next_content(self) -> yaml.Event | None:
        """The next event that belongs to a value, if there is one."""
        for event in self.events:
            if isinstance(event, yaml.NodeEvent) and not _is_nothing(event):
                return event
        return None

    def _value(self, event: yaml.Event, line: int) -> _Found:
        if isinstance(event, yaml.AliasEvent):
            return self._repeated(event, line)
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
            self._note(event, "tags (with !) are not supported; put quotes around text")
        anchor: str | None = getattr(event, "anchor", None)
        if anchor is None:
            return self._written(event, line)
        self.anchors[anchor] = None
        self.anchors[anchor] = found = self._written(event, line)
        return found

    def _written(self, event: yaml.Event, line: int) -> _Found:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event), Place(line, size=1 + len(event.value))
        if len(self.path) >= DEEPEST:
            raise self._stop(event, f"is nested more than {DEEPEST} levels deep")
        return self._list(line) if isinstance(event, yaml.SequenceStartEvent) else self._object(line)

    def _repeated(self, event: yaml.AliasEvent, line: int) -> _Found:
        name = str(event.anchor)
        if name not in self.anchors:
            raise self._stop(event, f"there is no anchor &{step(name)} before this")
        found = self.anchors[name]
        if found is None:
            raise self._stop(event, f"the anchor &{step(name)} holds itself")
        value, place = found
        # Ten aliases of ten aliases of … make a small text a huge value: what they stand for is what counts.
        self.repeatable -= place.size
        if self.repeatable < 0:
            raise self._stop(event, f"with its aliases written out, it {_too_large(self.largest)}")
        if len(self.path) + place.height > DEEPEST:
            raise self._stop(event, f"is nested more than {DEEPEST} levels deep")
        return value, Place(line, place.inside, place.size, place.height)

    def _list(self, line: int) -> _Found:
        values: list[JSON] = []
        inside: dict[str | int, Place] = {}
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            self.path.append(len(values))
            value, inside[len(values)] = self._value(event, _spot(event)[0])
            self.path.pop()
            values.append(value)
        return values, _around(line, inside)

    def _object(self, line: int) -> _Found:
        values: dict[str, JSON] = {}
        inside: dict[str | int, Place] = {}
        merged: list[_Found] = []
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key, is_merge = self._key(event)
            self._check_first(event, key, inside)
            self.path.append(step(key))
            value, place = self._value(next(self.events), _spot(event)[0])
            if is_merge:
                merged += self._sources(event, value, place)
            else:
                values.setdefault(key, value)
                inside.setdefault(key, place)
            self.path.pop()
        for source, place in merged:
            for key in source:
                values.setdefault(key, source[key])
                inside.setdefault(key, place.inside[key])
        return values, _around(line, inside)

    def _key(self, event: yaml.Event) -> tuple[str, bool]:
        """The key, and whether it is the `<<` that merges other objects into this one."""
        if not isinstance(event, yaml.ScalarEvent):
            raise self._stop(event, 'a key must be text; an expression needs quotes: "{{ … }}"')
        text: str = event.value
        is_plain = event.implicit[0]
        if is_plain and not isinstance(_meaning(text), str):
            self._note(event, f"the key {step(text) or 'here'} is not text; put quotes around it")
        elif event.tag is not None or not is_text(text):
            self._note(event, "the key must be text without tag, NUL and lone surrogates")
        return text, is_plain and text == "<<"

    def _check_first(self, event: yaml.Event, key: str, inside: dict[str | int, Place]) -> None:
        if key in inside:
            self._note(event, f"the key {shown(key)} is there already, on line {inside[key].line}", key)

    def _sources(self, event: yaml.Event, value: JSON, place: Place) -> list[_Found]:
        sources = [(value, place)]
        if isinstance(value, list):
            sources = [(source, place.inside[i]) for i, source in enumerate(value)]
        if all(isinstance(source, dict) for source, _ in sources):
            return sources
        self._note(event, "<< merges an object or a list of objects")
        return []

    def _scalar(self, event: yaml.ScalarEvent) -> JSON:
        text: str = event.value
        if not event.implicit[0]:
            if not is_text(text):
                self._note(event, "must be text without NUL and lone surrogates")
            return text
        value = _meaning(text)
        if isinstance(value, float) and not math.isfinite(value):
            self._note(event, f"{step(text)} is no number that can be used; if it is text, put quotes around it")
        return value

    def _note(self, event: yaml.Event, message: str, *key: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(self._problem(event, message, (*self.path, *map(step, key))))

    def _stop(self, event: yaml.Event, message: str) -> InvalidDefinition:
        return InvalidDefinition([*self.problems, self._problem(event, message, tuple(self.path))])

    def _problem(self, event: yaml.Event, message: str, path: Path) -> PlacedProblem:
        return PlacedProblem(path, message, self.name, *_spot(event))


def _spot(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _is_nothing(event: yaml.Event) -> bool:
    """Whether the event is the null that a document without content is said to be."""
    return isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == ""


def _around(line: int, inside: dict[str | int, Place]) -> Place:
    keys = sum(len(key) for key in inside if isinstance(key, str))
    size = 1 + keys + sum(place.size for place in inside.values())
    return Place(line, inside, size, 1 + max((place.height for place in inside.values()), default=0))


def _meaning(text: str) -> JSON:
    """What a plain word stands for; infinity for what looks like a number and cannot be one."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        # Digits are counted first: turning a million of them into an integer takes long.
        is_large = len(text) > _LONGEST_INTEGER or abs(int(text)) > LARGEST_INTEGER
        return math.inf if is_large else int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return math.inf if _NO_NUMBER.fullmatch(text) else text

"""The expressions of a document under examination: do they parse, and may they use the names they use there."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.canonical import JSON, Path, canonical, is_plain, shown
from ropewalk.core.definition.ancestry import Reference
from ropewalk.core.definition.report import Report
from ropewalk.core.expression import (
    Expression,
    ExpressionError,
    Template,
    check_template,
    compile_expression,
    has_expression,
)
from ropewalk.core.expression.run import OF_FAILURES, OF_ROUNDS, ROOTS, TIMELY
from ropewalk.core.schema import Certainty

ITEM_NAMES = ("item", "index")
_NO_ITEM: Final = {"item": "only a node with forEach has it", "index": "only a node with forEach or repeat has it"}
_NO_EVENT: Final = {"event": "only a trigger has it; its `input` hands it on"}
_NO_FAILURE: Final = {
    **_NO_EVENT,
    "error": "only `when` has it; a node that failed has nodes.<id>.error",
    "attempt": "only `when` of a retry has it",
}
_NO_ROUND: Final = {"last": "only a node with repeat has it"}
ONE_EXPRESSION: Final = "must be one {{ expression }}, and nothing else"
_UNRECORDED: Final = dict.fromkeys(TIMELY, "use it in a node, and refer to the node's output")
MADE_OF_TEXT = (
    "must not be made of text with {{ }}: write the expression itself, which sees input, vars and nodes by value, "
    "like item.id == input.id"
)
TRIGGER_EXPRESSIONS = ("filter", "when", "dedupeKey", "input")

_OF_TRIGGERS: Final = {
    **dict.fromkeys(("nodes", "execution", *ITEM_NAMES, *OF_FAILURES, *OF_ROUNDS), "nothing has run yet"),
    **dict.fromkeys(("input", "workspace", "env", *TIMELY), "a trigger sees event and vars"),
}

Names = tuple[str, ...]


class Use(Struct, frozen=True):
    """A place in the document that refers to a node."""

    path: Path
    value: JSON
    name: Names


class Place(Struct, frozen=True):
    """Where an expression stands: who refers, and which names mean nothing there."""

    path: Path
    node: int | None = None
    refused: Mapping[str, str] = {}
    """Why each of these names means nothing there."""


def certainty_of(text: str) -> Certainty:
    """What is known about a parameter before its expressions are evaluated."""
    if not has_expression(text):
        return Certainty.KNOWN
    trimmed = text.strip()
    # A text with several parts may begin and end like one with a single part; taking it for that only asks less of it.
    is_whole = trimmed.startswith("{{") and trimmed.endswith("}}")
    return Certainty.UNKNOWN if is_whole else Certainty.SOME_TEXT


class Expressions:
    """Checks each expression, and remembers which node refers to which, once per pair."""

    __slots__ = ("closing", "index", "report", "uses")

    def __init__(self, index: dict[str, int], report: Report, closing: Mapping[int, Path] | None = None) -> None:
        self.index = index
        self.report = report
        # Where the nodes are that close an execution.
        self.closing = closing or {}
        self.uses: dict[Reference, Use] = {}

    def path_of(self, node: int) -> Path:
        """Where the document has a node."""
        return self.closing.get(node) or ("nodes", node)

    def check_parameters(self, node: int, parameters: JSON, is_map: bool, *, is_repeated: bool = False) -> None:
        """`with` of a node: `item` and `index` only in a map, `last` and `index` only in one that is repeated."""
        # Most parameters are constant, and their bytes, unlike a walk, show it in no time.
        if b"{{" not in canonical(parameters):
            return
        refused = {**_NO_FAILURE, **({} if is_map else _NO_ITEM), **_NO_ROUND}
        if is_repeated:
            refused = {**_NO_FAILURE, "item": _NO_ITEM["item"]}
        self._check_plain(parameters, Place((*self.path_of(node), "with"), node, refused))

    def check_source(self, node: int, name: str, source: str, is_map: bool) -> None:
        """A parameter that is an expression itself; its `item` is what it is asked about."""
        path: Path = (*self.path_of(node), "with", name)
        if has_expression(source):
            self.report.add(path, MADE_OF_TEXT)
            return
        try:
            expression = compile_expression(source)
        except ExpressionError as error:
            self.report.add(path, str(error))
            return
        refused = {**_UNRECORDED, **_NO_FAILURE, **_NO_ROUND} | ({} if is_map else {"index": _NO_ITEM["index"]})
        self._check_names(_names(expression), source, Place(path, node, refused))

    def check_repeat(self, node: int, word: str, source: JSON) -> None:
        """`until` or `while` of a node that is repeated."""
        path: Path = ("nodes", node, "repeat", word)
        if isinstance(source, str) and certainty_of(source) is not Certainty.UNKNOWN:
            self.report.add(path, ONE_EXPRESSION)
        elif isinstance(source, str):
            self._check(source, Place(path, node, {**_NO_FAILURE, **_UNRECORDED, "item": _NO_ITEM["item"]}))

    def check_when(self, node: int, path: Path, source: JSON, *, is_retry: bool = False) -> None:
        """A `when` about a failure of the node: an edge's, or that of its retry."""
        if not isinstance(source, str):
            return
        if certainty_of(source) is not Certainty.UNKNOWN:
            self.report.add(path, ONE_EXPRESSION)
            return
        refused = {**_NO_EVENT, **dict.fromkeys(ITEM_NAMES, "it is about the error"), **_UNRECORDED, **_NO_ROUND}
        self._check(source, Place(path, node, refused if is_retry else {**refused, "attempt": _NO_FAILURE["attempt"]}))

    def check_for_each(self, node: int, items: JSON) -> None:
        """`forEach` of a node: there is no item yet."""
        self._check_evaluates(items, ("nodes", node, "forEach"))
        refused = {**dict.fromkeys(ITEM_NAMES, "forEach makes the items"), **_NO_FAILURE, **_NO_ROUND}
        self._check(items, Place(("nodes", node, "forEach"), node, refused))

    def check_document(self, document: dict[str, Any]) -> None:
        """`output`, `concurrencyKey` and what triggers hold."""
        if "output" in document:
            self._check(
                document["output"], Place(("output",), None, {**_NO_ITEM, **_UNRECORDED, **_NO_FAILURE, **_NO_ROUND})
            )
        if "concurrencyKey" in document:
            others = dict.fromkeys((*ROOTS[1:], *TIMELY), "it sees input only")
            self._check(document["concurrencyKey"], Place(("concurrencyKey",), None, others))
        triggers = document.get("triggers")
        for i, trigger in enumerate(triggers if isinstance(triggers, list) else ()):
            self._check_trigger(("triggers", i), trigger)

    def _check_trigger(self, path: Path, trigger: JSON) -> None:
        for field in TRIGGER_EXPRESSIONS:
            if isinstance(trigger, dict) and field in trigger:
                if field != "input":
                    self._check_evaluates(trigger[field], (*path, field))
                self._check(trigger[field], Place((*path, field), None, _OF_TRIGGERS))

    def _check_evaluates(self, value: JSON, path: Path) -> None:
        if isinstance(value, str) and not has_expression(value):
            self.report.add(path, "must hold an {{ expression }}")

    def _check(self, value: JSON, place: Place) -> None:
        # What is no JSON was told by the check of the field.
        if is_plain(value):
            self._check_plain(value, place)

    def _check_plain(self, value: JSON, place: Place) -> None:
        template, problems = check_template(value, place.path)
        self.report.extend(problems)
        if template is not None and not template.is_constant:
            self._check_names(_names(template), value, place)

    def _check_names(self, references: Iterable[Names], value: JSON, place: Place) -> None:
        for name in references:
            message = self._refusal(name, place)
            if message:
                path = place.path if self.report.is_full else self.place_of(Use(place.path, value, name))
                self.report.add(path, message)
            elif name[0] == "nodes" and place.node is not None:
                self.uses.setdefault((self.index[name[1]], place.node), Use(place.path, value, name))

    def _refusal(self, name: Names, place: Place) -> str | None:
        if name[0] in place.refused:
            return f"cannot use {name[0]} here: {place.refused[name[0]]}"
        if name[0] == "nodes" and name[1] not in self.index:
            return f"there is no node {shown(name[1])}"
        if name[0] == "nodes" and place.node is None and self.index[name[1]] in self.closing:
            return f"cannot use {shown(name[1])} here: what finally does comes after the output"
        return None

    def place_of(self, use: Use) -> Path:
        """The exact text that uses a name, found again by looking at each: only mistakes are worth that."""
        waiting: list[tuple[JSON, Path]] = [(use.value, use.path)]
        while waiting:
            value, path = waiting.pop()
            if isinstance(value, dict):
                waiting.extend((inner, (*path, key)) for key, inner in value.items())
            elif isinstance(value, list):
                waiting.extend((inner, (*path, i)) for i, inner in enumerate(value))
            elif isinstance(value, str) and _refers(value, use.name):
                return path
        return use.path


def _refers(text: str, name: Names) -> bool:
    template, _ = check_template(text, ())
    return template is not None and name in _names(template)


def _names(found: Expression | Template) -> list[Names]:
    """What it refers to, and the functions it calls that give something else each time."""
    return [*found.references, *((name,) for name in found.functions if name in TIMELY)]

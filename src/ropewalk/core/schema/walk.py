"""The walk of a value along a schema: where it stands, what it found, how much it may still do."""

from collections.abc import Callable
from enum import Enum

from ropewalk.core.canonical import JSON, Path, step
from ropewalk.core.definition.report import Report
from ropewalk.core.errors import Problem

MOST_STEPS = 1_000_000
DEEPEST = 100
TOO_LONG = "takes too long to check against its schema"


class Certainty(Enum):
    """What is known about a text before it is evaluated."""

    KNOWN = 1
    SOME_TEXT = 2
    UNKNOWN = 3


class TooMuch(Exception):
    """Checking would take more steps, or more depth, than it is worth."""


class Walk:
    """One walk of a value along a schema; `path` is where it stands."""

    __slots__ = ("certainty", "depth", "doubts", "path", "report", "root", "rules", "steps", "text_rules")

    def __init__(self, root: JSON, path: Path, rules: "Rules", certainty: Callable[[str], Certainty] | None) -> None:
        self.root = root
        self.rules, self.text_rules = rules
        self.path = list(path)
        self.certainty = certainty
        self.report = Report()
        self.steps = 0
        self.depth = 0
        self.doubts = 0

    def visit(self, schema: JSON, value: JSON) -> None:
        """Reports where the value certainly does not fit."""
        self.steps += 1
        if isinstance(schema, bool):
            if not schema:
                self.refuse("is not allowed here")
        elif self.certainty is None or not isinstance(value, str):
            self._apply(self.rules, schema, value)
        else:
            self._visit_text(schema, value, self.certainty(value))

    def _visit_text(self, schema: dict[str, JSON], text: str, certainty: Certainty) -> None:
        self.doubts += certainty is not Certainty.KNOWN
        if certainty is not Certainty.UNKNOWN:
            self._apply(self.rules if certainty is Certainty.KNOWN else self.text_rules, schema, text)

    def _apply(self, rules: "dict[str, Rule]", schema: dict[str, JSON], value: JSON) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise TooMuch("is nested too deeply to check")
        if self.steps > MOST_STEPS:
            raise TooMuch(TOO_LONG)
        for keyword, expected in schema.items():
            if rule := rules.get(keyword):
                rule(self, expected, value, schema)
        self.depth -= 1

    def enter(self, key: str | int, schema: JSON, value: JSON) -> None:
        """Visits what is under a key or at a place of the value."""
        self.path.append(key)
        self.visit(schema, value)
        self.path.pop()

    def refuse(self, message: str, *below: str | int) -> None:
        """Notes a problem here, or below here."""
        path = (*self.path, *below)
        self.report.add(tuple(key if isinstance(key, int) else step(key) for key in path), message)

    def charge(self, steps: int) -> None:
        """Counts work, and gives up when it is too much."""
        self.steps += steps
        if self.steps > MOST_STEPS:
            raise TooMuch(TOO_LONG)

    def trial(self, schema: JSON, value: JSON) -> tuple[list[Problem], bool]:
        """The problems the value would have, kept apart, and whether the answer is beyond doubt."""
        report, doubts = self.report, self.doubts
        self.report = Report(limit=3)
        self.visit(schema, value)
        problems, is_sure = self.report.problems, self.doubts == doubts
        self.report = report
        return problems, is_sure

    def is_known(self, value: JSON) -> bool:
        """Whether the value is there already, and not an expression."""
        return self.certainty is None or not isinstance(value, str) or self.certainty(value) is Certainty.KNOWN

    def equal(self, left: JSON, right: JSON) -> bool:
        """Equality of JSON: true is not 1, 1 is 1.0, and an expression might be anything."""
        self.charge(1)
        if not self.is_known(left):
            self.doubts += 1
            return True
        if isinstance(left, list) and isinstance(right, list):
            return len(left) == len(right) and all(map(self.equal, left, right))
        if isinstance(left, dict) and isinstance(right, dict):
            return left.keys() == right.keys() and all(self.equal(left[key], right[key]) for key in left)
        return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


Rule = Callable[[Walk, JSON, JSON, dict[str, JSON]], None]
"""What a keyword demands: the walk, the keyword's value, the value to check, the schema around the keyword."""

Rules = tuple[dict[str, Rule], dict[str, Rule]]
"""The rules by keyword, and those of them that say something about a text of which only the kind is known."""

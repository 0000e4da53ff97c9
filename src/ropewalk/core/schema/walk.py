"""The walk of a value along a schema: where it stands, what it found, how much it may still do.

A step takes at most about two microseconds. What a reference leads to is looked at once for each place of the value,
however often the schema comes back to it, so that the work is at most the size of the schema times that of the value.
"""

from collections.abc import Callable
from enum import Enum

from ropewalk.core.canonical import JSON, Path, canonical, extent, shown, step
from ropewalk.core.definition.report import Report
from ropewalk.core.errors import Problem, Unfinished

BRIEF_STEPS = 2_000
FIRST_STEPS = 100_000
MOST_STEPS = 1_000_000
STEPS_PER_CHECK = 100
STEPS_PER_VALUE = 8
DEEPEST = 100
TOO_LONG = "takes too long to check against its schema"


class Certainty(Enum):
    """What is known about a text before it is evaluated."""

    KNOWN = 1
    SOME_TEXT = 2
    UNKNOWN = 3


class TooMuch(Exception):
    """Checking would take more steps, or more depth, than it is worth."""


class Allowance:
    """How many steps checking one value, or several together, may take.

    More for large values, up to a ceiling. A brief check that has used up its steps is `Unfinished`.
    """

    __slots__ = ("is_brief", "left", "rest")

    def __init__(self, *, is_brief: bool = False) -> None:
        self.is_brief = is_brief
        self.left = BRIEF_STEPS if is_brief else FIRST_STEPS
        self.rest = 0 if is_brief else MOST_STEPS - FIRST_STEPS

    def grow(self, value: JSON) -> None:
        """Give more for a value, as far as there are any."""
        most = max(0, self.rest - STEPS_PER_CHECK) // STEPS_PER_VALUE
        more = min(self.rest, STEPS_PER_CHECK + STEPS_PER_VALUE * extent(value, most))
        self.rest -= more
        self.left += more


Seen = dict[tuple[int, int, int, Path], tuple[list[Problem], bool] | None]
"""What was found behind a reference (schema, value, how many problems are told, place); None while it is looked at."""


class Walk:
    """One walk of a value along a schema; `path` is where it stands."""

    __slots__ = (
        "_allowance", "_seen", "_value", "_written", "certainty", "depth", "doubts", "path", "report", "root", "rules",
        "text_rules",
    )  # fmt: skip

    def __init__(self, root: JSON, value: JSON, path: Path, rules: "Rules",
                 certainty: Callable[[str], Certainty] | None, allowance: Allowance) -> None:  # fmt: skip
        self.root = root
        self._allowance = allowance
        self._value: JSON = value
        self._seen: Seen = {}
        self._written: dict[int, str] = {}
        self.rules, self.text_rules = rules
        self.path = list(path)
        self.certainty = certainty
        self.report = Report()
        self.depth = 0
        self.doubts = 0

    def visit(self, schema: JSON, value: JSON) -> None:
        """Reports where the value certainly does not fit."""
        self.charge(1)
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
        allowance = self._allowance
        allowance.left -= steps
        if allowance.left < 0:
            if allowance.is_brief:
                raise Unfinished
            allowance.grow(self._value)
            self._value = None  # once for each check
            if allowance.left < 0:
                raise TooMuch(TOO_LONG)

    def follow(self, schema: JSON, value: JSON) -> None:
        """Visits what a reference names; what is known about it here is not found out again."""
        key = (id(schema), id(value), self.report.limit, tuple(self.path))
        known = self._seen.get(key)
        if known is None:
            if key in self._seen:
                raise TooMuch("has a schema that refers to itself without going into the value")
            self._seen[key] = None
            known = self._seen[key] = self.trial(schema, value, self.report.limit)
        else:
            self.charge(1)
        problems, is_sure = known
        self.report.extend(problems)
        self.doubts += not is_sure

    def written(self, expected: JSON) -> str:
        """Part of a schema as part of a message, made once: it may be large, and refused many times."""
        found = self._written.get(id(expected))
        if found is None:
            found = shown(expected) if isinstance(expected, str) else step(canonical(expected).decode())
            self._written[id(expected)] = found
        return found

    def trial(self, schema: JSON, value: JSON, limit: int = 3) -> tuple[list[Problem], bool]:
        """The problems the value would have, kept apart, and whether the answer is beyond doubt."""
        self.charge(2)
        report, doubts = self.report, self.doubts
        self.report = Report(limit)
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

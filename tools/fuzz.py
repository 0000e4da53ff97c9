"""Random expressions over random scopes: each is a value or a typed error, soon, in little memory.

Three sorts take turns: expressions grown from the grammar and the function table, the same with characters changed,
and plain noise. A scope is mostly small; now and then it holds what hurts (long, deep, huge, not quite JSON).
"""

import argparse
import json
import random
import resource
import string
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.expression import ExpressionError, Scope, compile_expression, compile_template
from ropewalk.core.expression.functions import FUNCTIONS
from ropewalk.core.expression.functions.table import Function, Parameter
from ropewalk.core.expression.operators import OPERATORS

MAX_MILLISECONDS: Final = 1_000.0
MAX_MEBIBYTES: Final = 20.0
_TRACED_EVERY: Final = 500
_MAX_DEPTH: Final = 6


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(" "))


_MARKS: Final = (
    *_words("{{ }} { } ( ) [ ] . , : ? ?? | => x ' \" \\ \\u \ud800 \0 é 😀 not in null 0 1e308 9007199254740992"),
    *_words("input vars nodes.a.output \n"),
)
_TEXTS: Final = (
    *_words(" a a,b Ω 😀 {{input}} 2026-01-31T10:00:00Z 1970-01-01 12.5 -1e400 days months %Y-%m-%d % %Q [a-z]+"),
    *_words("(a|b)*c (((a*)*)*)* a{1000} (.{9}){99} \\\\pL+ $1 [1,{}] YQ== %ff __class__ {0.__class__} \\u0000"),
    *_words("Europe/Berlin ../etc https://[::1/ https://a.b:1/c?d=1"),
)
_NUMBERS: Final = _words("0 1 2 -1 3.5 100 1000 40000 9007199254740992 1e308 5e-324 -0.0")
_PATHS: Final = (
    *_words("input input.list input.text input.object input.records input.number input.none vars.k item index"),
    *_words("nodes.a.output nodes.a.state nodes.b.error.message execution.id env.X workspace input.records[0].id"),
    *_words("input.object['id'] input.list[-1] input.list[input.number] input.missing.too"),
)


class Report(Struct, frozen=True):
    """What a campaign found."""

    count: int
    values: int
    errors: int
    slowest_ms: float
    growth_mib: float
    seconds: float
    failure: str | None


class Grammar:
    """Grows expressions that mostly make sense."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.names: list[str] = []

    def expression(self, depth: int = _MAX_DEPTH) -> str:
        """Any expression, no deeper than asked for."""
        if depth == 0 or self.chance.random() < 0.2:
            return self.leaf()
        grow: Callable[[int], str] = self.chance.choice(
            (
                self.call,
                self.call,
                self.call,
                self.joined,
                self.joined,
                self.piped,
                self.chosen,
                self.listed,
                self.entries,
            )
        )
        return grow(depth - 1)

    def leaf(self) -> str:
        """A path, a bound name or a literal."""
        roll = self.chance.random()
        if self.names and roll < 0.4:
            return self.chance.choice(self.names) + self.chance.choice(("", "", ".id", "[0]"))
        if roll < 0.7:
            return self.chance.choice(_PATHS)
        return self.chance.choice((*_NUMBERS, "null", "true", "false", *(f'"{text}"' for text in _TEXTS)))

    def call(self, depth: int) -> str:
        """A call with arguments of about the right kind."""
        function = self.chance.choice(_FUNCTIONS)
        return f"{function.name}({', '.join(self._arguments(function, depth))})"

    def piped(self, depth: int) -> str:
        """A value through one to three functions."""
        stages = [self.chance.choice(_PIPED) for _ in range(self.chance.randint(1, 3))]
        calls = [f"{stage.name}({', '.join(self._arguments(stage, depth)[1:])})" for stage in stages]
        return f"({' | '.join([self._fitting(stages[0].parameters[0], depth), *calls])})"

    def joined(self, depth: int) -> str:
        """Operands with operators between them."""
        operators = (*OPERATORS, "and", "or", "??", "?:", "+", "+")
        parts = [self.expression(depth)]
        for _ in range(self.chance.choice((1, 1, 1, 2, 5))):
            parts += (self.chance.choice(operators), self.expression(depth))
        return f"({' '.join(parts)})"

    def chosen(self, depth: int) -> str:
        """A choice between two."""
        return f"({self.expression(depth)} ? {self.expression(depth)} : {self.expression(depth)})"

    def listed(self, depth: int) -> str:
        """A list of up to four."""
        return f"[{', '.join(self.expression(depth) for _ in range(self.chance.randint(0, 4)))}]"

    def entries(self, depth: int) -> str:
        """An object of up to three."""
        keys = self.chance.sample(("id", "key", "value", '"k 1"'), self.chance.randint(0, 3))
        return f"{{{', '.join(f'{key}: {self.expression(depth)}' for key in keys)}}}"

    def _arguments(self, function: Function, depth: int) -> list[str]:
        count = self.chance.randint(function.required, len(function.parameters))
        return [self._fitting(parameter, depth) for parameter in function.parameters[:count]]

    def _fitting(self, parameter: Parameter, depth: int) -> str:
        if parameter.rule_names:
            return self._rule(depth, parameter.rule_names)
        if self.chance.random() < 0.1:
            return self.expression(depth)
        kind = self.chance.choice(parameter.kind.split(" or "))
        return self._of_kind(kind, depth)

    def _of_kind(self, kind: str, depth: int) -> str:
        choose = self.chance.choice
        match kind:
            case "list":
                return choose(
                    ("input.list", "input.records", "range(0, 300)", "range(0, input.number)", self.listed(depth // 2))
                )
            case "text" | "instant" | "regex":
                return choose(("input.text", "item", *(f'"{text}"' for text in _TEXTS)))
            case "number" | "integer":
                return choose(("index", "input.number", *_NUMBERS))
            case "object":
                return choose(("input.object", "input.records[0]", "vars", self.entries(depth // 2)))
            case _:
                return self.expression(depth)

    def _rule(self, depth: int, count: int) -> str:
        names = self.chance.sample(("x", "y", "item"), count)
        self.names += names
        body = self.expression(depth)
        del self.names[-count:]
        return f"{names[0]} => {body}" if count == 1 else f"({', '.join(names)}) => {body}"


_FUNCTIONS: Final = tuple(FUNCTIONS.values())
_PIPED: Final = tuple(function for function in _FUNCTIONS if function.parameters)


def random_source(chance: random.Random) -> str:
    """An expression, a damaged one, or noise."""
    roll = chance.random()
    if roll < 0.1:
        return _noise(chance)
    source = Grammar(chance).expression(chance.choice((1, 2, 2, 3, 3, 4, _MAX_DEPTH)))
    return _damaged(chance, source) if roll < 0.35 else source


def _noise(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return "".join(chance.choice((*_MARKS, *string.printable)) for _ in range(chance.randint(0, 40)))
    raw = chance.randbytes(chance.choice((1, 8, 60, 5000)))
    return raw.decode(chance.choice(("latin-1", "utf-8")), "surrogateescape")


def _damaged(chance: random.Random, source: str) -> str:
    for _ in range(chance.randint(1, 3)):
        start = chance.randint(0, len(source))
        end = min(len(source), start + chance.choice((0, 0, 1, 5)))
        piece = chance.choice((chance.choice(_MARKS), source[start : start + 20] * chance.choice((1, 2, 80))))
        source = source[:start] + piece + source[end:]
    return source


def random_scope(chance: random.Random, *, is_hostile: bool) -> Scope:
    """A scope of a size people use, or one that is far too large."""
    grown = _hostile(chance) if is_hostile else _ordinary(chance)
    nodes = {"a": {"output": grown, "state": "SUCCESS"}, "b": {"error": {"message": "no"}, "output": None}}
    return Scope(input=grown, vars={"k": 5}, nodes=nodes, item=chance.choice(("a", 1, None)), index=3, env={"X": "y"})


def _ordinary(chance: random.Random) -> dict[str, Any]:
    size = chance.choice((0, 3, 30))
    return {
        "list": [chance.choice((1, 2.5, "a", None, True, [1], {"id": 2})) for _ in range(size)],
        "records": [{"id": chance.randint(0, 9), "key": "k", "value": [1]} for _ in range(size)],
        "text": "".join(chance.choice("ab ,é😀-1") for _ in range(4 * size)),
        "object": {"k 1": 1, "id": "i", "key": "k"},
        "number": chance.randint(-5, 50),
        "none": None,
    }


def _hostile(chance: random.Random) -> dict[str, Any]:
    deep: list[Any] = []
    for _ in range(900):
        deep = [deep]
    return {
        "list": chance.choice(
            (list(range(60_000)), ["ab" * 40] * 20_000, [deep], [float("nan"), 10**400, float("inf")])
        ),
        "records": [{"id": number, "key": str(number), "value": deep} for number in range(5_000)],
        "text": chance.choice(
            ("ab" * 500_000, "😀" * 200_000, "\ud800", "[" * 50_000, "a" * 60_000, "[]," * 20_000 + "1")
        ),
        "object": {str(number): number for number in range(20_000)},
        "number": chance.choice((10**30, float("nan"), 2**53, 5_000)),
        "none": None,
    }


class Outcome(Struct, frozen=True):
    """What came of one case: `value` only if it was made here and must be sound JSON."""

    has_value: bool
    value: Any = None


def attempt(source: str, scope: Scope, *, is_template: bool) -> Outcome:
    """The value of the source, or that it has none. Anything but a value or a typed error comes out as an exception."""
    try:
        if is_template:
            tree = {"a": [source, f"{{{{ {source} }}}} and {{{{ {source} }}}}"]}
            return Outcome(has_value=True, value=compile_template(tree).resolve(scope)["a"][1])
        expression = compile_expression(source)
        value = expression.evaluate(scope)
        return Outcome(has_value=True, value=None if expression.is_path else value)
    except ExpressionError as error:
        if not 0 <= error.position <= 2 * len(source) + 20:
            raise ValueError(f"position {error.position} is outside the source") from error
        return Outcome(has_value=False)


def fuzz(count: int, seed: int) -> Report:
    """Try so many expressions; stop at the first that misbehaves."""
    campaign = Campaign(seed)
    began = time.perf_counter()
    for number in range(count):
        campaign.step(number)
        if campaign.failure:
            break
    return campaign.report(time.perf_counter() - began)


class Campaign:
    """Counts what came of each case, and keeps the first failure."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.ordinary = [random_scope(self.chance, is_hostile=False) for _ in range(16)]
        self.hostile = [random_scope(self.chance, is_hostile=True) for _ in range(8)]
        self.count = self.values = 0
        self.slowest = self.growth = 0.0
        self.failure: str | None = None

    def step(self, number: int) -> None:
        """One case: made, tried, timed and weighed."""
        source = random_source(self.chance)
        scopes = self.hostile if self.chance.random() < 0.05 else self.ordinary
        scope = self.chance.choice(scopes)
        is_template = self.chance.random() < 0.1
        self.count += 1
        try:
            outcome = self._measured(lambda: attempt(source, scope, is_template=is_template), is_template)
            json.dumps(outcome.value, allow_nan=False)
            if number % _TRACED_EVERY == 0 and not self.failure:
                self._traced(lambda: attempt(source, scope, is_template=is_template))
        except Exception as error:  # noqa: BLE001 (every error is a finding)
            self._fail(f"{type(error).__name__}: {error}")
        if self.failure:
            self.failure = f"case {number}: {self.failure}; source {source!a}"

    def _measured(self, case: Callable[[], Outcome], is_template: bool) -> Outcome:
        # A template holds the source three times.
        limit = MAX_MILLISECONDS * (3 if is_template else 1)
        before = _peak_mebibytes()
        outcome, taken = _timed(case)
        if taken > limit:
            taken = min(taken, _timed(case)[1])
        self.values += outcome.has_value
        self.slowest = max(self.slowest, taken / (3 if is_template else 1))
        self._weigh(_peak_mebibytes() - before)
        if taken > limit:
            self._fail(f"took {taken:.1f} ms")
        return outcome

    def _traced(self, case: Callable[[], Outcome]) -> None:
        tracemalloc.start()
        try:
            case()
            self._weigh(tracemalloc.get_traced_memory()[1] / (1 << 20))
        finally:
            tracemalloc.stop()

    def _weigh(self, growth: float) -> None:
        self.growth = max(self.growth, growth)
        if growth > MAX_MEBIBYTES:
            self._fail(f"took {growth:.1f} MiB")

    def _fail(self, what: str) -> None:
        self.failure = f"seed {self.seed}: {what}"

    def report(self, seconds: float) -> Report:
        """The figures so far."""
        errors = self.count - self.values
        return Report(self.count, self.values, errors, self.slowest, self.growth, seconds, self.failure)


def _timed(case: Callable[[], Outcome]) -> tuple[Outcome, float]:
    began = time.process_time()
    outcome = case()
    return outcome, 1000 * (time.process_time() - began)


def _peak_mebibytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def print_report(report: Report) -> None:
    """One JSON line for each figure."""
    figures = (
        ("rate", report.count / report.seconds, "1/s"),
        ("values", report.values, "expressions"),
        ("typed errors", report.errors, "expressions"),
        ("slowest", report.slowest_ms, "ms"),
        ("largest growth", report.growth_mib, "MiB"),
        ("violations", int(report.failure is not None), "expressions"),
    )
    for metric, value, unit in figures:
        line = {"workload": "fuzz", "metric": metric, "value": round(value, 2), "unit": unit, "n": report.count}
        print(json.dumps(line))


def main() -> int:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    report = fuzz(arguments.count, arguments.seed)
    print_report(report)
    if report.failure:
        print(report.failure, file=sys.stderr)
    return 1 if report.failure else 0


if __name__ == "__main__":
    sys.exit(main())

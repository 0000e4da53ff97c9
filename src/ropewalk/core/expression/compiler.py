"""Turns a tree into closures, once; and learns on the way what it refers to, calls and costs."""

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, Final

from ropewalk.core.expression.faults import ExpressionError, Refused
from ropewalk.core.expression.functions import FUNCTIONS
from ropewalk.core.expression.functions.regexes import check_pattern
from ropewalk.core.expression.functions.table import Each, EachPair, Function
from ropewalk.core.expression.operators import OPERATORS, Operator, negated
from ropewalk.core.expression.paths import follow, follow_computed, node_field
from ropewalk.core.expression.run import NODE_FIELDS, ROOTS, Run
from ropewalk.core.expression.syntax import (
    Call,
    Chain,
    Choice,
    Link,
    ListOf,
    Literal,
    Lookup,
    Name,
    Node,
    ObjectOf,
    Pipe,
    Piped,
    Prefix,
    Rule,
)
from ropewalk.core.expression.values import JSON, is_true, shown

Code = Callable[[Run], Any]

_LONGEST_GUESSED: Final = 32
_MAX_CHECKED_PATTERNS: Final = 8
_SHORT_CIRCUITS: Final = ("and", "or", "??", "?:")


class Compiler:
    """Compiles one expression; afterwards `references`, `functions`, `cost` and `slots` describe it.

    `cost` is what it takes once; `work` the same with each of its rules applied once.
    """

    def __init__(self) -> None:
        self.references: dict[tuple[str, ...], None] = {}
        self.functions: dict[str, None] = {}
        self.cost = 0
        self._rules = 0
        self.slots = 0
        self._names: list[str] = []
        self._patterns = 0

    @property
    def work(self) -> int:
        """What each of its operations takes together, those in rules too."""
        return self.cost + self._rules

    def code(self, node: Node) -> Code:
        """The closure that evaluates this node."""
        self.cost += 1
        match node:
            case Literal(value=value):
                return lambda run: value
            case Name():
                return self._path(node, node, ())
            case Lookup(base=base, keys=keys):
                return self._path(node, base, keys)
            case Prefix():
                return self._prefix(node)
            case Chain(rest=rest) if rest[0].operator in _SHORT_CIRCUITS:
                return self._short_circuit(node)
            case Chain():
                return self._chain(node)
            case Choice():
                return self._choice(node)
            case ListOf(items=items):
                codes = self._codes(items)
                return lambda run: [code(run) for code in codes]
            case ObjectOf(entries=entries):
                members = [(key, self.code(value)) for key, value in entries]
                return lambda run: {key: code(run) for key, code in members}
            case Call():
                return self._call(node)
            case Pipe():
                return self._pipe(node)
            case Piped():
                return attrgetter("piped")
            case _:
                raise ExpressionError("a rule (x => …) can only be an argument", node.position)

    def _codes(self, nodes: tuple[Node, ...]) -> list[Code]:
        return [self.code(node) for node in nodes]

    def _path(self, node: Node, base: Node, keys: tuple[Node, ...]) -> Code:
        if not isinstance(base, Name):
            return self._follow(self.code(base), keys)
        if base.name in self._names:
            slot = len(self._names) - 1 - self._names[::-1].index(base.name)
            return self._follow(lambda run: run.bound[slot], keys)
        self.references[static_path(base, keys)] = None
        if base.name != "nodes":
            return self._follow(attrgetter(f"scope.{base.name}"), keys)
        return self._follow(node_field(attrgetter("scope.nodes"), *_node_and_field(base, keys)), keys[2:])

    def _follow(self, first: Code, keys: tuple[Node, ...]) -> Code:
        if not keys:
            return first
        where = tuple(key.position for key in keys)
        if all(isinstance(key, Literal) for key in keys):
            return follow(first, tuple(key.value for key in keys if isinstance(key, Literal)), where)
        return follow_computed(first, tuple(self._codes(keys)), where)

    def _prefix(self, node: Prefix) -> Code:
        operand = self.code(node.operand)
        if node.operator == "not":
            return lambda run: not is_true(operand(run))

        def negate(run: Run) -> JSON:
            value = operand(run)
            try:
                return negated(value)
            except Refused as refused:
                raise ExpressionError(refused.message, node.position) from None

        return negate

    def _short_circuit(self, node: Chain) -> Code:
        codes = [self.code(node.first), *(self.code(link.operand) for link in node.rest)]
        match node.rest[0].operator:
            case "and":
                return lambda run: all(is_true(code(run)) for code in codes)
            case "or":
                return lambda run: any(is_true(code(run)) for code in codes)
            case _:
                return _defaulted(codes, [link.operator == "??" for link in node.rest])

    def _chain(self, node: Chain) -> Code:
        first = self.code(node.first)
        links = [self._link(link) for link in node.rest]
        return _pair(first, *links[0]) if len(links) == 1 else _chained(first, links)

    def _link(self, link: Link) -> tuple[Operator, Code, int]:
        self.cost += 1
        return OPERATORS[link.operator], self.code(link.operand), link.position

    def _choice(self, node: Choice) -> Code:
        branches = [(self.code(condition), self.code(value)) for condition, value in node.branches]
        otherwise = self.code(node.otherwise)

        def choose(run: Run) -> JSON:
            for condition, value in branches:
                if is_true(condition(run)):
                    return value(run)
            return otherwise(run)

        return choose

    def _pipe(self, node: Pipe) -> Code:
        first = self.code(node.first)
        stages = [self.code(stage) for stage in node.stages]

        def pipe(run: Run) -> JSON:
            value = first(run)
            for stage in stages:
                # A stage reads this first of all, before its other arguments can pipe anything themselves.
                run.piped = value
                value = stage(run)
            return value

        return pipe

    def _call(self, node: Call) -> Code:
        function = _function(node)
        self.functions[node.name] = None
        self.cost += function.cost
        self._check_pattern(function, node)
        arguments = [self._argument(function, place, argument) for place, argument in enumerate(node.arguments)]
        return _called(function, arguments, node.position)

    def _argument(self, function: Function, place: int, argument: Node) -> Code:
        parameter = function.parameters[place]
        if not parameter.rule_names:
            return self.code(argument)
        if not isinstance(argument, Rule):
            example = "x => x.id" if parameter.rule_names == 1 else "(sum, x) => sum + x"
            raise ExpressionError(f"{function.name} needs a rule here, such as {example}", argument.position)
        if len(argument.names) != parameter.rule_names:
            names = "1 name" if parameter.rule_names == 1 else f"{parameter.rule_names} names"
            raise ExpressionError(f"the rule needs {names}; it is {function.signature}", argument.position)
        return self._rule(argument)

    def _rule(self, rule: Rule) -> Code:
        slot = len(self._names)
        before = self.cost
        with self._bound(rule.names):
            body = self.code(rule.body)
        cost, self.cost = self.cost - before + 1, before
        self._rules += cost
        return _applier(body, slot, cost) if len(rule.names) == 1 else _pair_applier(body, slot, cost)

    @contextmanager
    def _bound(self, names: tuple[str, ...]) -> Iterator[None]:
        self._names.extend(names)
        self.slots = max(self.slots, len(self._names))
        yield
        del self._names[-len(names) :]

    def _check_pattern(self, function: Function, node: Call) -> None:
        # Only so many: compiling a pattern is dear, and an evaluation checks (and counts) them all.
        for parameter, argument in zip(function.parameters, node.arguments, strict=False):
            if parameter.kind == "regex" and isinstance(argument, Literal) and isinstance(argument.value, str):
                self._patterns += 1
                if self._patterns <= _MAX_CHECKED_PATTERNS:
                    _at(argument.position, check_pattern, argument.value)


def static_path(base: Name, keys: tuple[Node, ...]) -> tuple[str, ...]:
    """The root and the keys known without running, as far as they are texts; an unknown root is refused."""
    if base.name not in ROOTS:
        hint = _suggestion(base.name, ROOTS)
        raise ExpressionError(f"unknown name {shown(base.name)}; {hint}there are {', '.join(ROOTS)}", base.position)
    path = [base.name]
    for key in keys:
        if not isinstance(key, Literal) or not isinstance(key.value, str):
            break
        path.append(key.value)
    return tuple(path)


def _node_and_field(base: Name, keys: tuple[Node, ...]) -> tuple[str, str]:
    path = static_path(base, keys)
    if len(path) < 3 or path[2] not in NODE_FIELDS:
        fields = ", ".join(NODE_FIELDS)
        raise ExpressionError(f"write nodes.<id>.<field>, spelled out; the fields are {fields}", base.position)
    return path[1], path[2]


def _function(node: Call) -> Function:
    function = FUNCTIONS.get(node.name)
    if function is None:
        hint = _suggestion(node.name, tuple(FUNCTIONS))
        raise ExpressionError(f"unknown function {shown(node.name)}; {hint}see the reference", node.position)
    if not function.required <= len(node.arguments) <= len(function.parameters):
        raise ExpressionError(f"wrong number of arguments; it is {function.signature}", node.position)
    return function


def _suggestion(name: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name[:_LONGEST_GUESSED], known, 1)
    return f"did you mean {close[0]}? " if close else ""


def _at(position: int, action: Callable[[str], None], argument: str) -> None:
    try:
        action(argument)
    except Refused as refused:
        raise ExpressionError(refused.message, position) from None


def _defaulted(codes: list[Code], takes_all_but_null: list[bool]) -> Code:
    """From left to right: before `??` all but null stands, before `?:` what counts as true."""
    first, *others = codes
    links = list(zip(takes_all_but_null, others, strict=True))

    def default(run: Run) -> JSON:
        value = first(run)
        for is_null_only, other in links:
            if value is None or not (is_null_only or is_true(value)):
                value = other(run)
        return value

    return default


def _pair(first: Code, join: Operator, second: Code, position: int) -> Code:
    def pair(run: Run) -> JSON:
        left = first(run)
        right = second(run)
        try:
            return join(run, left, right)
        except Refused as refused:
            raise ExpressionError(refused.message, position) from None

    return pair


def _chained(first: Code, links: list[tuple[Operator, Code, int]]) -> Code:
    def chained(run: Run) -> JSON:
        value = first(run)
        for join, operand, position in links:
            right = operand(run)
            try:
                value = join(run, value, right)
            except Refused as refused:
                raise ExpressionError(refused.message, position) from None
        return value

    return chained


def _called(function: Function, arguments: list[Code], position: int) -> Code:
    name, apply, parameters = function.name, function.apply, function.parameters[: len(arguments)]

    def call(run: Run) -> JSON:
        values = [argument(run) for argument in arguments]
        try:
            for parameter, value in zip(parameters, values, strict=True):
                parameter.check(name, value)
            return apply(run, *values)
        except Refused as refused:
            raise ExpressionError(refused.message, position) from None

    return call


def _applier(body: Code, slot: int, cost: int) -> Code:
    def bind(run: Run) -> Each:
        def apply(value: JSON) -> JSON:
            run.charge(cost)
            run.bound[slot] = value
            return body(run)

        return apply

    return bind


def _pair_applier(body: Code, slot: int, cost: int) -> Code:
    def bind(run: Run) -> EachPair:
        def apply(first: JSON, second: JSON) -> JSON:
            run.charge(cost)
            run.bound[slot : slot + 2] = (first, second)
            return body(run)

        return apply

    return bind

"""A compiled expression: evaluates within its limits and says what it refers to without being run."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final
from weakref import WeakValueDictionary

from ropewalk.core.canonical import extent
from ropewalk.core.expression.compiler import Code, Compiler
from ropewalk.core.expression.faults import ExpressionError, Refused
from ropewalk.core.expression.parser import parse
from ropewalk.core.expression.paths import follow, node_field
from ropewalk.core.expression.run import MAX_STEPS, MAX_TREE_STEPS, Run, Scope
from ropewalk.core.expression.syntax import Literal, Lookup, Name, Node
from ropewalk.core.expression.values import JSON, measure

# Within every limit, with any value.
_SMALL: Final = (bool, type(None))


class Expression:
    """One expression, compiled. Evaluating it changes nothing and always ends, with a value or an `ExpressionError`.

    It never changes, so one serves every place that has the same source.
    """

    __slots__ = (
        "__weakref__", "_code", "_cost", "_path", "_slots", "_work", "functions", "is_path", "position", "references",
    )  # fmt: skip

    def __init__(self, node: Node) -> None:
        compiler = Compiler()
        self._code: Code = compiler.code(node)
        self._path = _direct_path(node)
        self._slots = compiler.slots
        self._cost, self._work = compiler.cost, compiler.work
        self.position = node.position
        self.is_path = _is_path(node)
        self.references = tuple(compiler.references)
        self.functions = tuple(compiler.functions)

    def evaluate(self, scope: Scope) -> JSON:
        """The value in this scope. Values are shared with the scope, not copied."""
        return self.value(Run(scope)) if self._path is None else self._path(scope)

    def evaluate_in_tree(self, scope: Scope) -> JSON:
        """The same as one of many: what it takes is taken off what all of them may take."""
        if self._path is not None:
            return self._path(scope)
        run = Run(scope)
        value = self.value(run)
        try:
            run.conclude()
        except Refused as refused:
            raise ExpressionError(refused.message, self.position) from None
        return value

    def value(self, run: Run) -> JSON:
        """The value, as part of a larger evaluation whose room it shares."""
        left = run.scope.steps
        run.given = left if left < MAX_STEPS else MAX_STEPS
        run.steps = run.given - self._cost
        run.size = self._size
        run.bound = [None] * self._slots
        try:
            value = self._code(run)
            if type(value) not in _SMALL and not self.is_path:
                measure(run, value)
            return value
        except Refused as refused:
            raise ExpressionError(refused.message, self.position) from None

    def _size(self, scope: Scope) -> int:
        """What it takes to do all of this once with each value the expression refers to."""
        most = 1 + MAX_TREE_STEPS // self._work
        return self._work * sum(extent(_referred(scope, path), most) for path in self.references)


def _referred(scope: Scope, path: tuple[str, ...]) -> JSON:
    """The value at a path of names, as far as it goes."""
    value: Any = getattr(scope, path[0])
    for key in path[1:]:
        if not isinstance(value, Mapping):
            return value
        value = value.get(key)
    return value


def compile_expression(source: str) -> Expression:
    """The expression in a text without braces."""
    node, _ = parse(source)
    return Expression(node)


def shared_expression(source: str) -> Expression:
    """The same, compiled once for all who have it: a document may hold one source a hundred thousand times."""
    found = _shared.get(source)
    if found is None:
        found = _shared[source] = compile_expression(source)
    return found


# Only those that a template somewhere still has.
_shared: Final[WeakValueDictionary[str, Expression]] = WeakValueDictionary()


def _is_path(node: Node) -> bool:
    """Whether the node only points at something: such a value is neither new nor limited in size."""
    if isinstance(node, Lookup):
        return isinstance(node.base, Name) and all(isinstance(key, Literal) or _is_path(key) for key in node.keys)
    return isinstance(node, Name)


def _direct_path(node: Node) -> Callable[[Scope], Any] | None:
    """A shortcut for the commonest expression, a path with fixed keys: no run, nothing to count."""
    base, keys = (node.base, node.keys) if isinstance(node, Lookup) else (node, ())
    fixed = tuple(key.value for key in keys if isinstance(key, Literal))
    if not isinstance(base, Name) or len(fixed) < len(keys):
        return None
    where = tuple(key.position for key in keys)
    if base.name == "nodes":
        return follow(node_field(attrgetter("nodes"), *fixed[:2]), fixed[2:], where[2:])
    return follow(attrgetter(base.name), fixed, where)

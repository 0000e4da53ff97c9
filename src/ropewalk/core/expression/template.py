"""JSON with expressions in its texts: `"{{ … }}"` stands for a value, `"a {{ … }} b"` for a text.

A text that is one expression, with nothing but white space around it, gives the expression's own value. In any other
the parts are rendered and joined. What an expression gives is never looked through for expressions again, and keys of
objects are taken as they are. To have a literal `{{`, write `{{ "{{" }}`.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final
from weakref import WeakValueDictionary

from msgspec import Struct

from ropewalk.core.brief import is_brief
from ropewalk.core.errors import Problem, Unfinished
from ropewalk.core.expression.faults import ExpressionError, Refused
from ropewalk.core.expression.parser import parse
from ropewalk.core.expression.program import Expression, shared_expression
from ropewalk.core.expression.run import BRIEF_STEPS, MAX_TREE_STEPS, MAX_VALUE, Run, Scope
from ropewalk.core.expression.values import JSON, render, text_size

MAX_TREE_DEPTH: Final = 64
FEW_PARTS: Final = 16
LONGEST_SHARED: Final = 1_000
Resolve = Callable[[Scope], Any]
Path = tuple[str | int, ...]


class Template:
    """A JSON value to be completed from a scope."""

    __slots__ = ("_parts", "_resolve", "functions", "is_constant", "is_little", "is_timely", "references", "value")

    def __init__(self, value: JSON, resolve: Resolve | None, expressions: Iterable[Expression]) -> None:
        self.value = value
        self._resolve = resolve
        self.is_constant = resolve is None
        known = list(expressions)
        self._parts = len(known)
        # Whether what it gives is little if what its expressions give is: it names few, and is brief itself.
        self.is_little = self._parts <= FEW_PARTS and is_brief(value)
        self.references = tuple(dict.fromkeys(path for found in known for path in found.references))
        self.functions = tuple(dict.fromkeys(name for found in known for name in found.functions))
        # Whether it gives something else each time.
        self.is_timely = ("now",) in self.references or "uuid" in self.functions or "random" in self.functions

    def resolve(self, scope: Scope) -> JSON:
        """The value with every expression evaluated; what is constant is shared, not copied."""
        if self._resolve is None:
            return self.value
        scope.steps, scope.is_brief = MAX_TREE_STEPS, False
        return self._resolve(scope)

    def resolve_briefly(self, scope: Scope, steps: int = BRIEF_STEPS) -> JSON:
        """The same, or `Unfinished` if it takes more than a few steps: `scope` says how many are left."""
        if self._resolve is None:
            return self.value
        scope.steps, scope.is_brief = steps - self._parts, True
        if scope.steps < 0:
            raise Unfinished
        return self._resolve(scope)


def has_expression(text: str) -> bool:
    """Whether a text holds anything to evaluate."""
    return "{{" in text


def compile_template(value: JSON) -> Template:
    """The template in any JSON value; the first bad text raises its `ExpressionError`."""
    builder = _Builder()
    template = builder.template(value)
    for _, error in builder.errors:
        raise error
    return template


def check_template(value: JSON, path: Path = ()) -> tuple[Template | None, list[Problem]]:
    """The template, or every problem in it, each with its place in the tree below `path`."""
    builder = _Builder()
    template = builder.template(value, path)
    problems = [Problem(where, str(error)) for where, error in builder.errors]
    return (None if problems else template), problems


class _Builder:
    """Walks a tree once, gathering expressions and errors; its recursion ends at the depth a tree may have."""

    def __init__(self) -> None:
        self.errors: list[tuple[Path, ExpressionError]] = []
        self.expressions: list[Expression] = []

    def template(self, value: JSON, path: Path = ()) -> Template:
        """The template; most are constant, and seen to be so without further ado."""
        resolve = None if _is_constant(value) else self.build(value, path, MAX_TREE_DEPTH)
        return Template(value, resolve, self.expressions)

    def build(self, value: str | dict[str, JSON] | list[JSON], path: Path, depth: int) -> Resolve | None:
        """Code for a value that holds expressions; None for a constant."""
        if isinstance(value, str):
            return self._text(value, path) if "{{" in value else None
        if depth == 0:
            self.errors.append((path, ExpressionError(f"nested deeper than {MAX_TREE_DEPTH} levels", 0)))
            return None
        if isinstance(value, dict):
            return _object_resolver(value, self._parts(value.items(), path, depth))
        return _list_resolver(value, self._parts(enumerate(value), path, depth))

    def _parts(self, members: Iterable[tuple[Any, JSON]], path: Path, depth: int) -> list[tuple[Any, Resolve]]:
        parts = []
        for key, member in members:
            if isinstance(member, str | dict | list):
                resolve = self.build(member, (*path, key), depth - 1)
                if resolve is not None:
                    parts.append((key, resolve))
        return parts

    def _text(self, text: str, path: Path) -> Resolve | None:
        try:
            whole = _whole(text)
            parts = [] if whole is not None else _split(text)
        except ExpressionError as error:
            self.errors.append((path, error))
            return None
        if whole is not None:
            self.expressions.append(whole)
            return whole.evaluate_in_tree
        self.expressions += (part.expression for part in parts if isinstance(part, _Part))
        return _text_resolver(parts)


# By the text they are the whole of, only those that a template somewhere still has.
_wholes: Final[WeakValueDictionary[str, Expression]] = WeakValueDictionary()


class _Part(Struct, frozen=True, gc=False):
    """An expression in a text that has more than that; its positions are counted from `start`."""

    start: int
    expression: Expression

    def placed(self, error: ExpressionError) -> ExpressionError:
        """The error with its place in the text."""
        return ExpressionError(error.message, self.start + error.position)


def _is_constant(value: JSON) -> bool:
    """Whether nothing in the tree is to be evaluated; a tree that is too deep is left to the builder."""
    level = [value]
    for _ in range(MAX_TREE_DEPTH):
        below: list[JSON] = []
        for member in level:
            if isinstance(member, str):
                if "{{" in member:
                    return False
            elif isinstance(member, dict):
                below.extend(member.values())
            elif isinstance(member, list):
                below.extend(member)
        if not below:
            return True
        level = below
    return False


def _object_resolver(value: dict[str, JSON], parts: list[tuple[str, Resolve]]) -> Resolve | None:
    # The copy keeps the order of keys; only members with expressions are replaced.
    return (lambda scope: {**value, **{key: resolve(scope) for key, resolve in parts}}) if parts else None


def _list_resolver(value: list[JSON], parts: list[tuple[int, Resolve]]) -> Resolve | None:
    def resolved(scope: Scope) -> JSON:
        items = value.copy()
        for index, resolve in parts:
            items[index] = resolve(scope)
        return items

    return resolved if parts else None


def _whole(text: str) -> Expression | None:
    """The expression that a text is, with nothing but white space around it; None if it has other parts."""
    found = _wholes.get(text)
    if found is not None:
        return found
    start = text.index("{{")
    if not text.rstrip().endswith("}}") or text[:start].strip():
        return None
    expression, end = _expression_at(text, start + 2)
    if text[end:].strip():
        return None
    _wholes[text] = expression
    return expression


def _split(text: str) -> list[str | _Part]:
    parts: list[str | _Part] = []
    end = 0
    while (start := text.find("{{", end)) >= 0:
        parts.append(text[end:start])
        part, end = _part_at(text, start + 2)
        parts.append(part)
    parts.append(text[end:])
    return parts


def _part_at(text: str, start: int) -> tuple[_Part, int]:
    """The expression that begins at `start`, shared with all of the same source, and the offset behind its braces."""
    close = text.find("}}", start, start + LONGEST_SHARED)
    if close >= 0:
        try:
            # What is an expression up to the first braces is the whole of it: no token ends behind such braces.
            return _Part(start, shared_expression(text[start:close])), close + 2
        except ExpressionError:
            pass  # or it has such braces inside, or is wrong: what is wrong is told of the whole text
    expression, end = _expression_at(text, start)
    return _Part(0, expression), end


def _expression_at(text: str, start: int) -> tuple[Expression, int]:
    """The same with positions in the whole text, and shared with no other."""
    node, end = parse(text, start, is_enclosed=True)
    return Expression(node), end


def _text_resolver(parts: list[str | _Part]) -> Resolve:
    def resolved(scope: Scope) -> str:
        run = Run(scope)
        size = 0
        pieces = []
        for part in parts:
            piece = part if isinstance(part, str) else _rendered(run, part)
            size += text_size(piece)
            if size > MAX_VALUE:
                raise _too_large(part)
            pieces.append(piece)
        return "".join(pieces)

    return resolved


def _too_large(part: str | _Part) -> ExpressionError:
    where = 0 if isinstance(part, str) else part.start + part.expression.position
    return ExpressionError("gives a text larger than 1 MiB", where)


def _rendered(run: Run, part: _Part) -> str:
    expression = part.expression
    try:
        text = render(run, expression.value(run))
        run.scan(len(text))
        run.conclude()
    except Refused as refused:
        raise ExpressionError(refused.message, part.start + expression.position) from None
    except ExpressionError as error:
        raise part.placed(error) from None
    return text

"""Reads an expression into a tree.

From loosest to tightest: `|`, `? :`, `or`, `and`, `not`, comparison and `in`, `?? ?:`, `+ -`, `* / %`, unary `-`,
lookup. Operands of one level become one flat chain, so only nesting makes the tree deeper, and nesting is counted:
neither parsing nor evaluating can run out of stack.
"""

from collections.abc import Callable
from typing import Final

from ropewalk.core.expression.faults import ExpressionError
from ropewalk.core.expression.lexer import WORDS, Lexer, Token
from ropewalk.core.expression.run import MAX_DEPTH
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

_COMPARISON: Final = 3
_LEVELS: Final = {
    **dict.fromkeys(("or",), 0),
    **dict.fromkeys(("and",), 1),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in", "not"), _COMPARISON),
    **dict.fromkeys(("??", "?:"), 4),
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "/", "%"), 6),
}
_PREFIXES: Final = {"not": 2, "-": 7}
_LONGEST_SHOWN: Final = 24

Part = Callable[[], Node]


def parse(text: str, start: int = 0, *, is_enclosed: bool = False) -> tuple[Node, int]:
    """The expression that begins at `start`, and the offset behind it (behind its `}}` if enclosed)."""
    return Parser(text, start).whole(is_enclosed)


class Parser:
    """One pass over one expression, with one token in hand."""

    def __init__(self, text: str, start: int) -> None:
        self.lexer = Lexer(text, start)
        self.start = start
        self.depth = 0
        self.token = self.lexer.next()

    def whole(self, is_enclosed: bool) -> tuple[Node, int]:
        """An expression with nothing but its end behind it."""
        if self.token.kind in ("end", "}"):
            raise ExpressionError("an expression is missing here", self.token.position)
        node = self.expression()
        end = self.token.position
        if is_enclosed:
            return node, self._closing(end)
        if self.token.kind != "end":
            raise self._unexpected("an operator or the end")
        return node, end

    def _closing(self, end: int) -> int:
        if self.lexer.text.startswith("}}", end):
            return end + 2
        if self.token.kind == "end":
            raise ExpressionError("this {{ is not closed; end the expression with }}", self.start - 2)
        raise self._unexpected("an operator or }}")

    def expression(self) -> Node:
        """A whole expression, pipes included."""
        position = self.token.position
        first = self.choice()
        stages = []
        while self._takes("|"):
            stages.append(self._stage())
        return Pipe(position, first, tuple(stages)) if stages else first

    def _stage(self) -> Call:
        name = self._expect("name", "the name of a function")
        piped = Piped(name.position)
        self._enter()
        arguments = self._sequence(")", self._argument) if self._takes("(") else ()
        self.depth -= 1
        return Call(name.position, name.value, (piped, *arguments))

    def choice(self) -> Node:
        """A condition with its alternatives, or just an operation."""
        position = self.token.position
        node = self.operation(0)
        branches = []
        while self._takes("?"):
            value = self._alternative()
            self._expect(":", "':' and the value for otherwise")
            branches.append((node, value))
            node = self.operation(0)
        return Choice(position, tuple(branches), node) if branches else node

    def _alternative(self) -> Node:
        self._enter()
        node = self.choice()
        self.depth -= 1
        return node

    def operation(self, level: int) -> Node:
        """Operands joined by operators that bind at least as tight as `level`."""
        self._enter()
        node = self.prefixed() if self.token.kind in _PREFIXES else self.looked_up()
        while (found := _LEVELS.get(self.token.kind, -1)) >= level:
            node = self._chain(node, found)
        self.depth -= 1
        return node

    def _chain(self, first: Node, level: int) -> Node:
        links: list[Link] = []
        while _LEVELS.get(self.token.kind) == level:
            if links and level == _COMPARISON:
                raise ExpressionError("comparisons do not chain; join them with 'and'", self.token.position)
            position = self.token.position
            links.append(Link(position, self._operator(), self.operation(level + 1)))
        return Chain(first.position, first, tuple(links))

    def _operator(self) -> str:
        operator = self._advance().kind
        if operator == "not":
            self._expect("in", "'in' behind this 'not'")
            return "not in"
        return operator

    def prefixed(self) -> Node:
        """An operand with the `not` or `-` before it."""
        token = self._advance()
        operand = self.operation(_PREFIXES[token.kind])
        if token.kind == "-" and isinstance(operand, Literal) and type(operand.value) in (int, float):
            return Literal(token.position, -operand.value)
        return Prefix(token.position, token.kind, operand)

    def looked_up(self) -> Node:
        """An operand and the lookups behind it."""
        base = self.operand()
        keys: list[Node] = []
        while self.token.kind in (".", "["):
            keys.append(self._key() if self._advance().kind == "." else self._index())
        return Lookup(base.position, base, tuple(keys)) if keys else base

    def _key(self) -> Node:
        token = self.token
        if token.kind != "name" and token.kind not in WORDS:
            raise self._unexpected('a name behind the dot; other keys go in brackets: ["a b"]')
        self._advance()
        return Literal(token.position, self.lexer.text[token.position : token.end])

    def _index(self) -> Node:
        node = self.expression()
        self._expect("]", "']'")
        return node

    def operand(self) -> Node:
        """A literal, a name, a call, or something in brackets."""
        token = self.token
        match token.kind:
            case "number" | "text" | "null" | "true" | "false":
                self._advance()
                return Literal(token.position, token.value)
            case "name":
                self._advance()
                if self._takes("("):
                    return Call(token.position, token.value, self._sequence(")", self._argument))
                return Name(token.position, token.value)
            case "(":
                return self._grouped()
            case "[":
                return self._list()
            case "{":
                return self._object()
            case _:
                raise self._unexpected("a value")

    def _grouped(self) -> Node:
        self._advance()
        node = self.expression()
        self._expect(")", "')'")
        return node

    def _list(self) -> Node:
        position = self._advance().position
        return ListOf(position, self._sequence("]", self.expression))

    def _object(self) -> Node:
        position = self._advance().position
        entries: list[tuple[str, Node]] = []
        while not self._takes("}"):
            if entries:
                self._expect(",", "',' or '}'")
            entries.append(self._entry())
        return ObjectOf(position, tuple(entries))

    def _entry(self) -> tuple[str, Node]:
        key = self.token
        if key.kind not in ("name", "text") and key.kind not in WORDS:
            raise self._unexpected("a key: a name or a text")
        self._advance()
        self._expect(":", "':' behind the key")
        word = key.value if key.kind == "text" else self.lexer.text[key.position : key.end]
        return word, self.expression()

    def _argument(self) -> Node:
        position = self.token.position
        if names := self._rule_names():
            self._expect("=>", "'=>'")
            return Rule(position, names, self.expression())
        return self.expression()

    def _rule_names(self) -> tuple[str, ...]:
        """The names before the arrow of a rule, `x` or `(x, y)`; none where another expression begins."""
        if self.token.kind == "name" and self.lexer.is_before_arrow():
            return (self._advance().value,)
        if self.token.kind != "(" or not self.lexer.is_before_two_names_and_arrow():
            return ()
        self._advance()
        first = self._expect("name", "a name").value
        self._expect(",", "','")
        second = self._expect("name", "a name").value
        self._expect(")", "')'")
        if first == second:
            raise self._unexpected(f"another name than {first!r} for the second value")
        return (first, second)

    def _sequence(self, closing: str, part: Part) -> tuple[Node, ...]:
        parts: list[Node] = []
        while not self._takes(closing):
            if parts:
                self._expect(",", f"',' or '{closing}'")
            parts.append(part())
        return tuple(parts)

    def _enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(f"nested deeper than {MAX_DEPTH} levels; split it", self.token.position)

    def _advance(self) -> Token:
        token = self.token
        self.token = self.lexer.next()
        return token

    def _takes(self, kind: str) -> bool:
        if self.token.kind != kind:
            return False
        self._advance()
        return True

    def _expect(self, kind: str, wanted: str) -> Token:
        if self.token.kind != kind:
            raise self._unexpected(wanted)
        return self._advance()

    def _unexpected(self, wanted: str) -> ExpressionError:
        token = self.token
        if token.kind == "end":
            return ExpressionError(f"expected {wanted}, but the expression ends", token.position)
        found = self.lexer.text[token.position : token.end][:_LONGEST_SHOWN]
        return ExpressionError(f"expected {wanted}, found {found!r}", token.position)

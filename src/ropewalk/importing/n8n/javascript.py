"""The part of JavaScript that expressions of n8n are written in, read into a tree.

Only expressions are read: names, literals, lookups, calls, operators, `a ? b : c` and arrow functions of one line. What
else there is raises `Untranslatable`, and the node that has it is left to its author.
"""

import re
from typing import Any, Final, TypeAlias

from msgspec import Struct

LONGEST: Final = 4_096
DEEPEST: Final = 40


class Untranslatable(Exception):
    """Something has no equal here; the message says what."""


class Literal(Struct, frozen=True):
    value: Any


class Name(Struct, frozen=True):
    name: str


class Member(Struct, frozen=True):
    """`of.name`, or `of[key]`."""

    of: "Tree"
    key: "Tree"


class Call(Struct, frozen=True):
    function: "Tree"
    arguments: "tuple[Tree, ...]"


class New(Struct, frozen=True):
    name: str
    arguments: "tuple[Tree, ...]"


class Unary(Struct, frozen=True):
    operator: str
    operand: "Tree"


class Binary(Struct, frozen=True):
    operator: str
    left: "Tree"
    right: "Tree"


class Choice(Struct, frozen=True):
    condition: "Tree"
    then: "Tree"
    other: "Tree"


class Arrow(Struct, frozen=True):
    names: tuple[str, ...]
    body: "Tree"


class Items(Struct, frozen=True):
    items: "tuple[Tree, ...]"


class Entries(Struct, frozen=True):
    entries: "tuple[tuple[str, Tree], ...]"


class Regex(Struct, frozen=True):
    """A regular expression between slashes."""

    pattern: str
    flags: str


class Text(Struct, frozen=True):
    """A text between back quotes: parts that are texts, and parts that are filled in."""

    parts: "tuple[str | Tree, ...]"


Tree: TypeAlias = (
    Literal | Name | Member | Call | New | Unary | Binary | Choice | Arrow | Items | Entries | Regex | Text
)  # fmt: skip

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<number>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<template>`(?:[^`\\]|\\.)*`)
    |(?P<sign>===|!==|=>|\?\.|\?\?|&&|\|\||==|!=|<=|>=|\.\.\.|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_REGEX = re.compile(r"/((?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/([a-z]*)")
_ORDER: Final[dict[str, int]] = {
    "??": 1, "||": 2, "&&": 3, "==": 4, "!=": 4, "===": 4, "!==": 4, "<": 5, ">": 5, "<=": 5, ">=": 5,
    "+": 6, "-": 6, "*": 7, "/": 7, "%": 7,
}  # fmt: skip
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "undefined": None}
_Token: TypeAlias = tuple[str, str]


def parse(source: str) -> Tree:
    """The tree of one expression."""
    if len(source) > LONGEST:
        raise Untranslatable(f"an expression has more than {LONGEST} characters")
    return _Parser(_tokens(source)).whole()


def _tokens(source: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(source):
        match = _REGEX.match(source, at) if _may_be_regex(found) else None
        if match is not None:
            found.append(("regex", match[0]))
            at = match.end()
            continue
        match = _TOKEN.match(source, at)
        if match is None:
            raise Untranslatable(f"{source[at]!r} is not understood")
        if match.lastgroup is not None:
            found.append((match.lastgroup, match[0]))
        at = match.end()
    return found


def _may_be_regex(before: list[_Token]) -> bool:
    """Whether a slash begins a regular expression here, and divides nothing."""
    return not before or (before[-1][0] == "sign" and before[-1][1] not in (")", "]", "}"))


def unescaped(text: str) -> str:
    """The text without its back slashes."""
    return re.sub(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", _escaped, text, flags=re.DOTALL)


def _escaped(found: "re.Match[str]") -> str:
    word = found[1]
    return chr(int(word[1:], 16)) if len(word) > 1 else _ESCAPES.get(word, word)


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Tree:
        tree = self.expression()
        if self._at < len(self._tokens):
            raise Untranslatable(f"{self._tokens[self._at][1][:20]!r} is not understood where it stands")
        return tree

    def expression(self) -> Tree:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Untranslatable("an expression is nested too deep")
        tree = self._arrow() or self._choice()
        self._depth -= 1
        return tree

    # Tokens

    def _peek(self, sign: str, ahead: int = 0) -> bool:
        at = self._at + ahead
        return at < len(self._tokens) and self._tokens[at] == ("sign", sign)

    def _takes(self, sign: str) -> bool:
        is_there = self._peek(sign)
        self._at += is_there
        return is_there

    def _next(self) -> _Token:
        if self._at >= len(self._tokens):
            raise Untranslatable("an expression ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _need(self, sign: str) -> None:
        if self._next() != ("sign", sign):
            raise Untranslatable(f"{sign!r} is missing")

    # What expressions are made of

    def _arrow(self) -> Tree | None:
        """`x => …` or `(a, b) => …`, if one begins here."""
        start, names = self._at, self._names()
        if names is None or not self._takes("=>"):
            self._at = start
            return None
        if self._peek("{"):
            raise Untranslatable("a function has several lines")
        return Arrow(names, self.expression())

    def _names(self) -> tuple[str, ...] | None:
        if self._at < len(self._tokens) and self._tokens[self._at][0] == "name":
            return (self._next()[1],)
        if not self._takes("("):
            return None
        names: list[str] = []
        while self._at < len(self._tokens) and self._tokens[self._at][0] == "name":
            names.append(self._next()[1])
            if not self._takes(","):
                break
        return tuple(names) if self._takes(")") else None

    def _choice(self) -> Tree:
        condition = self._binary(1)
        if not self._takes("?"):
            return condition
        then = self.expression()
        self._need(":")
        return Choice(condition, then, self.expression())

    def _binary(self, least: int) -> Tree:
        left = self._unary()
        while self._at < len(self._tokens):
            kind, sign = self._tokens[self._at]
            order = _ORDER.get(sign, 0) if kind == "sign" else 0
            if order < least:
                break
            self._at += 1
            left = Binary(sign, left, self._binary(order + 1))
        return left

    def _unary(self) -> Tree:
        signs: list[str] = []
        while any(self._peek(sign) for sign in "!-+"):
            signs.append(self._next()[1])
        tree = self._lookups(self._primary())
        for sign in reversed(signs[-DEEPEST:]):
            tree = Unary(sign, tree)
        return tree

    def _lookups(self, tree: Tree) -> Tree:
        while True:
            if self._takes("."):
                tree = Member(tree, Literal(self._word()))
            elif self._takes("?."):
                tree = self._optional(tree)
            elif self._takes("["):
                tree = Member(tree, self.expression())
                self._need("]")
            elif self._takes("("):
                tree = Call(tree, self._list(")"))
            else:
                return tree

    def _optional(self, tree: Tree) -> Tree:
        if self._takes("["):
            tree = Member(tree, self.expression())
            self._need("]")
            return tree
        return Member(tree, Literal(self._word()))

    def _word(self) -> str:
        kind, text = self._next()
        if kind != "name":
            raise Untranslatable(f"{text[:20]!r} is not understood where it stands")
        return text

    def _list(self, end: str) -> tuple[Tree, ...]:
        items: list[Tree] = []
        while not self._takes(end):
            items.append(self.expression())
            if not self._peek(end):
                self._need(",")
        return tuple(items)

    def _primary(self) -> Tree:
        kind, text = self._next()
        match kind, text:
            case "number", _:
                return Literal(float(text) if any(each in text for each in ".eE") else int(text))
            case "text", _:
                return Literal(unescaped(text[1:-1]))
            case "template", _:
                return _template(text[1:-1])
            case "regex", _:
                pattern, _, flags = text[1:].rpartition("/")
                return Regex(pattern.replace("\\/", "/"), flags)
            case "name", "new":
                name = self._word()
                self._need("(")
                return New(name, self._list(")"))
            case "name", _:
                return Literal(_WORDS[text]) if text in _WORDS else Name(text)
            case "sign", "(":
                tree = self.expression()
                self._need(")")
                return tree
            case "sign", "[":
                return Items(self._list("]"))
            case "sign", "{":
                return self._entries()
            case _:
                raise Untranslatable(f"{text[:20]!r} is not understood where it stands")

    def _entries(self) -> Tree:
        entries: list[tuple[str, Tree]] = []
        while not self._takes("}"):
            kind, text = self._next()
            if kind not in ("name", "text", "number"):
                raise Untranslatable("an object is made of more than names and values")
            key = unescaped(text[1:-1]) if kind == "text" else text
            value: Tree = self.expression() if self._takes(":") else Name(key)
            entries.append((key, value))
            if not self._peek("}"):
                self._need(",")
        return Entries(tuple(entries))


def _template(text: str) -> Tree:
    parts: list[str | Tree] = []
    at = 0
    for found in re.finditer(r"\$\{([^{}]*)\}", text):
        parts += [unescaped(text[at : found.start()]), parse(found[1])]
        at = found.end()
    rest = text[at:]
    if "${" in rest:
        raise Untranslatable("a text between back quotes holds braces of its own")
    return Text((*parts, unescaped(rest)))

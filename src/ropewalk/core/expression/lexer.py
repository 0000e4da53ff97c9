"""Cuts source text into tokens, one at a time, so that the parser decides where an expression ends."""

import re
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.expression.faults import ExpressionError
from ropewalk.core.expression.run import MAX_FLOAT, MAX_INTEGER, MAX_SOURCE

WORDS: Final = ("null", "true", "false", "and", "or", "not", "in")
_CONSTANTS: Final = {"null": None, "true": True, "false": False}
_HINTS: Final = {"=": "==", "&&": "and", "||": "or", "!": "not", "===": "==", "!==": "!=", "**": "*", "//": "/"}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}

_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(
    r"""(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<name>[^\W\d]\w*)
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<foreign>===|!==|&&|\|\||\*\*|//|=(?![=>])|!(?!=))
      | (?P<mark>\?\?|\?:|==|!=|<=|>=|=>|[-+*/%<>?:.,()\[\]{}|])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_ARROW = re.compile(r"[ \t\r\n]*=>")
_TWO_BEFORE_ARROW = re.compile(r"\s*[^\W\d]\w*\s*,\s*[^\W\d]\w*\s*\)\s*=>")


class Token(Struct, frozen=True):
    """A mark, word, name, text or number; `kind` is the mark or word itself, or what sort of thing it is."""

    kind: str
    value: Any
    position: int
    end: int


class Lexer:
    """Reads tokens of one expression in `text` from `start` on, never looking past the longest an expression may be."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.start = start
        self.limit = min(len(text), start + MAX_SOURCE)
        self.offset = start

    def next(self) -> Token:
        """The next token; at the end of the text one of kind `end`."""
        position = _SPACE.match(self.text, self.offset, self.limit).end()  # type: ignore[union-attr]  # matches nothing too
        if position >= self.limit:
            return self._end(position)
        found = _TOKEN.match(self.text, position, self.limit)
        if found is None:
            raise self._unreadable(position)
        self.offset = found.end()
        return self._token(str(found.lastgroup), found.group(), position)

    def is_before_arrow(self) -> bool:
        """Whether `=>` follows what was read last."""
        return _ARROW.match(self.text, self.offset, self.limit) is not None

    def is_before_two_names_and_arrow(self) -> bool:
        """Whether `x, y) =>` follows what was read last."""
        return _TWO_BEFORE_ARROW.match(self.text, self.offset, self.limit) is not None

    def _end(self, position: int) -> Token:
        if self.limit < len(self.text):
            raise ExpressionError(f"the expression is longer than {MAX_SOURCE:,} characters; split it", self.start)
        return Token("end", None, position, position)

    def _token(self, group: str, found: str, position: int) -> Token:
        match group:
            case "number":
                return Token("number", self._number(found, position), position, self.offset)
            case "text":
                return Token("text", _unescaped(found, position), position, self.offset)
            case "name":
                return Token(found if found in WORDS else "name", _CONSTANTS.get(found, found), position, self.offset)
            case "foreign":
                raise ExpressionError(f"there is no {found!r} here; write {_HINTS[found]!r}", position)
            case _:
                return Token(found, found, position, self.offset)

    def _number(self, found: str, position: int) -> int | float:
        if self.text[self.offset : self.offset + 1].isidentifier():
            raise ExpressionError("a number runs into a name; put a space or an operator between them", position)
        value = int(found) if found.isdigit() else float(found)
        if value > (MAX_INTEGER if isinstance(value, int) else MAX_FLOAT):
            raise ExpressionError("the number is too large; integers go up to 2**53", position)
        return value

    def _unreadable(self, position: int) -> ExpressionError:
        sign = self.text[position]
        if sign in "\"'":
            return ExpressionError(f"the text that starts here is not closed; end it with {sign}", position)
        return ExpressionError(f"cannot read {sign!a} here; if it is text, put it in quotes", position)


def _unescaped(literal: str, position: int) -> str:
    body = literal[1:-1]
    if "\\" in body:
        body = _ESCAPE.sub(lambda escape: _character(escape[1], position + 1 + escape.start()), body)
    return _paired(body, position) if _SURROGATE.search(body) else body


def _character(escape: str, position: int) -> str:
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    if escape not in _ESCAPES:
        raise ExpressionError(f"unknown escape \\{ascii(escape)[1:-1]}; for a backslash write two", position)
    return _ESCAPES[escape]


def _paired(text: str, position: int) -> str:
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ExpressionError("the text holds half a character (a lone surrogate); remove it", position) from None

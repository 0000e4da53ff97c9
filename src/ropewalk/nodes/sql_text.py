"""SQL as its author wrote it, taken apart: where its parameters are, and whether it is one statement.

The text of a statement is the author's alone: values come in as parameters, and no driver is ever given a text that
has a user's value in it. Quoted texts, names and comments are left as they are.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

LONGEST_TEXT = 100_000
# The node makes the one transaction itself; the others are talks of a driver that the node does not hold.
NOT_OURS = {
    **dict.fromkeys(
        ("begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"),
        "the statements of a node are one transaction already",
    ),
    **dict.fromkeys(("copy", "load", "listen", "unlisten", "prepare", "deallocate"), "no node can carry that out"),
    **dict.fromkeys(("attach", "detach"), "a node works on the database of its credential alone"),
}

_COMMENT = r"--[^\n]*|/\*.*?\*/"
_DOLLARS = r"\$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?(tag)(?P=tag))\$"
_NAMES = r'"(?:[^"]|"")*"|`[^`]*`'
_HOLDERS = r"(?P<at>\$\d+)|::|:=|(?<![\w\]:]):(?P<name>[A-Za-z_]\w*)|(?P<end>;)|(?P<open>['\"`]|/\*)"
_STANDARD = re.compile(
    rf"(?P<skip>{_COMMENT}|(?<!\w)[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|{_DOLLARS}|{_NAMES})|{_HOLDERS}", re.S
)
# MySQL ends a text with a quote that has no backslash before it, and has comments that begin with #.
_MYSQL = re.compile(
    rf"(?P<skip>{_COMMENT}|\#[^\n]*|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`)|{_HOLDERS}", re.S
)
_BLANK = re.compile(rf"(?:\s+|{_COMMENT})*", re.S)
_WORD = re.compile(r"\w+")

Values = Sequence[Any] | Mapping[str, Any]


class Statement(Struct, frozen=True):
    """One statement: its first word, its text around the parameters, and which parameter stands in each gap."""

    verb: str
    parts: tuple[str, ...]
    holders: tuple[int | str, ...]

    def numbered(self, mark: str) -> str:
        """The text with parameters like `$1`; equal ones have the same number."""
        order = self.order()
        return self.joined([f"{mark}{order.index(holder) + 1}" for holder in self.holders])

    def joined(self, fillings: Sequence[str]) -> str:
        """The text with something in each gap."""
        return "".join(map("".join, zip(self.parts, (*fillings, ""), strict=True)))

    def order(self) -> list[int | str]:
        """The parameters in the order of their numbers."""
        return list(dict.fromkeys(self.holders))

    def bound(self, values: Values) -> dict[int | str, Any]:
        """The value of each parameter; ValueError if one is missing, or one is given that the text has no place for."""
        given: dict[Any, Any] = dict(values) if isinstance(values, Mapping) else dict(enumerate(values, 1))
        for holder in self.order():
            if holder not in given:
                raise ValueError(f"the statement has the parameter {_shown(holder)}, and no value is given for it")
        for holder in given:
            if holder not in self.holders:
                raise ValueError(f"a value is given for {_shown(holder)}, which the statement does not have")
        return {holder: given[holder] for holder in self.order()}


def _shown(holder: int | str) -> str:
    return f"${holder}" if isinstance(holder, int) else f":{holder}"


def parsed(text: str, *, is_mysql: bool = False) -> Statement:
    """The statement; ValueError for none, for several, and for one that no node can carry out."""
    statement, rest = _split(text, _MYSQL if is_mysql else _STANDARD)
    if not statement.verb:
        raise ValueError("is no SQL statement")
    if _BLANK.fullmatch(rest) is None:
        raise ValueError("has several statements; give each in statements, which are one transaction")
    if reason := NOT_OURS.get(statement.verb):
        raise ValueError(f"begins with {statement.verb}: {reason}")
    if len({type(holder) for holder in statement.holders}) > 1:
        raise ValueError("has parameters like $1 and like :name; use one way alone")
    return statement


def check_text(text: str) -> str:
    """The text, if it is a statement for one of the databases; ValueError if it is for none."""
    try:
        parsed(text)
    except ValueError as problem:
        try:
            parsed(text, is_mysql=True)
        except ValueError:
            raise problem from None
    return text


def _split(text: str, tokens: re.Pattern[str]) -> tuple[Statement, str]:
    """The first statement, and what stands behind its semicolon."""
    parts: list[str] = []
    holders: list[int | str] = []
    begun = 0
    rest = ""
    end = len(text)
    for token in tokens.finditer(text):
        if token["open"]:
            raise ValueError(f"has a {token['open']} that is never closed")
        if token["end"]:
            end, rest = token.start(), text[token.end() :]
            break
        if holder := token["at"] or token["name"]:
            parts.append(text[begun : token.start()])
            holders.append(int(holder[1:]) if token["at"] else holder)
            begun = token.end()
    parts.append(text[begun:end])
    blank = _BLANK.match(text)
    word = _WORD.match(text, blank.end() if blank else 0)
    return Statement(word[0].lower() if word else "", tuple(parts), tuple(holders)), rest


def quoted(name: str, quote: str) -> str:
    """A name of a table or column as the text of a statement has it."""
    return f"{quote}{name.replace(quote, quote * 2)}{quote}"

"""Parts that expressions are put together of."""

import re
from typing import Any

from msgspec import Struct

from ropewalk.importing.n8n.javascript import Call, Literal, Member, Name, Tree, Untranslatable
from ropewalk.importing.n8n.methods import LUXON

_WRITTEN = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


class Piece(Struct, frozen=True):
    """A part of an expression of ours; an atom needs no parentheses."""

    text: str
    kind: str = "any"
    is_atom: bool = True

    @property
    def inside(self) -> str:
        return self.text if self.is_atom else f"({self.text})"


class Written(Struct, frozen=True):
    """What stands between braces."""

    source: str


def parts_of(text: str) -> list[str | Written]:
    """Texts and expressions by turns; without white space around a single expression."""
    parts: list[str | Written] = []
    at = 0
    for found in _WRITTEN.finditer(text):
        parts += [text[at : found.start()], Written(found[1])]
        at = found.end()
    parts.append(text[at:])
    kept = [each for each in parts if each != ""]
    sources = [each for each in kept if not isinstance(each, str)]
    is_single = len(sources) == 1 and all(not each.strip() for each in kept if isinstance(each, str))
    return list(sources) if is_single else kept


def joined(sign: str, left: Piece, right: Piece) -> Piece:
    """Two sides of `&&` or `||`: what JavaScript gives is one of the two."""
    if (left.kind, right.kind) == ("boolean", "boolean"):
        return Piece(f"{left.inside} {'and' if sign == '&&' else 'or'} {right.inside}", "boolean", is_atom=False)
    if sign == "||":
        return Piece(f"{left.inside} ?: {right.inside}", is_atom=False)
    return Piece(f"{left.inside} ? {right.inside} : {left.inside}", is_atom=False)


def kind_of(value: Any) -> str:
    """What a literal is."""
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case _:
            return "any"


def steps_of(tree: Tree) -> list[Any]:
    """`$('A').item.json` as steps: the name, calls without arguments as `name()`, and keys."""
    match tree:
        case Name():
            return [tree.name]
        case Member(key=Literal(value=key)):
            return [*steps, key] if (steps := steps_of(tree.of)) else []
        case Call(function=Name(name=("$" | "$items") as name), arguments=(Literal(value=str() as node),)):
            return [f"{name}()", node]
        case Call(function=Member(key=Literal(value=key)) as function, arguments=()):
            return [*steps, f"{key}()"] if (steps := steps_of(function.of)) else []
        case _:
            return []


def dotted(tree: Tree) -> str:
    """`a` or `a.b` as text; nothing if it is neither."""
    match tree:
        case Name():
            return tree.name
        case Member(of=Name(name=of), key=Literal(value=str() as key)):
            return f"{of}.{key}"
        case _:
            return ""


def pattern_of(luxon: str) -> str:
    """A pattern of dates in our signs."""

    def part(found: "re.Match[str]") -> str:
        word = found[0]
        if not word[0].isalpha():
            return "%%" if word == "%" else word
        if word not in LUXON:
            raise Untranslatable(f"the part {word} of a pattern of dates has no equal here")
        return LUXON[word]

    return re.sub(r"([A-Za-z])\1*|.", part, luxon, flags=re.DOTALL)

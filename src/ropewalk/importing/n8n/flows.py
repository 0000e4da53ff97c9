"""What goes from node to node.

A node of n8n gets a list of items and does its work for each. Here a node gets what its expressions name. Where it is
known that there is one item (what a webhook gave, say), that item is the value. Where there may be many, the value is
the list of them, and a node that works on each becomes a map over it.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset({"and", "or", "not", "in", "null", "true", "false"})


class Flow(Struct, frozen=True):
    """Where the items of an output are: `value` is the expression of the one item, or of the list of many.

    `each` leads from an element of the list to what n8n calls its `json`. Lists of one `lineage` have their items in
    the same places. `guard` is true if the way to them was taken, where the value alone does not tell.
    `file` is the file that comes with an item, if it is known: of one, the expression; of many, what leads to it from
    an element.
    """

    value: str
    is_many: bool = False
    each: str = ""
    lineage: str = ""
    guard: str = ""
    file: str | None = None

    def taken(self, written: str) -> str:
        """An expression of these items; null if the way to them was not taken."""
        return f"({self.guard} ? {written} : null)" if self.guard else written

    def list_or_null(self) -> str:
        """The list of items; null if there was none, since the node before was skipped."""
        if self.is_many:
            return self.taken(self.items())
        return self.taken(self.items()) if self.guard else f"({self.value} == null ? null : [{self.value}])"

    def items(self) -> str:
        """The list of what n8n calls `json`, of one item too."""
        if not self.is_many:
            return f"[{self.value}]"
        return f"map({self.value}, x => x{self.each})" if self.each else self.value

    def at(self, place: str) -> str:
        """The item in one place."""
        return f"{self.value}[{place}]{self.each}" if self.is_many else self.value


class Scope(Struct, frozen=True):
    """What the names of an expression stand for, where it stands."""

    json: str
    nodes: Mapping[str, Flow]
    index: str | None = "0"
    lineage: str = ""
    before: str = ""


def quoted(text: str) -> str:
    """A text as a literal of our language."""
    return json.dumps(text, ensure_ascii=True)


def literal(value: Any) -> str:
    """A JSON value as a literal of our language."""
    match value:
        case dict():
            return "{" + ", ".join(f"{quoted(str(key))}: {literal(each)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(literal, value)) + "]"
        case str():
            return quoted(value)
        case _:
            return json.dumps(value)


def lookup(of: str, key: str) -> str:
    """A value inside another."""
    is_plain = _PLAIN.fullmatch(key) and key not in _RESERVED
    return f"{of}.{key}" if is_plain else f"{of}[{quoted(key)}]"


def path(of: str, dotted: str) -> str:
    """A value by a path of n8n: `a.b[0].c`, or `a["x y"]`."""
    for name, place, key in re.findall(r"""([^.\[\]]+)|\[([0-9]+)\]|\[["']([^"']*)["']\]""", dotted):
        of = f"{of}[{place}]" if place else lookup(of, name or key)
    return of


def braces(expression: str) -> str:
    """An expression as a text of a document."""
    return "{{ " + expression + " }}"


def escaped(text: str) -> str:
    """A text of a document that holds no expression, though it may look as if it did."""
    return text.replace("{{", '{{ "{{" }}')

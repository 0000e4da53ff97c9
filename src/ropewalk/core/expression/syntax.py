"""What the parser hands to the compiler. Chains are flat, so the tree is never deeper than the source is nested."""

from typing import Any

from msgspec import Struct


class Node(Struct, frozen=True):
    """A piece of an expression and the place where it stands."""

    position: int


class Literal(Node, frozen=True):
    """`null`, `true`, `12.5`, `"text"`."""

    value: Any


class Name(Node, frozen=True):
    """A root such as `input`, or a name bound by a rule."""

    name: str


class Lookup(Node, frozen=True):
    """`base.key[key]…`, all keys of one chain together."""

    base: Node
    keys: tuple[Node, ...]


class ListOf(Node, frozen=True):
    """`[a, b]`."""

    items: tuple[Node, ...]


class ObjectOf(Node, frozen=True):
    """`{a: 1, "b c": 2}`."""

    entries: tuple[tuple[str, Node], ...]


class Prefix(Node, frozen=True):
    """`not a`, `-a`."""

    operator: str
    operand: Node


class Chain(Node, frozen=True):
    """Operands of one precedence, joined from left to right."""

    first: Node
    rest: tuple["Link", ...]


class Link(Node, frozen=True):
    """One further operand of a chain; its position is the operator's."""

    operator: str
    operand: Node


class Choice(Node, frozen=True):
    """`a ? b : c ? d : e`: the value behind the first condition that holds."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node


class Rule(Node, frozen=True):
    """`x => body` or `(x, y) => body`, only ever an argument."""

    names: tuple[str, ...]
    body: Node


class Call(Node, frozen=True):
    """`name(argument, …)`."""

    name: str
    arguments: tuple[Node, ...]


class Piped(Node, frozen=True):
    """The first argument of a piped call: the value that came down the pipe."""


class Pipe(Node, frozen=True):
    """`first | stage | stage`."""

    first: Node
    stages: tuple[Call, ...]

"""What a definition must know about a node type to check the nodes that use it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ropewalk.core.errors import Problem
from ropewalk.core.reach import Reached

ARRIVED_PORT = "arrived"
"""What a wait takes that was answered, unless its type has ports of its own for the answer."""
EXPIRED_PORT = "expired"
EXHAUSTED_PORT = "exhausted"
"""What a node takes that was repeated as often as it may be, if an edge names it."""


CATEGORIES = ("data", "control", "wait", "reach", "code", "custom")
"""The groups that palette and reference have."""


class About(Struct, frozen=True, kw_only=True):
    """What palette and reference tell people of a node type.

    `output` is the JSON Schema of what its nodes hand on. `ports` says when each port is taken; of a type whose
    parameters name the ports it has a word for these, in angle brackets.
    """

    title: str = ""
    category: str = "custom"
    icon: str = "box"
    keywords: tuple[str, ...] = ()
    output: Mapping[str, Any] = {}
    ports: Mapping[str, str] = {}


class NodeTypeInfo(Struct, frozen=True):
    """A node type as an author sees it; `ports` is None when the node's parameters decide their names.

    Then `ports_with` tells them from the parameters as written, or None where only a run will show them.
    `expressions` are parameters that are expressions without braces, evaluated later in the node's own scope.
    `problems_with` knows rules that no schema tells; it is asked about parameters that fit it and hold no expression.
    `problems_in` is asked about those of the parameters that hold none, by name.
    `literal` are parameters that hold no expression: see `literals.py`. `reaches` tells which parameters name something
    beyond the workflow. `credentials` are the types of credentials that its nodes take, by slot. `retry` is that of
    nodes which say none.
    """

    name: str
    ports: tuple[str, ...] | None = ()
    parameters: dict[str, Any] = {}
    is_wait: bool = False
    expressions: tuple[str, ...] = ()
    summary: str = ""
    ports_with: Callable[[Mapping[str, Any]], tuple[str, ...] | None] | None = None
    problems_with: Callable[[Mapping[str, Any]], Sequence[Problem]] | None = None
    problems_in: Callable[[Mapping[str, Any]], Sequence[Problem]] | None = None
    literal: tuple[str, ...] = ()
    reaches: Mapping[str, Reached] = {}
    credentials: Mapping[str, tuple[str, ...]] = {}
    retry: Mapping[str, Any] | None = None
    about: About = About()


NodeTypes = Mapping[str, NodeTypeInfo]

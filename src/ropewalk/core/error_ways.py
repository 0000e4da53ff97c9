"""The error edges of a node that ask which failure it is: tried in their order, and the first that fits is taken.

Edges with the same `when`, or without one, are one *way*: they are taken together.
"""

from typing import Any

from msgspec import Struct

from ropewalk.core.definition.topology import ERROR_PORT, port_of
from ropewalk.core.expression import Template, compile_template


class ErrorWay(Struct, frozen=True):
    """One way on from a failure: its first edge in the document, its port, and what must be true of the error."""

    edge: int
    port: str
    when: Template | None


Ways = dict[int, tuple[ErrorWay, ...]]


def error_ways(edges: list[dict[str, Any]], index: dict[str, int]) -> Ways:
    """The ways of each node that has an edge with `when`; no other node has to choose."""
    sources = dict.fromkeys([edge["from"] for edge in edges if "when" in edge])
    if not sources:
        return {}
    found: dict[int, dict[str, ErrorWay]] = {}
    for place, edge in enumerate(edges):
        if edge["from"] in sources and edge.get("on") == ERROR_PORT:
            known, port = found.setdefault(index[edge["from"]], {}), port_of(edge) or ERROR_PORT
            if port not in known:
                known[port] = ErrorWay(place, port, compile_template(edge["when"]) if "when" in edge else None)
    return {node: tuple(ways.values()) for node, ways in found.items()}

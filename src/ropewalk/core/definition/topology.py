"""The bare graph of a workflow: integer nodes in document order, edges as adjacency tuples.

Everything here is linear in nodes and edges (the order adds a heap's logarithm) and iterative, so that a graph of
100,000 nodes is an ordinary one, in any shape.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import repeat
from typing import Any

ERROR_PORT = "error"
_WHEN = f"{ERROR_PORT}\0"
"""How the port of an error edge with `when` begins; no port of a document has such a character."""

Edge = tuple[int, int, str | None]
"""Source, target and the port that decides it."""

_NO_PORTS: frozenset[str] = frozenset()


def port_of(edge: Mapping[str, Any]) -> str | None:
    """The port an edge of a document is decided by: error edges with different `when` have one each."""
    when = edge.get("when")
    return edge.get("on") if when is None else _WHEN + when


def is_error_port(port: str | None) -> bool:
    """Whether an edge of this port is taken by failures only."""
    return port is not None and (port == ERROR_PORT or port.startswith(_WHEN))


class Topology:
    """Adjacency, in-degrees and an order of the nodes; the order leaves nodes out exactly when there is a cycle."""

    __slots__ = ("_predecessors", "has_error_edge", "indegree", "order", "port_names", "ports", "roots", "targets")

    def __init__(self, size: int, edges: Iterable[Edge]) -> None:
        self.targets: list[tuple[int, ...]] = [()] * size
        self.ports: list[tuple[str | None, ...]] = [()] * size
        self.port_names: list[frozenset[str]] = [_NO_PORTS] * size
        self.has_error_edge = bytearray(size)
        self.indegree: list[int] = [0] * size
        self._predecessors: list[tuple[int, ...]] | None = None
        self._connect(edges)
        self.roots = [node for node, degree in enumerate(self.indegree) if not degree]
        self.order = _ordered(self.targets, self.indegree, self.roots)

    def _connect(self, edges: Iterable[Edge]) -> None:
        targets: list[list[int]] = [[] for _ in repeat(None, len(self.targets))]
        ports: dict[int, list[str | None]] = {}
        indegree = self.indegree
        for source, target, port in edges:
            if port is not None and source not in ports:
                ports[source] = [None] * len(targets[source])
            if source in ports:
                ports[source].append(port)
            targets[source].append(target)
            indegree[target] += 1
        self.targets[:] = map(tuple, targets)
        self._name_ports(ports)

    def _name_ports(self, ports: dict[int, list[str | None]]) -> None:
        # Most nodes name no port: they share one tuple of None per out-degree.
        unnamed: dict[int, tuple[str | None, ...]] = {}
        for node, targets in enumerate(self.targets):
            self.ports[node] = unnamed.setdefault(len(targets), (None,) * len(targets))
        for node, names in ports.items():
            self.ports[node] = tuple(names)
            self.port_names[node] = frozenset(name for name in names if name is not None)
            self.has_error_edge[node] = any(map(is_error_port, self.port_names[node]))

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def is_acyclic(self) -> bool:
        """Whether every node has its place in the order."""
        return len(self.order) == len(self.targets)

    @property
    def sinks(self) -> tuple[int, ...]:
        """Nodes nothing follows when they succeed: no edge leaves them but for errors. In document order."""
        return tuple(node for node, ports in enumerate(self.ports) if all(map(is_error_port, ports)))

    def predecessors(self, node: int) -> tuple[int, ...]:
        """The sources of the edges into a node, each once, in document order."""
        if self._predecessors is None:
            self._predecessors = _reversed(self.targets)
        return self._predecessors[node]

    def cycle(self) -> list[int]:
        """The nodes of one cycle, each before the next, the first of the document first; or nothing."""
        if self.is_acyclic:
            return []
        return _cycle_among(self.targets, self.order)


def _ordered(targets: Sequence[tuple[int, ...]], indegree: Sequence[int], roots: Sequence[int]) -> list[int]:
    """Sources before targets; among nodes that could come next, the first in the document."""
    missing = list(indegree)
    ready = list(roots)
    heapify(ready)
    order = []
    while ready:
        node = heappop(ready)
        order.append(node)
        for target in targets[node]:
            missing[target] -= 1
            if not missing[target]:
                heappush(ready, target)
    return order


def _reversed(targets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    sources: list[dict[int, None]] = [{} for _ in repeat(None, len(targets))]
    for source, ends in enumerate(targets):
        for target in ends:
            sources[target][source] = None
    return list(map(tuple, sources))


def _cycle_among(targets: Sequence[tuple[int, ...]], ordered: Sequence[int]) -> list[int]:
    """Walks backwards from a node left out of the order until it meets itself: each has such a predecessor."""
    is_left = bytearray(b"\x01") * len(targets)
    for node in ordered:
        is_left[node] = False
    before = {target: node for node in _marked(is_left) for target in targets[node] if is_left[target]}
    walked: dict[int, int] = {}
    node = next(_marked(is_left))
    while node not in walked:
        walked[node] = len(walked)
        node = before[node]
    cycle = list(walked)[walked[node] :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def _marked(marks: bytearray) -> Iterator[int]:
    return (node for node, mark in enumerate(marks) if mark)

"""Whether what an expression refers to has always run before it.

Knowing every node's ancestors would be quadratic. Only referenced nodes matter, so each of these gets a bit, and the
bits flow along the edges, in blocks of nodes that lie close together in the topological order. A block's pass ends with
the last node that asks: references to near ancestors, in any number, cost one pass over the graph in all, and
references right across it one pass per block.
"""

from collections.abc import Iterable, Iterator, Sequence

from ropewalk.core.definition.topology import Topology

BLOCK = 4_096

Reference = tuple[int, int]
"""The node referred to, and the node that refers to it."""


def not_ancestors(topology: Topology, references: Iterable[Reference]) -> list[Reference]:
    """The references to nodes that are no ancestors of the node that refers to them."""
    position = [0] * len(topology)
    for place, node in enumerate(topology.order):
        position[node] = place
    by_place = sorted(dict.fromkeys(references), key=lambda reference: position[reference[0]])
    wrong = [pair for pair in by_place if position[pair[0]] >= position[pair[1]]]
    possible = [pair for pair in by_place if position[pair[0]] < position[pair[1]]]
    for block in _blocks(possible):
        wrong.extend(_unreached(topology, position, block))
    return wrong


def _blocks(references: Sequence[Reference]) -> Iterator[list[Reference]]:
    """The references in groups that name at most `BLOCK` nodes each."""
    block: list[Reference] = []
    named = 0
    for place, reference in enumerate(references):
        named += not place or reference[0] != references[place - 1][0]
        if named > BLOCK:
            yield block
            block, named = [], 1
        block.append(reference)
    if block:
        yield block


def _unreached(topology: Topology, position: Sequence[int], block: Sequence[Reference]) -> list[Reference]:
    bits: dict[int, int] = {}
    askers: dict[int, list[int]] = {}
    for named, asker in block:
        bits.setdefault(named, 1 << len(bits))
        askers.setdefault(asker, []).append(named)
    last = max(position[asker] for asker in askers)
    wrong: list[Reference] = []
    reached: dict[int, int] = {}
    for node in topology.order[position[block[0][0]] : last + 1]:
        above = reached.pop(node, 0)
        wrong.extend((named, node) for named in askers.get(node, ()) if not above & bits[named])
        if below := above | bits.get(node, 0):
            for target in topology.targets[node]:
                reached[target] = reached.get(target, 0) | below
    return wrong

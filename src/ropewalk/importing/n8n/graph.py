"""The order of the nodes of a workflow of n8n: loops are opened, and what no trigger leads to is left out."""

from collections.abc import Iterable
from heapq import heappop, heappush

from msgspec import Struct

from ropewalk.importing.n8n.reading import Connection, Node, Source

LOOP = "splitInBatches"
_STARTS = ("manualTrigger", "start", "webhook", "cron", "interval", "executeWorkflowTrigger", "stickyNote")


def is_trigger(node: Node) -> bool:
    """Whether n8n starts at this node."""
    return node.kind in _STARTS or node.kind.endswith("Trigger") or node.kind == "emailReadImap"


class Graph(Struct):
    """Nodes in an order in which each comes after those that lead to it, and the connections that are left."""

    order: list[str]
    connections: list[Connection]
    cut: list[Connection]
    """The connections that would lead back."""
    unreached: list[str]
    sub_nodes: dict[str, str]
    """What is no step of its own, and the node it belongs to."""


def graph_of(source: Source) -> Graph:
    nodes = {node.name: node for node in source.nodes}
    main = [each for each in source.connections if each.kind == "main"]
    parts = {each.source: each.target for each in source.connections if each.kind != "main"}
    parts = {name: of for name, of in parts.items() if not any(name in (each.source, each.target) for each in main)}
    steps = [name for name in nodes if name not in parts]
    starts = [name for name in steps if is_trigger(nodes[name])]
    targets = {each.target for each in main}
    is_started = any(nodes[name].kind != "stickyNote" for name in starts)
    roots = starts if is_started else [*starts, *(name for name in steps if name not in targets and name not in starts)]
    order, kept, cut = _walk(roots if is_started or roots else steps, steps, main, all_=not is_started)
    reached = dict.fromkeys(order)
    unreached = [name for name in steps if name not in reached]
    opened = _after_loops(kept, cut, nodes)
    found = _sorted(order, opened)
    if len(found) < len(order):
        # What follows a loop leads into it again: then it follows the node of the loop itself.
        opened, found = kept, _sorted(order, kept)
    return Graph(found, opened, cut, unreached, parts)


def _walk(roots: list[str], steps: list[str], main: list[Connection], *, all_: bool
          ) -> tuple[list[str], list[Connection], list[Connection]]:  # fmt: skip
    """What is reached from the roots, and which connections lead back to where they came from."""
    leaving: dict[str, list[Connection]] = {}
    for each in main:
        leaving.setdefault(each.source, []).append(each)
    state: dict[str, int] = {}
    cut: dict[Connection, None] = {}
    for root in [*roots, *(steps if all_ else ())]:
        stack: list[tuple[str, Iterable[Connection]]] = []
        if root not in state:
            state[root] = 1
            stack.append((root, iter(leaving.get(root, ()))))
        while stack:
            name, rest = stack[-1]
            following = next(iter(rest), None)
            if following is None:
                state[name] = 2
                stack.pop()
            elif state.get(following.target) == 1:
                cut[following] = None
            elif following.target not in state:
                state[following.target] = 1
                stack.append((following.target, iter(leaving.get(following.target, ()))))
    kept = [each for each in main if each.source in state and each.target in state and each not in cut]
    return [name for name in steps if name in state], kept, list(cut)


def _after_loops(kept: list[Connection], cut: list[Connection], nodes: dict[str, Node]) -> list[Connection]:
    """What follows a loop follows the last nodes of its body."""
    made: dict[Connection, None] = {}
    for each in kept:
        node = nodes[each.source]
        done = 0 if node.version >= 3 else 1
        lasts = [back for back in cut if back.target == each.source]
        if node.kind == LOOP and not node.is_disabled and each.output == done and lasts:
            for back in lasts:
                made[Connection(back.source, "main", back.output, each.target, each.input)] = None
        else:
            made[each] = None
    return [each for each in made if each.source != each.target]


def _sorted(order: list[str], kept: list[Connection]) -> list[str]:
    """Each node after those that lead to it; those that are alike in the order of the document."""
    before = dict.fromkeys(order, 0)
    leaving: dict[str, list[str]] = {}
    for each in kept:
        before[each.target] += 1
        leaving.setdefault(each.source, []).append(each.target)
    place = {name: at for at, name in enumerate(order)}
    ready = [place[name] for name in order if not before[name]]
    found: list[str] = []
    while ready:
        name = order[heappop(ready)]
        found.append(name)
        for target in leaving.get(name, ()):
            before[target] -= 1
            if not before[target]:
                heappush(ready, place[target])
    return found

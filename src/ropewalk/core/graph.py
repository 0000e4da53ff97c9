"""Which edges of one execution are decided, and so which nodes may start or will never run.

Every edge is decided once: a counter per node of the edges still open, and a mark for "one of them is live".
A decision costs the out-degree of the node it is about, never the size of the graph.
"""

from ropewalk.core.definition.topology import ERROR_PORT
from ropewalk.core.plan import Plan

Ripe = tuple[list[int], list[int]]
_NO_PORT = (None,)


class Frontier:
    """The edge counters of one execution."""

    __slots__ = ("_live", "_plan", "_undecided")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._undecided = list(plan.indegree)
        self._live = bytearray(len(plan.ids))

    def is_ripe(self, node: int) -> bool:
        """Whether every edge into the node is decided and one is live; a root always is."""
        return not self._undecided[node] and (bool(self._live[node]) or not self._plan.indegree[node])

    def succeeded(self, node: int, taken: tuple[str, ...]) -> Ripe:
        """Edges without a port and those of the ports taken are live, the others dead."""
        return self._decide(node, (None, *(port for port in taken if port != ERROR_PORT)) if taken else _NO_PORT)

    def failed(self, node: int) -> Ripe:
        """A handled failure: its error edges are live, the others dead."""
        return self._decide(node, (ERROR_PORT,))

    def _decide(self, node: int, taken: tuple[str | None, ...]) -> Ripe:
        plan, undecided, live = self._plan, self._undecided, self._live
        ready: list[int] = []
        skipped: list[int] = []
        for target, port in zip(  # noqa: B905 (parallel by construction; the check costs on every signal)
            plan.targets[node], plan.ports[node]
        ):
            undecided[target] -= 1
            if port in taken:
                live[target] = 1
            if not undecided[target]:
                (ready if live[target] else skipped).append(target)
        return self._spread(ready, skipped) if skipped or len(ready) > 1 else (ready, skipped)

    def _spread(self, ready: list[int], skipped: list[int]) -> Ripe:
        """Walk on through what will never run: the edges out of a skipped node are dead."""
        undecided, live, targets = self._undecided, self._live, self._plan.targets
        for node in skipped:  # grows while we walk
            for target in targets[node]:
                undecided[target] -= 1
                if not undecided[target]:
                    (ready if live[target] else skipped).append(target)
        if len(ready) > 1:
            ready.sort()
        if len(skipped) > 1:
            skipped.sort()
        return ready, skipped

"""Which edges of one execution are decided, and so which nodes may start or will never run.

Every edge is decided once: a counter per node of the edges still open, and one of those that are dead, where any is.
A decision costs the out-degree of the node it is about, never the size of the graph.
"""

from ropewalk.core.definition.topology import is_error_port
from ropewalk.core.plan import Plan


class Frontier:
    """The edge counters of one execution; `skipped` gathers what will never run, until the execution takes it."""

    __slots__ = ("_dead", "_plan", "_undecided", "skipped")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._undecided = plan.indegree.copy()
        self._dead: dict[int, int] = {}
        self.skipped: list[int] = []

    def counters(self) -> tuple[list[int], dict[int, int]]:
        """How many edges into each node are undecided, and how many are dead where any is."""
        return self._undecided.copy(), self._dead.copy()

    def set_counters(self, undecided: list[int], dead: dict[int, int]) -> None:
        """Go on from such a count."""
        self._undecided, self._dead = undecided.copy(), dead.copy()

    def is_ripe(self, node: int) -> bool:
        """Whether every edge into the node is decided and one is live; a root always is."""
        return not self._undecided[node] and (self._is_live(node) or not self._plan.indegree[node])

    def _is_live(self, node: int) -> bool:
        return self._dead.get(node, 0) < self._plan.indegree[node]

    def succeeded(self, node: int, taken: tuple[str, ...]) -> list[int]:
        """Edges without a port and those of the ports taken are live, the others dead: what is ready now."""
        followers = self._plan.followers[node]
        if followers is None:
            return self._decide(node, (None, *(port for port in taken if not is_error_port(port))))
        # Every edge is live, so nothing is skipped: most nodes pass here.
        undecided, ready = self._undecided, []
        for target in followers:
            undecided[target] = left = undecided[target] - 1
            if not left:
                ready.append(target)
        return ready

    def failed(self, node: int, way: str) -> list[int]:
        """A handled failure: the error edges of the way it takes are live, the others dead: what is ready now."""
        return self._decide(node, (way,))

    def _decide(self, node: int, taken: tuple[str | None, ...]) -> list[int]:
        undecided, dead = self._undecided, self._dead
        ready: list[int] = []
        skipped: list[int] = []
        for target, port in zip(self._plan.targets[node], self._plan.ports[node], strict=True):
            undecided[target] -= 1
            if port not in taken:
                dead[target] = dead.get(target, 0) + 1
            if not undecided[target]:
                (ready if self._is_live(target) else skipped).append(target)
        return self._spread(ready, skipped)

    def _spread(self, ready: list[int], skipped: list[int]) -> list[int]:
        """Walk on through what will never run: the edges out of a skipped node are dead."""
        undecided, dead, targets = self._undecided, self._dead, self._plan.targets
        for node in skipped:  # grows while we walk
            for target in targets[node]:
                undecided[target] -= 1
                dead[target] = dead.get(target, 0) + 1
                if not undecided[target]:
                    (ready if self._is_live(target) else skipped).append(target)
        self.skipped += sorted(skipped)
        ready.sort()
        return ready

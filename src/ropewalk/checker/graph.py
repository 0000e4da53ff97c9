"""What the graph said at every start, skip and end, worked out from the recorded outcomes alone.

An edge is read when it is asked about, from the outcome its source has at that moment: no counters are kept, so that
this and the machine can be wrong only in different ways.
"""

from typing import Final

from msgspec import Struct

from ropewalk.checker.lanes import Fact, Step
from ropewalk.checker.trace import Trace
from ropewalk.core.events import Event, NodeFailed, NodeFixed, NodesCarriedOver, NodeSucceeded
from ropewalk.core.plan import Plan
from ropewalk.core.state import NodeState

ERROR: Final = "error"
UNFINISHED: Final = (NodeState.WAITING, NodeState.READY, NodeState.RUNNING)


class Reading(Struct, frozen=True, gc=False):
    """The edges into a node at one event: the source of an undecided one, a failed source, and if one is live."""

    seq: int
    node: int
    undecided: int | None
    failed: int | None
    is_live: bool


class Move(Struct, frozen=True, gc=False):
    """A node's state before and after one event; a start leads through READY."""

    seq: int
    node: int
    step: Step
    before: NodeState
    after: NodeState
    since: int


class End(Struct, frozen=True):
    """How the nodes stood when the execution ended, and which failures nothing handled."""

    seq: int
    event: Event
    states: list[NodeState]
    failures: list[int]
    unskipped: list[int]


class Graph:
    """The recorded outcomes, walked through once."""

    def __init__(self, trace: Trace) -> None:
        self.plan = trace.plan
        self._cuts = trace.cuts
        self._sources = _sources(trace.plan)
        size = len(trace.plan)
        self.states = [NodeState.WAITING] * size
        # The ports through which each outcome leads on; None: no outcome, or a failure that nothing handles.
        self._ways: list[tuple[str | None, ...] | None] = [None] * size
        self._since = [0] * size
        self.failures: dict[int, int] = {}
        self._behind: bytearray | None = None
        self.starts: list[Reading] = []
        self.blocked: list[tuple[int, int]] = []
        self.skips: list[Reading] = []
        self.moves: list[Move] = []
        # The maps of which an item was taken up again after they had succeeded.
        self.mended: dict[int, None] = {}
        self.ends: list[End] = []
        for fact in trace.facts:
            self._walk(fact)

    def read(self, seq: int, node: int) -> Reading:
        """The edges into a node as they are now; a root counts as reached."""
        ways, states = self._ways, self.states
        undecided = failed = None
        sources = self._sources[node]
        is_live = not sources
        for source, port in sources:
            way = ways[source]
            if way is not None:
                is_live = is_live or port in way
            elif states[source] is NodeState.FAILED:
                failed = source
            else:
                undecided = source
        return Reading(seq, node, undecided, failed, is_live)

    def _walk(self, fact: Fact) -> None:
        step = fact.step
        if step is Step.END:
            self._end(fact)
        elif step is Step.DECIDE:
            self._decide(fact)
        elif step is Step.REOPEN:
            self._reopen()
        else:
            if step is Step.START:
                self._start(fact)
            elif step is Step.SKIP:
                self.skips.append(self.read(fact.seq, fact.node))
            self._move(fact)

    def _start(self, fact: Fact) -> None:
        self.starts.append(self.read(fact.seq, fact.node))
        if self.failures and self._is_behind(fact.node):
            self.blocked.append((fact.seq, fact.node))

    def _move(self, fact: Fact) -> None:
        node, before = fact.node, self.states[fact.node]
        after = self._after(fact, before)
        self.moves.append(Move(fact.seq, node, fact.step, before, after, self._since[node]))
        if fact.step is Step.WITHDRAW and before is NodeState.SUCCESS:
            self.mended[node] = None
        self.states[node] = after
        self._since[node] = fact.seq
        self._note_outcome(fact)

    def _after(self, fact: Fact, before: NodeState) -> NodeState:
        match fact.step:
            case Step.CARRY:
                return NodeState.SUCCESS if self.plan.ids[fact.node] in fact.event.outputs else NodeState.SKIPPED
            case Step.WITHDRAW:
                return NodeState.READY if before is NodeState.FAILED else before
            case step:
                return _AFTER[step]

    def _note_outcome(self, fact: Fact) -> None:
        node, event = fact.node, fact.event
        match fact.step:
            case Step.CARRY | Step.SUCCEED | Step.FIX:
                self._ways[node] = _ways_on(event, self.plan.ids[node])
            case Step.SKIP:
                self._ways[node] = ()
            case Step.FAIL:
                self._fail(fact.seq, node, event)
            case _:
                self._ways[node] = None if self.states[node] is not NodeState.SUCCESS else self._ways[node]
        if fact.step is not Step.FAIL and self.failures.pop(node, None) is not None:
            self._behind = None

    def _fail(self, seq: int, node: int, event: NodeFailed) -> None:
        self._ways[node] = (self.plan.error_port(node, event.edge),) if event.handled else None
        # What closes an execution leaves its outcome as it is.
        if not event.handled and node < self.plan.ordinary:
            self.failures[node] = seq
            if self._behind is not None:
                _spread(self.plan, self._behind, [node])

    def _is_behind(self, node: int) -> bool:
        """Whether a failure that nothing handles stands before the node."""
        if self._behind is None:
            self._behind = behind(self.plan, list(self.failures))
        return bool(self._behind[node])

    def _end(self, fact: Fact) -> None:
        unskipped = [node for node, state in enumerate(self.states) if state is NodeState.WAITING]
        unskipped = [node for node in unskipped if _is_dead(self.read(fact.seq, node))]
        self.ends.append(End(fact.seq, fact.event, list(self.states), list(self.failures), unskipped))

    def _decide(self, fact: Fact) -> None:
        """What was cut short is over; what closes the execution is in line, or is not wanted."""
        ordinary = self.plan.ordinary
        if fact.seq in self._cuts:
            for node, state in enumerate(self.states[:ordinary]):
                self.states[node] = NodeState.CANCELLED if state in UNFINISHED else state
        for node in range(ordinary, len(self.states)):
            is_wanted = self.plan.ids[node] in fact.event.nodes
            self.states[node] = NodeState.READY if is_wanted else NodeState.SKIPPED

    def _reopen(self) -> None:
        """What was under way or in line has its turn again, and so has what closes the execution."""
        for node, state in enumerate(self.states):
            if state is NodeState.CANCELLED or node >= self.plan.ordinary:
                self.states[node] = NodeState.WAITING
                self._ways[node] = None
            elif state is NodeState.RUNNING:
                self.states[node] = NodeState.READY


_AFTER: Final = {
    Step.START: NodeState.RUNNING,
    Step.SKIP: NodeState.SKIPPED,
    Step.SUCCEED: NodeState.SUCCESS,
    Step.FAIL: NodeState.FAILED,
    Step.RESUME: NodeState.RUNNING,
    Step.FIX: NodeState.SUCCESS,
}


def _sources(plan: Plan) -> list[list[tuple[int, str | None]]]:
    """The edges into each node: where from, and through which port."""
    sources: list[list[tuple[int, str | None]]] = [[] for _ in plan.ids]
    for source, targets in enumerate(plan.targets):
        for target, port in zip(targets, plan.ports[source], strict=True):
            sources[target].append((source, port))
    return sources


def _ways_on(event: NodeSucceeded | NodeFixed | NodesCarriedOver, name: str) -> tuple[str | None, ...]:
    """The ports a success leads through: those taken, and the unnamed one; never the one for errors."""
    if isinstance(event, NodesCarriedOver):
        if name not in event.outputs:
            return ()
        ports = event.ports.get(name, ())
    else:
        ports = event.ports
    return (None, *(port for port in ports if port != ERROR)) if ports else (None,)


def _is_dead(reading: Reading) -> bool:
    return reading.undecided is None and reading.failed is None and not reading.is_live


def behind(plan: Plan, nodes: list[int]) -> bytearray:
    """A mark for every node that can be reached from one of these."""
    marks = bytearray(len(plan))
    _spread(plan, marks, nodes)
    return marks


def _spread(plan: Plan, marks: bytearray, nodes: list[int]) -> None:
    waiting = list(nodes)
    while waiting:
        for target in plan.targets[waiting.pop()]:
            if not marks[target]:
                marks[target] = 1
                waiting.append(target)

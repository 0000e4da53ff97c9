"""The beaten way: what follows from the same reports at the same place of a plan is decided once, and remembered.

Most executions of a workflow go the same way: a node succeeds at its first attempt, and the same nodes start. A *place*
is how far such an execution has come, a *step* what follows there from certain reports; both are shared by all that
pass by. The execution that comes to a place first decides by the rules, and what was decided is remembered, if it could
not have been otherwise. An execution that comes later takes the step, and keeps nothing of its own but its outputs.

Anything else (a failure, a wait, a person, a time limit, too few hands) leads off the way: the state is laid out in
full, and the rules decide from then on. So there is one set of rules, and a step is never anything but what they said.
"""

from collections.abc import Sequence
from copy import copy
from typing import Final

from msgspec import Struct

from ropewalk.core.commands import Command, RunNode
from ropewalk.core.events import ExecutionStarted, ExecutionSucceeded, NodesSkipped, NodesStarted, NodeSucceeded
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.settling import begin, conclude
from ropewalk.core.execution.work import Phase, Work
from ropewalk.core.signals import Signal, Start, Succeeded

MOST_NODES: Final = 64
MOST_REMEMBERED: Final = 4_096
"""How many nodes all places of a plan may have together: what runs in parallel may end in any order, and each is a way
of its own."""

Reports = tuple[tuple[str, tuple[str, ...]], ...]
"""Which nodes succeeded, through which ports, in the order they were reported."""
START: Final[Reports] = ()
_PLAIN: Final = frozenset({NodeSucceeded, NodesSkipped, NodesStarted, ExecutionStarted, ExecutionSucceeded})


class Step(Struct, frozen=True):
    """What follows from certain reports at a place, and where it leads."""

    place: "Place"
    skipped: tuple[str, ...]
    started: tuple[str, ...]
    commands: tuple[Command, ...]
    is_last: bool


class Place:
    """The state of every execution that has come so far, apart from what its nodes have handed on."""

    __slots__ = ("dead", "nodes", "ports", "ready", "steps", "trail", "undecided", "works")

    def __init__(self, x: Progress, trail: "Trail") -> None:
        self.nodes = tuple(x.nodes)
        self.undecided, self.dead = x.frontier.counters()
        self.ports = dict(x.ports)
        self.ready = tuple([work.node for work, _ in x.ready])
        # Never changed: an execution that changes something has its own.
        self.works = {node: trail.shared(work) for node, work in x.works.items()}
        self.steps: dict[Reports | None, Step] = {}
        self.trail = trail

    def lay_out(self, x: Progress) -> None:
        """Give an execution that is here a state of its own."""
        x.begin_nodes()
        x.nodes = list(self.nodes)
        x.frontier.set_counters(self.undecided, self.dead)
        x.to_skip = x.frontier.skipped
        x.ports = dict(self.ports)
        x.works = {node: copy(work) for node, work in self.works.items()}
        x.ready = [(x.works[node], 1) for node in self.ready]
        x.ready_count, x.open_nodes = len(self.ready), len(x.works)
        x.running = len(x.works) - len(self.ready)


class Trail:
    """The beaten way of one plan; `start` is where it begins, None if there is none."""

    __slots__ = ("_works", "room", "start")

    def __init__(self, x: Progress) -> None:
        """`x` has not begun yet."""
        size = len(x.plan)
        # How many more places there may be.
        self.room = MOST_REMEMBERED // max(size, 1)
        self._works: dict[tuple[int, Phase], Work] = {}
        is_same_for_all = size <= MOST_NODES and not x.plan.has_maps and not x.plan.is_timely
        is_same_for_all = is_same_for_all and not x.plan.repeats and not x.plan.has_closing
        self.start = Place(x, self) if is_same_for_all else None

    def shared(self, work: Work) -> Work:
        """What is known of a node in line or at its first attempt is the same wherever it is."""
        return self._works.setdefault((work.node, work.phase), copy(work))


def reports_of(signals: Sequence[Signal]) -> Reports | None:
    """What is reported, if it is the start, or nothing but successes at the first attempt."""
    reports = []
    for signal in signals:
        if type(signal) is not Succeeded or signal.attempt != 1 or signal.item is not None:
            return START if type(signal) is Start and len(signals) == 1 else None
        reports.append((signal.node, signal.ports))
    return tuple(reports) or None


def take(x: Progress, step: Step, signals: Sequence[Signal], now: int) -> bool:
    """Record what follows; the beginning and the end are the rules' own.

    False, and nothing is recorded, if this execution may not do as others have done: it has too few hands for that, or
    its time is up.
    """
    if (x.room is not None and x.room < len(step.started)) or (x.deadline is not None and x.deadline <= now):
        return False
    events, outputs, index = x.events, x.outputs, x.plan.index
    for signal in signals:
        if type(signal) is Succeeded:
            node, output, blob = signal.node, signal.output, signal.blob
            events.append(
                NodeSucceeded(
                    now, node, 1, output, signal.ports, signal.inputs, blob, signal.tokens, signal.inputs_blob
                )
            )
            outputs[index[node]] = output if blob is None else blob
        else:
            begin(x, now)
    if step.skipped:
        events.append(NodesSkipped(now, step.skipped))
    if step.started:
        events.append(NodesStarted(now, step.started))
        x.commands.extend(step.commands)
    x.place = step.place
    if step.is_last:
        conclude(x, now)
    return True


def remember(x: Progress, place: Place, reports: Reports, commands: Sequence[Command]) -> None:
    """What the rules have decided here is what they decide for everyone, unless something was special."""
    kinds = [type(event) for event in x.events]
    if not place.trail.room or not _is_plain(x, kinds) or x.output_asked is not None:
        return
    if kinds.count(NodeSucceeded) != len(reports) or kinds.count(ExecutionStarted) != (reports == START):
        return  # something came late, or twice, and decided nothing
    skipped = [event.nodes for event in x.events if type(event) is NodesSkipped] or [()]
    started = [event.nodes for event in x.events if type(event) is NodesStarted] or [()]
    runs = tuple([command for command in commands if type(command) is RunNode])
    place.trail.room -= 1
    place.steps[reports] = Step(Place(x, place.trail), skipped[0], started[0], runs, x.is_ended)


def _is_plain(x: Progress, kinds: Sequence[type]) -> bool:
    """Whether nodes have only started and succeeded, and all that could start has."""
    return x.is_simple and not x.ready_count and _PLAIN.issuperset(kinds)

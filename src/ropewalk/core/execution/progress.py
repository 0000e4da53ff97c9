"""How far an execution has come: the state that events change and rules look at.

Counters stand beside the collections so that no question about the whole costs a walk over it.
"""

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from ropewalk.core.closing_events import OutcomeDecided
from ropewalk.core.commands import Command, NeedSlot
from ropewalk.core.errors import InvalidTransition
from ropewalk.core.events import Event, ExecutionAccepted
from ropewalk.core.execution.work import BACKOFF, ENDED, READY, RUNNING, WAITING, Map, NodeError, Phase, Work
from ropewalk.core.graph import Frontier
from ropewalk.core.plan import Plan
from ropewalk.core.state import ExecutionState, NodeState

if TYPE_CHECKING:
    from ropewalk.core.execution.trail import Place

Key = tuple[int, int | None]
PENDING, NODE_WAITING, NODE_READY = ExecutionState.PENDING, NodeState.WAITING, NodeState.READY
NOWHERE = -1
"""The index of a node the workflow does not have."""


class Progress:
    """Everything known about one execution; a pure function of its log."""

    __slots__ = (
        "_slot_asked", "_timer_order", "about", "accepted", "blobs", "called_off", "carried", "closers",
        "closing", "commands", "continuing", "deadline", "ending", "errors", "events", "frontier", "going_on",
        "grace_until", "has_slot", "is_ended", "is_paused_by_parent", "is_simple", "is_started", "is_timed",
        "large_lists", "listeners", "maps", "mends", "new_failures", "nodes", "now", "open_nodes", "opening",
        "output_asked", "outputs", "place", "plan", "ports", "ready", "ready_count", "ready_first", "remaining",
        "resting", "room", "rounds", "running", "seq", "signals", "started_at", "state", "steps", "timers", "to_skip",
        "told_once", "unhandled", "waiting", "was_resumed", "works",
    )  # fmt: skip

    def __init__(self, plan: Plan, place: "Place | None" = None) -> None:
        self.plan = plan
        self.state = PENDING
        self.accepted: ExecutionAccepted | None = None
        self.about: dict[str, Any] | None = None
        self.now = 0
        self.seq = 0
        self.events: list[Event] = []
        self.commands: list[Command] = []
        self.outputs: dict[int, Any] = {}
        # Values too large for the log, by hash: the worker that evaluates expressions puts here what they need, and
        # takes it away again.
        self.blobs: dict[str, Any] = {}
        # How many more attempts the worker has hands for; set by it before a signal, None for any number.
        self.room: int | None = None
        # How many steps brief evaluations have taken since the worker set this.
        self.steps = 0
        # After how many events the worker was asked for an output that takes long.
        self.output_asked: int | None = None
        self.timers: list[tuple[int, int, Work]] = []
        self._timer_order = 0
        # Whether time alone could ever have changed something.
        self.is_timed = False
        self.started_at: int | None = None
        self.is_started = self.is_ended = self.was_resumed = False
        self.opening = 0
        self.has_slot = self.is_paused_by_parent = False
        self.ending: ExecutionState | None = None
        # How it was decided to end, once that is: also after the end, until it is reopened.
        self.closing: OutcomeDecided | None = None
        self.deadline: int | None = None
        self.grace_until: int | None = None
        self.remaining: int | None = None
        # An accepted execution is in the queue: its first slot is asked for already.
        self._slot_asked = True
        # How far it has come on the beaten way of its plan; None where it has a state of its own.
        self.place = place
        if place is None:
            self.begin_nodes()
            self.open_up(plan.roots)

    @property
    def bounded_by(self) -> tuple[str, ...]:
        """The actors that bound what it reaches."""
        return () if self.accepted is None else self.accepted.bounded_by

    def begin_nodes(self) -> None:
        """A state of its own, in which nothing has happened yet."""
        self.nodes = [NODE_WAITING] * len(self.plan.ids)
        self.frontier = Frontier(self.plan)
        self.works: dict[int, Work] = {}
        self.maps: dict[int, Map] = {}
        # The maps some of whose outputs are too large for the log, those of another execution counted too.
        self.large_lists: dict[int, None] = {}
        # Of the nodes that close it: their attempts, which go on over reopenings. And what another execution gave.
        self.closers: dict[int, Work] = {}
        self.carried: dict[int, None] = {}
        # How often an item of a map has changed after its map had succeeded.
        self.mends = 0
        # How many rounds of each node that is repeated have ended, apart from the last.
        self.rounds: dict[int, int] = {}
        self.ports: dict[int, tuple[str, ...]] = {}
        self.errors: dict[int, NodeError] = {}
        self.unhandled: dict[int, None] = {}
        # Those since the last reopening: only they stop an execution with `onFailure: stop`.
        self.new_failures: dict[int, None] = {}
        self.to_skip = self.frontier.skipped
        # Those that came last, and (the last one first) those before them. No deque: an empty one takes 600 bytes.
        self.ready: list[tuple[Work, int]] = []
        self.ready_first: list[tuple[Work, int]] = []
        # Those that have begun and go on, where `maxParallel` keeps a place for them: they wait behind no others.
        self.going_on: list[tuple[Work, int]] = []
        self.ready_count = self.running = self.open_nodes = 0
        # Those that have begun and wait or back off, and those that have begun and are in line again.
        self.resting = self.continuing = 0
        # Whether nodes have only become ready, started and succeeded so far: nothing is in line for a second time.
        self.is_simple = True
        self.waiting: dict[Key, Work] = {}
        # The children that no node waits for any more, and that have not been heard to end.
        self.called_off: dict[str, None] = {}
        self.listeners: dict[str, deque[Work]] = {}
        self.signals: dict[str, deque[Any]] = {}
        # The keys under which it was told something lately, the oldest first.
        self.told_once: dict[str, None] = {}

    def lay_out(self) -> None:
        """Leave the beaten way; there the attributes of `begin_nodes` are missing."""
        if self.place is not None:
            place, self.place = self.place, None
            place.lay_out(self)

    # Questions

    @property
    def needs_slot(self) -> bool:
        """Whether something could start if there were a slot, or the output could be evaluated that takes long."""
        if self.has_slot or self.ending is not None:
            return False
        if self.state is PENDING:
            return True
        return self.state is ExecutionState.RUNNING and (self.may_start or not self.open_nodes)

    @property
    def has_undone(self) -> bool:
        """Whether it has undone something of what it did."""
        return self.closing is not None and bool(self.closing.undone)

    @property
    def has_more(self) -> bool:
        """Whether something is ready that there was no hand for."""
        return self.place is None and self.ready_count > 0 and self.may_start

    @property
    def may_start(self) -> bool:
        """Whether something is in line for which `maxParallel` has a place."""
        return self.ready_count > 0 and (self.continuing > 0 or self.places > 0)

    @property
    def places(self) -> int:
        """How many may begin beside what is under way, once all that goes on has its turn: what has begun keeps its
        place until its outcome is final.
        """
        limit = self.plan.max_parallel if self.closing is None else 1
        return self.ready_count if limit is None else limit - self.running - self.resting

    @property
    def is_parked(self) -> bool:
        """Whether it only waits: no slot, nothing to start, not over."""
        return not (self.has_slot or self.needs_slot or self.is_ended)

    @property
    def wake_at(self) -> int | None:
        """The next moment at which time alone changes something."""
        if not self.timers and self.deadline is None and self.grace_until is None:
            return None
        timer = self.next_timer() if self.ending is None else self.grace_until
        if timer is None or (self.deadline is not None and self.deadline < timer):
            return self.deadline
        return timer

    def next_timer(self) -> int | None:
        """When the earliest retry or wait is due."""
        timers = self.timers
        while timers and timers[0][2].due != timers[0][0]:
            heappop(timers)
        return timers[0][0] if timers else None

    def active_works(self) -> Iterable[Work]:
        """Every attempt that is not over, in document order."""
        works, maps = (self.works, self.maps) if self.place is None else (self.place.works, {})
        for node in sorted({**works, **maps}):
            if node in works:
                yield works[node]
            if node in maps:
                items = maps[node].works
                yield from (items[item] for item in sorted(items))

    def work(self, node: str, item: int | None) -> Work | None:
        """The attempts at this node or item, if there are any to speak of."""
        index = self.plan.index.get(node, NOWHERE)
        if item is None:
            return (self.works if self.place is None else self.place.works).get(index)
        map_ = self.maps.get(index)
        return map_.works.get(item) if map_ else None

    def node_state(self, node: int) -> NodeState:
        """The state people see: what stays behind an unhandled failure is BLOCKED at the end."""
        state = (self.nodes if self.place is None else self.place.nodes)[node]
        if state is NodeState.WAITING and self.is_ended:
            return NodeState.BLOCKED
        return state

    def refusal(self, verb: str) -> InvalidTransition:
        """The error for a request that does not fit the state."""
        ending = f" and ending as {self.ending}" if self.ending else ""
        if self.closing is not None and not self.is_ended:
            ending = f", and is closed with the outcome {self.closing.outcome}"
        return InvalidTransition(f"cannot {verb}: the execution is {self.state}{ending}")

    # Steps

    def open_up(self, ready: list[int]) -> None:
        """Every edge into these nodes is decided and one is live: they wait for nothing but room."""
        nodes, works, line = self.nodes, self.works, self.ready
        for node in ready:
            nodes[node] = NODE_READY
            works[node] = work = Work(node)
            line.append((work, 1))
        self.open_nodes += len(ready)
        self.ready_count += len(ready)

    def make_ready(self, node: int) -> None:
        """A node that was cancelled or has failed is to have its turn, perhaps for the first time."""
        self.nodes[node] = NODE_READY
        self.open_nodes += 1
        work = self.works.get(node)
        if work is None:
            work = self.works[node] = Work(node)
        self.queue(work)

    def queue(self, work: Work) -> None:
        """Put an attempt at the end of the line."""
        self.is_simple = False
        work.phase = READY
        work.turn += 1
        self.ready_count += 1
        if work.used:
            self.continuing += 1
        is_limited = self.plan.max_parallel is not None or self.closing is not None
        line = self.going_on if work.used and is_limited else self.ready
        line.append((work, work.turn))

    def next_to_go_on(self, most: int) -> list[Work]:
        """The attempts that have a place already and are in line again, longest first."""
        works: list[Work] = []
        while len(works) < most and self.going_on:
            work, turn = self.going_on.pop(0)
            if work.phase is READY and work.turn == turn:
                works.append(work)
        return works

    def next_in_line(self, most: int) -> list[Work]:
        """The attempts that have been ready longest; those that left the line by another way are passed over."""
        if self.is_simple and not self.ready_first and len(self.ready) <= most:
            line, self.ready = self.ready, []
            return [work for work, _ in line if work.phase is READY]
        works: list[Work] = []
        while len(works) < most and (self.ready or self.ready_first):
            for work, turn in self._head(most - len(works)):
                if work.phase is READY and work.turn == turn:
                    works.append(work)
        return works

    def _head(self, most: int) -> list[tuple[Work, int]]:
        """Take the first out of the line; most often that is everyone."""
        if not self.ready_first:
            line, self.ready = self.ready, []
            if len(line) <= most:
                return line
            self.ready_first = line[::-1]
        head = self.ready_first[: -most - 1 : -1]
        del self.ready_first[-most:]
        return head

    def feed(self, node: int) -> None:
        """Put the next items of a map in line."""
        for work in self.maps[node].feed(node):
            self.queue(work)

    def start(self, work: Work, at: int) -> None:
        """An attempt is under way; one that was handed back or held goes on under its number."""
        if work.phase is READY:
            self._leave_line(work)
            work.due = None
        else:
            self.leave(work)
        if work.again:
            work.again = False
        else:
            if work.used == work.used_before:
                work.as_of = self.mends
                work.first_at = at
            work.attempt += 1
            work.used += 1
        work.phase = RUNNING
        work.wait = None
        self.running += 1

    def leave(self, work: Work) -> None:
        """Take an attempt out of the collection it is in."""
        self.is_simple = False
        phase = work.phase
        if phase is RUNNING:
            self.running -= 1
            work.reserved = None
        elif phase is READY:
            self._leave_line(work)
        elif phase is WAITING:
            self.waiting.pop((work.node, work.item), None)
            self.resting -= 1
        elif phase is BACKOFF:
            self.resting -= 1
        work.phase = ENDED
        work.due = None

    def _leave_line(self, work: Work) -> None:
        self.ready_count -= 1
        if work.used:
            self.continuing -= 1

    def rest(self, work: Work, phase: Phase) -> None:
        """An attempt waits, or the next one does; it keeps its place meanwhile."""
        work.phase = phase
        self.resting += 1

    def set_timer(self, work: Work, due: int) -> None:
        work.due = due
        self.is_timed = True
        self._timer_order += 1
        heappush(self.timers, (due, self._timer_order, work))

    def ask_for_slot(self) -> None:
        """Ask once, until the answer comes or the need is gone."""
        if self.needs_slot and not self._slot_asked:
            self._slot_asked = True
            self.commands.append(NeedSlot())

    def slot_answered(self) -> None:
        self._slot_asked = False

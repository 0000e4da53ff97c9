"""The rows of one execution while its log is folded, and the steps events take on them.

A run that can change no more is forgotten once its row was taken: what is kept is what may still change.
"""

from copy import copy
from typing import Any, Final

from ropewalk.core.errors import RunError
from ropewalk.core.events import ItemFailed, ItemSucceeded, MapExpanded, NodeFailed, NodeSucceeded, RoundEnded, given
from ropewalk.core.graph import Frontier
from ropewalk.core.plan import Plan
from ropewalk.core.rows.tables import Changes, ExecutionRow, LetterRow, NodeRow, Rows, RunRow, letter_id, run_id
from ropewalk.core.state import ExecutionState, GaveUp, NodeState, Resolution, RunState

Key = tuple[int, int | None]
OPEN: Final = (NodeState.READY, NodeState.RUNNING)


class Lane:
    """The last attempt at a node or item, and what the next ones and a dead letter need to know of it."""

    __slots__ = ("child", "inputs", "is_round_over", "letter", "opening", "run", "waits_for_child")

    def __init__(self, run: RunRow, opening: int) -> None:
        self.run = run
        self.opening = opening
        self.inputs: Any = None
        self.child: ExecutionState | None = None
        self.letter: LetterRow | None = None
        self.waits_for_child = False
        # Whether it was a round of a node that is repeated, so that the next attempt is given something else.
        self.is_round_over = False


class Books:
    """The rows as of the events folded so far, and which of them changed."""

    __slots__ = (
        "_changed_execution", "_changed_letters", "_changed_nodes", "_changed_runs", "_nodes", "_row", "by",
        "expanded", "frontier", "is_closing", "is_ending", "is_started", "items", "lanes", "open",
        "open_nodes", "opening", "plan",
    )  # fmt: skip

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.frontier = Frontier(plan)
        self.lanes: dict[Key, Lane] = {}
        # Of each map, the items that failed for good.
        self.items: dict[int, dict[int, None]] = {}
        self.open: dict[Key, Lane] = {}
        self.expanded: dict[int, None] = {}
        self.open_nodes = self.opening = 0
        self.is_closing = self.is_ending = self.is_started = False
        self.by: str | None = None
        self._row: ExecutionRow | None = None
        self._nodes: dict[int, NodeRow] = {}
        self._forget_changes()
        for root in plan.roots:
            self.set_node(root, NodeState.READY)

    def take_changes(self) -> Changes:
        """The rows that changed since the last call, as copies."""
        changes = Changes(
            copy(self._row) if self._changed_execution else None,
            [copy(row) for row in self._changed_nodes.values()],
            [copy(row) for row in self._changed_runs.values()],
            [copy(row) for row in self._changed_letters.values()],
        )
        self._forget_changes()
        return changes

    def all_rows(self) -> Rows:
        """Every row of a whole log; not copies, so that nothing more is to be folded here."""
        nodes = [self._nodes.get(index) or NodeRow(node) for index, node in enumerate(self.plan.ids)]
        return Rows(self._row, nodes, list(self._changed_runs.values()), list(self._changed_letters.values()))

    def _forget_changes(self) -> None:
        self._changed_execution = False
        self._changed_nodes: dict[int, NodeRow] = {}
        self._changed_runs: dict[str, RunRow] = {}
        self._changed_letters: dict[str, LetterRow] = {}

    # The execution

    def accept(self, row: ExecutionRow) -> None:
        self._row = row
        self._changed_execution = True

    @property
    def execution(self) -> ExecutionRow:
        """The execution's row, about to be changed."""
        assert self._row is not None, "an execution is accepted before anything happens to it"
        self._changed_execution = True
        return self._row

    @property
    def state(self) -> ExecutionState:
        """Where the execution stands."""
        return ExecutionState.PENDING if self._row is None else self._row.state

    # Nodes

    def node_state(self, index: int) -> NodeState:
        """Where a node stands."""
        row = self._nodes.get(index)
        return NodeState.WAITING if row is None else row.state

    def node(self, index: int) -> NodeRow:
        """A node's row, about to be changed."""
        row = self._nodes.get(index)
        if row is None:
            row = self._nodes[index] = NodeRow(self.plan.ids[index])
        self._changed_nodes[index] = row
        return row

    def set_node(self, index: int, state: NodeState) -> NodeRow:
        row = self.node(index)
        self.open_nodes += (state in OPEN) - (row.state in OPEN)
        row.state = state
        return row

    def settle(self, index: int, state: NodeState, at: int, error: RunError | None = None) -> None:
        """The node has its outcome."""
        row = self.set_node(index, state)
        row.finished = at
        row.error = error

    def withdraw(self, index: int, state: NodeState) -> None:
        """The node's outcome stands no more."""
        row = self.set_node(index, state)
        row.finished = row.error = None

    def decide(self, index: int, ports: tuple[str, ...]) -> None:
        """The edges out of a node that succeeded are decided."""
        self._open_up(self.frontier.succeeded(index, ports))

    def decide_failed(self, index: int, edge: int | None) -> None:
        """The edges out of a node whose failure is handled are decided; `edge` is the first that is taken."""
        self._open_up(self.frontier.failed(index, self.plan.error_port(index, edge)))

    def _open_up(self, ready: list[int]) -> None:
        """Take in which nodes became ready; what is to be skipped is said by an event of its own."""
        for index in ready:
            self.set_node(index, NodeState.READY)

    # Runs

    def start(self, index: int, item: int | None, at: int, attempt: int | None = None) -> None:
        """The next attempt starts, or the named one goes on under its number."""
        lane = self.lanes.get((index, item))
        last = 0 if lane is None else lane.run.attempt
        if lane is None or attempt != last:
            lane = self._next_run(lane, (index, item), at, last + 1 if attempt is None else attempt)
        self._to(lane, RunState.RUNNING)
        self.open[index, item] = lane

    def _next_run(self, before: Lane | None, key: Key, at: int, attempt: int) -> Lane:
        index, item = key
        node = self.plan.ids[index]
        execution = "" if self._row is None else self._row.id
        run = RunRow(run_id(execution, node, item, attempt, at), node, item, attempt, at)
        lane = self.lanes[key] = Lane(run, self.opening)
        if before is not None and before.opening == self.opening and not before.is_round_over:
            self.note_inputs(lane, before.inputs)
        if item is None:
            self.node(index).attempts = attempt
        return lane

    def _to(self, lane: Lane, state: RunState) -> RunRow:
        lane.run.state = state
        self._changed_runs[lane.run.id] = lane.run
        return lane.run

    def note_inputs(self, lane: Lane, inputs: Any) -> None:
        if inputs is not None:
            lane.inputs = inputs

    def pend(self, key: Key) -> None:
        """The attempt was handed back, or is held no longer, and can be leased."""
        self._to(self.lanes[key], RunState.PENDING)

    def wait(self, key: Key, inputs: Any, *, is_for_child: bool) -> None:
        lane = self.lanes[key]
        self.note_inputs(lane, inputs)
        lane.waits_for_child = is_for_child
        self._to(lane, RunState.WAITING)

    def wait_again(self, key: Key) -> None:
        """A failed run waits for its reopened child."""
        lane = self.open[key] = self.lanes[key]
        run = self._to(lane, RunState.WAITING)
        run.finished = run.error = lane.child = None
        lane.waits_for_child = True
        self._unfail(key)

    def end(self, key: Key, state: RunState, at: int, error: RunError | None = None) -> Lane:
        lane = self.lanes[key]
        self.open.pop(key, None)
        run = self._to(lane, state)
        run.finished = at
        run.error = error
        return lane

    def succeed(self, key: Key, event: NodeSucceeded | ItemSucceeded | MapExpanded) -> None:
        """The run ended well; nothing can happen to it any more, but for what closes an execution again."""
        lane = self.end(key, RunState.SUCCESS, event.at)
        if not isinstance(event, MapExpanded):
            self.note_inputs(lane, given(event))
        if key[0] < self.plan.ordinary:
            del self.lanes[key]

    def end_round(self, key: Key, event: RoundEnded) -> None:
        """The run ended well, and another follows: attempts at the node are counted on."""
        lane = self.end(key, RunState.SUCCESS, event.at)
        self.note_inputs(lane, given(event))
        lane.is_round_over = True
        self.node(key[0]).rounds += 1

    def fail(self, key: Key, event: NodeFailed | ItemFailed) -> None:
        """The run was the last one; it is a dead letter if the event says so."""
        lane = self.end(key, RunState.FAILED, event.at, event.error)
        lane.run.retry_after = None
        self.note_inputs(lane, given(event))
        lane.child = None if event.undone else event.child
        if key[1] is not None:
            self.items.setdefault(key[0], {})[key[1]] = None
        if event.gave_up is not None:
            self.write_letter(lane, event.gave_up, event.at)

    def _unfail(self, key: Key) -> None:
        if key[1] is not None:
            self.items[key[0]].pop(key[1], None)

    # Dead letters

    def write_letter(self, lane: Lane, why: GaveUp, at: int) -> None:
        """The run becomes a dead letter."""
        run = self._to(lane, RunState.DLQ)
        reason = "" if run.error is None else run.error.message
        execution = "" if self._row is None else self._row.id
        name = letter_id(execution, run.node, run.item, run.attempt, at)
        lane.letter = LetterRow(name, run.id, run.node, run.item, run.attempt, why, reason, at, lane.inputs)
        if run.error is not None:
            lane.letter.error_type = run.error.type
        self._changed_letters[name] = lane.letter

    def resolve(self, key: Key, resolution: Resolution, at: int, by: str | None) -> None:
        """A person dealt with a failure: its dead letter is closed, the next attempt has inputs of its own."""
        lane = self.lanes[key]
        letter, lane.letter = lane.letter, None
        lane.inputs = None
        self._unfail(key)
        if letter is not None:
            letter.resolution, letter.resolved, letter.by = resolution, at, by
            self._changed_letters[letter.id] = letter

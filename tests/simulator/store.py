"""The simulated store: logs behind fences, inboxes, the queue for slots. A commit is one step: all of it or nothing.

What an execution tells other executions (its children, its parent) is written in the same commit as the events that
cause it, as an engine on one database does. In a world that is log-first a writer may die between the two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.commands import Command, Finish, StartChild
from ropewalk.core.events import (
    Event,
    ExecutionAccepted,
    ExecutionPaused,
    ExecutionReopened,
    ExecutionResumed,
    ExecutionStarted,
    ItemFailed,
    ItemsGivenUp,
    NodeFailed,
    OutcomeDecided,
    RunWaiting,
    SlotReleased,
    SlotTaken,
)
from ropewalk.core.kinship import ENDS, end_of_child, verb_of_parent
from ropewalk.core.plan import Plan
from ropewalk.core.signals import Fix, Requeue, Retry, Signal, Start
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import ChildWait

if TYPE_CHECKING:
    from tests.simulator.worker import Worker
    from tests.simulator.world import World

WORKSPACE: Final = "w"
RIVAL: Final = "bob"
Letter = tuple[str, int | None]
RunKey = tuple[str, int | None, int]
RunFence = tuple[RunKey, int]


class Answer(Enum):
    """What the writer learns about its commit."""

    WRITTEN = "written"
    REFUSED = "refused"
    ABORTED = "aborted"
    LOST = "lost"
    CUT = "in the log, and its writer died before anything followed"


class Slot(Enum):
    """How far an execution is with its slot."""

    NONE = "none"
    QUEUED = "queued"
    GRANTED = "granted"
    HELD = "held"


class Entry(Struct, frozen=True):
    """One row of an inbox. `run` is the fence of the run it reports about; `then` goes to another execution's inbox
    once this one was accepted.
    """

    signal: Signal
    run: RunFence | None = None
    then: tuple[str, Signal] | None = None
    is_for_parent: bool = False


def _cut_of(commit: Commit) -> str:
    """The fault that comes between a log and what follows; more often where another execution is to be told."""
    if any(verb_of_parent(each) for each in commit.commands):
        return "crash before a child is told"
    is_for_kin = any(isinstance(each, StartChild | Finish) for each in commit.commands)
    return "crash before kin are told" if is_for_kin else "crash after log"


class Row:
    """Everything the store knows about one execution."""

    def __init__(self, accepted: ExecutionAccepted, plan: Plan) -> None:
        self.id = accepted.execution
        self.key = accepted.concurrency_key
        self.plan = plan
        self.parent = accepted.parent
        self.log: list[Event] = [accepted]
        self.seqs = [1]
        # How much of the log the columns below know, and what of the inbox was handled by what they do not know.
        self.projected = 1
        self.handled: list[Entry] = []
        self.fence = 0
        self.owner: Worker | None = None
        self.wake_at: int | None = None
        self.inbox: deque[Entry] = deque()
        self.slot = Slot.NONE
        # How often each attempt was begun, and which of them external runners have.
        self.begun: dict[RunKey, int] = {}
        self.leases: dict[RunKey, int] = {}
        self.end: ExecutionState | None = None
        self.has_started = False
        self.is_paused = False
        self.is_born_paused = False
        self.letters: list[Letter] = []

    def __repr__(self) -> str:
        return self.id


class Commit(Struct):
    """What one owner wants written about one execution."""

    row: Row
    fence: int
    seq: int
    events: list[Event]
    commands: list[Command]
    entries: list[Entry]
    accepted: list[Entry]


class Store:
    """Rows by id, and the pool of slots they share."""

    def __init__(self, world: World, slots: int) -> None:
        self.world = world
        self.rows: dict[str, Row] = {}
        self.slots = slots
        self.in_use = 0
        # The latest event time of a slot given back: the execution that takes it next does so no earlier.
        self.freed_at = 0
        self.keys: dict[str, list[str]] = {}
        self.queue: list[Row] = []

    # Accepting

    def accept(self, accepted: ExecutionAccepted, plan: Plan) -> Row:
        """A new execution, in line for its first slot; the one that is there if its id is known."""
        known = self.rows.get(accepted.execution)
        if known is not None:
            return known
        row = self.rows[accepted.execution] = Row(accepted, plan)
        self.enqueue(row)
        return row

    def post(self, row: Row, entry: Entry) -> None:
        """Leave something for the owner, if there is one or not."""
        row.inbox.append(entry)
        self.world.poke(row)

    # Owning

    def own(self, row: Row, worker: Worker) -> int:
        """Make a worker the owner; every earlier owner's writes are refused from now on."""
        row.owner = worker
        row.fence += 1
        return row.fence

    def disown(self, row: Row, wake_at: int | None) -> None:
        """The row has no owner until it is to wake, or something arrives for it."""
        row.owner = None
        row.wake_at = wake_at
        if wake_at is not None:
            self.world.at(wake_at, self.wake, row, wake_at)
        if row.inbox:
            self.world.poke(row)

    def begin(self, row: Row, key: RunKey) -> int:
        """Note that an attempt is begun, perhaps again; reports of an earlier beginning are refused from now on."""
        row.begun[key] = row.begun.get(key, 0) + 1
        return row.begun[key]

    def is_report_current(self, row: Row, run: RunFence) -> bool:
        return row.begun[run[0]] == run[1]

    def wake(self, row: Row, wake_at: int) -> None:
        if row.owner is None and row.wake_at == wake_at:
            self.world.poke(row)

    # Writing

    def write(self, commit: Commit) -> Answer:
        """All of the commit, or nothing; with faults about, the answer may be lost either way."""
        if not self.is_current(commit):
            return Answer.REFUSED
        faults = self.world.faults
        if faults.strike("abort"):
            self.world.sometimes["retry after an aborted commit"] += 1
            return Answer.ABORTED
        if faults.strike("lost answer"):
            if faults.coin():
                self._write(commit)
            return Answer.LOST
        if self.world.is_log_first and faults.strike(_cut_of(commit)):
            self._append(commit)
            return Answer.CUT
        self._write(commit)
        return Answer.WRITTEN

    def is_current(self, commit: Commit) -> bool:
        """Whether the writer still owns the execution and knows its whole log."""
        row = commit.row
        return row.fence == commit.fence and len(row.log) == commit.seq

    def _write(self, commit: Commit) -> None:
        row = commit.row
        self._append(commit)
        self.catch_up(row)
        self._follow_up(row, commit)
        self.tell(row, commit.commands)

    def _append(self, commit: Commit) -> None:
        row = commit.row
        row.seqs.extend(range(commit.seq + 1, commit.seq + 1 + len(commit.events)))
        row.log += commit.events
        row.handled += commit.entries

    def catch_up(self, row: Row) -> None:
        """Project what the columns do not know yet; an entry of the log names what of the inbox it has handled."""
        unknown, handled = row.log[row.projected :], row.handled
        row.projected, row.handled = len(row.log), []
        for entry in handled:
            row.inbox.remove(entry)
            if entry.run is not None and row.leases.get(entry.run[0]) == entry.run[1]:
                del row.leases[entry.run[0]]
        for event in unknown:
            self._project(row, event)
        self._settle_slot(row, handled)

    def _project(self, row: Row, event: Event) -> None:
        """Keep the columns others look at."""
        kind = type(event)
        if kind in ENDS:
            row.end = ENDS[kind]
            row.is_paused = False
            self._give_back(row, event.at)
            self._free_key(row, event.at)
            if row.end.is_reopenable or (row.letters and row.end is ExecutionState.SUCCESS):
                self.world.people.notice_failure(row)
        elif isinstance(event, SlotReleased):
            self._give_back(row, event.at)
        elif isinstance(event, ExecutionStarted | SlotTaken):
            row.slot = Slot.HELD
            row.has_started = True
            # It had its key already, and lost it if it ended and was reopened in the same commit.
            if row.key is not None and row.id not in self.keys[row.key]:
                self.keys[row.key].append(row.id)
        elif isinstance(event, ExecutionReopened):
            row.end = None
        elif isinstance(event, ExecutionPaused | ExecutionResumed | OutcomeDecided):
            row.is_paused = isinstance(event, ExecutionPaused)
        elif isinstance(event, NodeFailed | ItemFailed):
            if event.gave_up is not None:
                row.letters.append((event.node, event.item if isinstance(event, ItemFailed) else None))
                if row.plan.keeps_letters[row.plan.index[event.node]] and self.world.chance.random() < 0.3:
                    self.world.people.notice_letter(row)
        elif isinstance(event, ItemsGivenUp):
            row.letters.extend((event.node, item) for item in event.items)
        elif isinstance(event, RunWaiting):
            self.world.outside.expect(row, event)
            if isinstance(event.wait, ChildWait):
                self.world.people.notice_child(row)

    def tell(self, row: Row, commands: Iterable[Command]) -> None:
        """Write what commands say to other executions into the inboxes of those."""
        for command in commands:
            if isinstance(command, StartChild):
                self.world.start_child(row, command)
            elif isinstance(command, Finish):
                self._tell_parent(row)
            elif (verb := verb_of_parent(command)) is not None and verb[0] in self.rows:
                self.post(self.rows[verb[0]], Entry(verb[1], is_for_parent=True))

    def _tell_parent(self, row: Row, *, stands: bool = False) -> None:
        if row.parent is not None:
            end = next(event for event in reversed(row.log) if type(event) in ENDS)
            opening = sum(isinstance(event, ExecutionReopened) for event in row.log)
            decided = next((each for each in reversed(row.log) if isinstance(each, OutcomeDecided)), None)
            undone = decided is not None and bool(decided.undone)
            ended = end_of_child(row.parent, end, opening, self.world.chance.random(), undone=undone)
            self.post(self.rows[row.parent.execution], Entry(replace(ended, output=row.id, stands=stands)))

    def _follow_up(self, row: Row, commit: Commit) -> None:
        for entry in commit.accepted:
            if entry.then is not None:
                self.post(self.rows[entry.then[0]], Entry(entry.then[1], is_for_parent=True))
        # A parent that waits for a child which could not be reopened is told that its end stands.
        is_asked = any(
            entry.is_for_parent and isinstance(entry.signal, Retry | Requeue | Fix) for entry in commit.entries
        )
        if is_asked and row.end is not None and not any(type(event) in ENDS for event in commit.events):
            self._tell_parent(row, stands=True)

    # Slots

    def enqueue(self, row: Row) -> None:
        """Ask for a slot, once."""
        if row.slot is Slot.NONE:
            row.slot = Slot.QUEUED
            self.queue.append(row)
            self.world.after(self.world.moment(), self.dispatch)

    def dispatch(self) -> None:
        """Hand free slots out: first to what has started before or has a parent, oldest first."""
        waiting = sorted(self.queue, key=lambda row: not (row.has_started or row.parent))
        for row in waiting:
            if self.in_use >= self.slots:
                self.world.sometimes["capacity wait"] += 1
                return
            if self._take_key(row):
                self.queue.remove(row)
                row.slot = Slot.GRANTED
                self.in_use += 1
                self.post(row, Entry(Start()))

    def _take_key(self, row: Row) -> bool:
        """Beside ancestors, and beside no others: siblings come one after the other."""
        holders = [] if row.key is None else self.keys.setdefault(row.key, [])
        above = None if row.parent is None else row.parent.execution
        if row.key is None or row.id in holders:
            return True
        if any(holder != above for holder in holders):
            return False
        holders.append(row.id)
        return True

    def _free_key(self, row: Row, at: int) -> None:
        if row.key is not None and row.id in self.keys.get(row.key, ()):
            self.keys[row.key].remove(row.id)
            self.freed_at = max(self.freed_at, at)
            self.world.after(0, self.dispatch)

    def _give_back(self, row: Row, at: int) -> None:
        if row.slot is Slot.HELD:
            self._free(row, at)

    def _settle_slot(self, row: Row, entries: list[Entry]) -> None:
        """A slot that was granted but not wanted any more goes back."""
        if row.slot is Slot.GRANTED and any(isinstance(entry.signal, Start) for entry in entries):
            self._free(row, 0)
            if row.end is not None:
                self._free_key(row, 0)

    def _free(self, row: Row, at: int) -> None:
        row.slot = Slot.NONE
        self.in_use -= 1
        self.freed_at = max(self.freed_at, at)
        self.world.after(0, self.dispatch)

"""A worker: owns executions under a fence, decides with the core, commits, and only then carries out commands.

Its faults are those of a process: it dies at any step, freezes and comes back not knowing it was replaced, is robbed of
an execution while alive, stops in good order, and believes in its own clock.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ropewalk.core.commands import Command, NeedSlot, RunNode, StopRun, WakeAt
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import InvalidTransition, NotFound
from ropewalk.core.execution import Execution
from ropewalk.core.execution.resuming import lost, under_way
from ropewalk.core.execution.work import Phase
from ropewalk.core.signals import Cancel, Due, Fix, Requeue, Resume, Retry, Returned, Signal, Start, Succeeded
from tests.simulator.store import RIVAL, Answer, Commit, Entry, Row, RunKey

if TYPE_CHECKING:
    from tests.simulator.outside import Attempt
    from tests.simulator.world import World

LEASE: Final = 15 * SECOND
REOPENING: Final = (Retry, Requeue, Fix)


class Held:
    """One execution in a worker's memory."""

    __slots__ = ("execution", "fence", "reports", "row", "wake_at")

    def __init__(self, row: Row, fence: int, execution: Execution) -> None:
        self.row = row
        self.fence = fence
        self.execution = execution
        self.reports: deque[Signal] = deque()
        self.wake_at: int | None = None


class Prepared(Struct):
    """A commit that is decided but not yet written."""

    held: Held
    commit: Commit
    reports: list[Signal]


def fold(row: Row) -> Execution:
    """What the log says, and nothing else."""
    execution = Execution(row.plan)
    execution.apply(row.log)
    return execution


def take_up(row: Row) -> Execution:
    """The same, to be gone on with as workers do: on the beaten way of its plan, if nothing has happened yet."""
    execution = Execution.on_the_beaten_way(row.plan)
    execution.apply(row.log)
    return execution


class Worker:
    """One process."""

    def __init__(self, world: World, name: str, skew: int) -> None:
        self.world = world
        self.name = name
        self.skew = skew
        self.is_alive = True
        self.is_stopping = False
        self.is_frozen = False
        self.frozen_until = 0
        self.held: dict[str, Held] = {}
        self.running: dict[tuple[str, RunKey], Attempt] = {}
        self.unwritten: list[Prepared] = []

    def __repr__(self) -> str:
        return self.name

    @property
    def is_awake(self) -> bool:
        return self.is_alive and not self.is_frozen

    @property
    def clock(self) -> int:
        """What this worker takes for the time."""
        return self.world.now + self.skew

    # Owning

    def take(self, row: Row) -> None:
        """Become the owner: fold the log, and see to everything that ought to be under way."""
        previous = row.owner
        self.world.store.catch_up(row)
        held = Held(row, self.world.store.own(row, self), take_up(row))
        self.held[row.id] = held
        self.world.note(self, "takes {} from {} with fence {}", row, previous, held.fence)
        commands = held.execution.outstanding()
        if previous is not None and self.world.is_log_first:
            # The one before may have died between the log and all that was to follow.
            self.world.store.tell(row, commands)
        if previous is not None:
            self.declare_lost(held)
            commands = [command for command in commands if not isinstance(command, RunNode)]
        self.carry_out(held, commands)
        self.work(row)

    def declare_lost(self, held: Held) -> None:
        """What the previous owner ran ended with it; what others leased goes on."""
        for attempt in under_way(held.execution):
            if attempt not in held.row.leases:
                held.reports.append(lost(attempt, self.world.chance.random()))

    def work(self, row: Row) -> None:
        """Handle what there is for the row, one commit after the other."""
        held = self.held.get(row.id)
        if held is None:
            return
        if self.world.faults.strike("freeze"):
            self.freeze()
        if self.world.faults.strike("spurious wake"):
            held.reports.append(Due())
        while self.is_awake and self.held.get(row.id) is held and (prepared := self._prepare(held)):
            self._commit(prepared)
        if self.is_awake and self.held.get(row.id) is held:
            self._rest(held)

    def _rest(self, held: Held) -> None:
        """Let go of what is over or only waits."""
        row = held.row
        is_over = held.execution.state.is_ended
        if row.owner is not self or (not is_over and not self._may_park(held)):
            return
        del self.held[row.id]
        self.world.note(self, "closes {}" if is_over else "parks {}", row)
        self.world.store.disown(row, held.wake_at)

    def _may_park(self, held: Held) -> bool:
        return held.execution.is_parked and self.world.chance.random() < 0.8

    # Deciding

    def _prepare(self, held: Held) -> Prepared | None:
        """Decide what the next signals mean: all that are there, as one group commit, or only the first."""
        is_group = self.world.chance.random() < 0.6
        reports = list(held.reports) if is_group else list(held.reports)[:1]
        entries = list(held.row.inbox) if held.row.owner is self and (is_group or not reports) else []
        if not is_group:
            entries = entries[:1]
        if not reports and not entries:
            return None
        for _ in reports:
            held.reports.popleft()
        seq = held.execution.seq
        commit = Commit(held.row, held.fence, seq, [], [], entries, [])
        for report in reports:
            self._decide(held, report, commit)
        for entry in entries:
            if self._decide(held, entry.signal, commit, entry):
                commit.accepted.append(entry)
        commit.commands += held.execution.take_commands()
        return Prepared(held, commit, reports)

    def _decide(self, held: Held, signal: Signal, commit: Commit, entry: Entry | None = None) -> bool:
        """Let the core decide about one signal; a person's request may be refused."""
        execution = held.execution
        now = max(self.clock, self.world.store.freed_at) if isinstance(signal, Start) else self.clock
        try:
            if entry is not None:
                self._admit(held, entry)
            events = execution.handle(signal, now)
        except (InvalidTransition, NotFound) as refusal:
            assert not execution.events, f"{signal} was refused after {execution.events}"
            self.world.note(self, "{} refuses {}: {}", held.row, signal, refusal)
            self._count_refusal(signal)
            return False
        self.world.note(self, "{} {} → {}", held.row, signal, events)
        self._count(held, signal, bool(events))
        commit.events += events
        return True

    def _admit(self, held: Held, entry: Entry) -> None:
        """Refuse what must not reach the core: reports of a run that began anew, verbs behind a parent's back."""
        if entry.run is not None and not self.world.store.is_report_current(held.row, entry.run):
            raise InvalidTransition("the run has begun again since")
        if held.row.parent is None or entry.is_for_parent:
            return
        if isinstance(entry.signal, REOPENING) and held.execution.state.is_ended:
            raise InvalidTransition("a child is reopened through its parent")
        if isinstance(entry.signal, Resume) and self.world.store.rows[held.row.parent.execution].is_paused:
            raise InvalidTransition("a child is resumed by its parent")

    def _count_refusal(self, signal: Signal) -> None:
        if isinstance(signal, Requeue) and signal.by == RIVAL:
            self.world.sometimes["requeue race"] += 1

    def _count(self, held: Held, signal: Signal, has_events: bool) -> None:
        if isinstance(signal, Cancel) and has_events and any(key[0] == held.row.id for key in self.running):
            self.world.sometimes["cancel against completion"] += 1
        if isinstance(signal, Succeeded) and not has_events:
            self.world.sometimes["late or repeated success"] += 1

    # Committing

    def _commit(self, prepared: Prepared) -> None:
        faults = self.world.faults
        if faults.strike("crash before commit"):
            self.crash()
        elif faults.strike("freeze in commit"):
            self.unwritten.append(prepared)
            self.freeze()
        elif faults.strike("graceful stop") and not self.is_stopping:
            self._write(prepared)
            self.stop()
        else:
            self._write(prepared)

    def _write(self, prepared: Prepared) -> None:
        held, commit = prepared.held, prepared.commit
        answer = self.world.store.write(commit)
        self.world.note(self, "{} commit of {} after {}: {}", held.row, len(commit.events), commit.seq, answer.value)
        if answer is Answer.CUT:
            self.world.sometimes["crash between the log and its rows"] += 1
            self.crash()
        elif self.world.faults.strike("crash after commit"):
            self.world.sometimes["crash between commit and reply"] += 1
            self.crash()
        elif answer is Answer.REFUSED:
            self.world.sometimes["completion refused by fence"] += 1
            self.held.pop(held.row.id, None)
        elif answer is Answer.WRITTEN or (answer is Answer.LOST and self._is_written(commit)):
            self.carry_out(held, commit.commands)
            if self.world.faults.strike("theft"):
                self.world.after(self.world.moment(), self.world.steal, held.row)
        else:
            self._begin_again(held, prepared.reports)

    def _is_written(self, commit: Commit) -> bool:
        """A commit whose answer was lost is looked up, not repeated."""
        return len(commit.row.log) > commit.seq

    def _begin_again(self, held: Held, reports: list[Signal]) -> None:
        """Nothing was written: forget what was decided, keep what was reported."""
        held.execution = take_up(held.row)
        held.reports.extendleft(reversed(reports))
        self.carry_out(held, [each for each in held.execution.outstanding() if isinstance(each, WakeAt | NeedSlot)])

    # Carrying out

    def carry_out(self, held: Held, commands: list[Command]) -> None:
        """Do what the committed events ask for; what concerns other executions was in the commit."""
        for command in commands:
            if not self.is_alive:
                return
            if isinstance(command, RunNode):
                self._run(held, command)
            elif isinstance(command, StopRun):
                self.world.outside.stop(self, held.row, command)
            elif isinstance(command, NeedSlot):
                self.world.store.enqueue(held.row)
            elif isinstance(command, WakeAt):
                self._set_wake(held, command.at)
            if self.world.faults.strike("crash between commands"):
                self.crash()

    def _run(self, held: Held, command: RunNode) -> None:
        """Begin an attempt, unless it is under way, or a later signal of the same commit has ended it already."""
        key = (command.node, command.item, command.attempt)
        work = held.execution.work(command.node, command.item)
        is_wanted = work is not None and work.phase is Phase.RUNNING and work.attempt == command.attempt
        is_under_way = (held.row.id, key) in self.running or key in held.row.leases
        if is_wanted and not is_under_way and not self.is_stopping:
            self.world.outside.begin(self, held, command)

    def _set_wake(self, held: Held, at: int | None) -> None:
        held.wake_at = at
        if at is not None:
            self.world.at(max(self.world.now, at - self.skew), self._due, held, at)

    def _due(self, held: Held, at: int) -> None:
        if not self.is_alive or self.held.get(held.row.id) is not held or held.wake_at != at:
            return
        if not self.is_awake:
            self.world.at(self.frozen_until, self._due, held, at)
            return
        held.reports.append(Due())
        self.work(held.row)

    def report(self, row: Row, signal: Signal) -> None:
        """An attempt of this worker tells how it went."""
        held = self.held.get(row.id)
        if held is not None:
            held.reports.append(signal)
            self.work(row)

    # Ends of a worker

    def crash(self) -> None:
        """Everything in memory is gone; others notice when the lease has run out."""
        self.world.note(self, "dies")
        self._leave()
        self.world.after(LEASE + self.world.moment(), self.reap)

    def freeze(self) -> None:
        """Stand still for a while, perhaps longer than the lease."""
        chance = self.world.chance
        length = chance.choice((1, 3, 18, 40)) * SECOND
        self.world.note(self, "freezes for {} s", length // SECOND)
        self.is_frozen = True
        self.frozen_until = self.world.now + length
        self.world.at(self.frozen_until, self.thaw)
        self.world.after(LEASE + self.world.moment(), self.reap)

    def thaw(self) -> None:
        """Go on as if nothing had happened: first with the writes that were under way."""
        if not self.is_alive:
            return
        self.is_frozen = False
        self.world.note(self, "thaws")
        unwritten, self.unwritten = self.unwritten, []
        for prepared in unwritten:
            if self.is_awake and self.held.get(prepared.held.row.id) is prepared.held:
                self._write(prepared)
        for held in list(self.held.values()):
            if self.is_awake:
                self.work(held.row)

    def stop(self) -> None:
        """Hand everything back in good order."""
        self.world.note(self, "stops")
        self.is_stopping = True
        for held in list(self.held.values()):
            if self.is_awake:
                self._hand_back(held)
        if self.is_awake and not self.held:
            self._leave()
        elif self.is_alive:
            self.crash()

    def _hand_back(self, held: Held) -> None:
        row = held.row
        for key in [key for key in self.running if key[0] == row.id]:
            del self.running[key]
            node, item, attempt = key[1]
            held.reports.append(Returned(node, attempt, item))
        self.work(row)
        if self.is_awake and self.held.get(row.id) is held:
            del self.held[row.id]
            if row.owner is self:
                self.world.store.disown(row, held.wake_at)
                self.world.after(self.world.moment(), self.world.attend_orphan, row)

    def _leave(self) -> None:
        self.is_alive = False
        self.held.clear()
        self.running.clear()
        self.unwritten.clear()
        self.world.workers.remove(self)
        self.world.after(self.world.moment(), self.world.hire)

    def reap(self) -> None:
        """The lease of this worker has run out: others take over what it owned."""
        if self.is_awake:
            return
        for row in list(self.world.store.rows.values()):
            if row.owner is self:
                if self.is_alive:
                    self.world.sometimes["lease expiry with the old worker alive"] += 1
                self.world.adopt(row)

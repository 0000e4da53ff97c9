"""One pass through one workflow version: told signals, it records events and says what is to be done.

    events = execution.handle(signal, now)     # decides; refuses a person's illegal request; ignores late reports
    commands = execution.take_commands()       # newly to be done, once those events are durable

What follows from an event can only be decided on the state after it, so `handle` records each event by
applying it: deciding live and folding a log go through the same functions. If the events cannot be made
durable, throw the instance away and fold the log again.

The state is in `progress.py`; the rules are in `deciding.py` (reports, arrivals), `verbs.py` (people) and
`settling.py` (what every signal ends with); what each event changes is in `evolving.py`, `evolving_whole.py` and
`evolving_end.py`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Self

from ropewalk.core.commands import (
    CancelChild,
    Command,
    Finish,
    NeedSlot,
    PauseChild,
    ReopenChild,
    ResumeChild,
    RunNode,
    StartChild,
    StopRun,
    WakeAt,
)
from ropewalk.core.events import Event, ExecutionAccepted
from ropewalk.core.execution import deciding, trail, verbs
from ropewalk.core.execution.evolving_whole import evolve
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.settling import settle
from ropewalk.core.execution.work import Phase, Work
from ropewalk.core.plan import Plan
from ropewalk.core.signals import (
    Abandon,
    Cancel,
    ChildEnded,
    ChildReopened,
    Decide,
    Due,
    Evaluated,
    Expanded,
    Failed,
    Fix,
    GiveUp,
    Lost,
    Matched,
    Pause,
    Released,
    Requeue,
    Resume,
    Retry,
    Returned,
    Signal,
    Start,
    Succeeded,
    Suspended,
    Tell,
)
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import ChildWait


class Execution(Progress):
    """The machine: signals in, events and commands out."""

    __slots__ = ("_latest", "_wake_told")

    def __init__(self, plan: Plan, place: trail.Place | None = None) -> None:
        super().__init__(plan, place)
        self._wake_told: int | None = None
        # The latest moment it was told of: what was due by then may be in line already, without an event to say so.
        self._latest = 0

    @classmethod
    def on_the_beaten_way(cls, plan: Plan) -> Self:
        """The same at less cost for one of many of a plan; only the machine may look at where its nodes are."""
        if plan.trail is None:
            plan.trail = trail.Trail(cls(plan))
        return cls(plan, plan.trail.start)

    def handle(self, signal: Signal, now: int) -> list[Event]:
        """Decide what `signal` means and return the events it causes, already applied."""
        return self.handle_all((signal,), now)

    def handle_all(self, signals: Sequence[Signal], now: int) -> list[Event]:
        """The same for reports that came together: what follows from all of them is decided once."""
        # Event time never goes back, though a worker's clock may.
        if now < self._latest:
            now = self._latest
        self._latest = now
        place = self.place
        if place is None:
            self._decide(signals, now)
        else:
            step = place.steps.get(trail.reports_of(signals))
            if step is None or not trail.take(self, step, signals, now):
                self._leave_the_way(place, signals, now)
        if self.is_timed and self.wake_at != self._wake_told:
            self._tell_wake()
        events, self.events = self.events, []
        if events:
            self.now = now
            self.seq += len(events)
        return events

    def _decide(self, signals: Sequence[Signal], now: int) -> None:
        """By the rules."""
        for signal in signals:
            DECIDE[type(signal)](self, signal, now)
        if not self.is_ended:
            settle(self, now)

    def _leave_the_way(self, place: trail.Place, signals: Sequence[Signal], now: int) -> None:
        """Decide by the rules; what follows is remembered for the executions that come to this place later."""
        self.lay_out()
        before = len(self.commands)
        self._decide(signals, now)
        reports = trail.reports_of(signals)
        if reports is not None:
            trail.remember(self, place, reports, self.commands[before:])

    def take_commands(self) -> list[Command]:
        """What the last signals newly asked for; to be done once their events are durable."""
        commands, self.commands = self.commands, []
        return commands

    def apply(self, events: Iterable[Event]) -> None:
        """Fold recorded events; never refuses a fact. Then ask `outstanding()`."""
        for event in events:
            if type(event) is not ExecutionAccepted:
                self.lay_out()
            evolve(self, event)
        self.commands.clear()
        self._wake_told = self.wake_at
        self._latest = self.now

    def outstanding(self) -> list[Command]:
        """Everything that ought to be under way, and what other executions ought to know, in document order.

        All of it follows from the log alone, so an engine that has lost what it meant to do or to tell asks here. To
        be told twice changes nothing.
        """
        commands = [command for work in self.active_works() for command in self._outstanding(work)]
        if self.place is None:
            commands += (CancelChild(child) for child in self.called_off)
        if self.is_ended:
            commands.append(Finish(self.state))
        if self.needs_slot:
            commands.append(NeedSlot())
        if self.wake_at is not None:
            commands.append(WakeAt(self.wake_at))
        return commands

    def _outstanding(self, work: Work) -> list[Command]:
        node = self.plan.ids[work.node]
        if work.phase is Phase.RUNNING:
            run = RunNode(node, work.attempt, work.item)
            return [run] if self.grace_until is None else [run, StopRun(node, work.attempt, work.item)]
        if work.phase is Phase.WAITING and isinstance(work.wait, ChildWait):
            return self._outstanding_child(node, work, work.wait)
        return []

    def _outstanding_child(self, node: str, work: Work, wait: ChildWait) -> list[Command]:
        commands: list[Command] = [StartChild(node, work.attempt, wait, work.item)]
        if self.ending is not None:
            # Also one that is yet to be started: an end that is waited for has to come.
            return [*commands, CancelChild(wait.child)]
        if work.opening is not None:
            commands.append(ReopenChild(wait.child, work.opening))
        if self.state is ExecutionState.PAUSED:
            commands.append(PauseChild(wait.child))
        elif self.was_resumed:
            commands.append(ResumeChild(wait.child))
        return commands

    def _tell_wake(self) -> None:
        self._wake_told = self.wake_at
        if not self.is_ended:
            self.commands.append(WakeAt(self._wake_told))


DECIDE: Final[dict[type, Callable[[Progress, Any, int], None]]] = {
    Start: deciding.start,
    Due: deciding.due,
    Succeeded: deciding.succeeded,
    Failed: deciding.failed,
    Suspended: deciding.suspended,
    Expanded: deciding.expanded,
    Evaluated: deciding.evaluated,
    Returned: deciding.returned,
    Lost: deciding.lost,
    Decide: deciding.decide,
    Tell: deciding.tell,
    Matched: deciding.matched,
    Released: deciding.released,
    ChildEnded: deciding.child_ended,
    ChildReopened: deciding.child_reopened,
    Pause: verbs.pause,
    Resume: verbs.resume,
    Cancel: verbs.cancel,
    Retry: verbs.retry,
    Requeue: verbs.requeue,
    Fix: verbs.fix,
    GiveUp: verbs.give_up_by_hand,
    Abandon: verbs.abandon,
}

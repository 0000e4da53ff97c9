"""Signal → machine → commit: every decision about an execution in memory is made here.

What the machine says goes into the next commit, what it asks for is done after that (`carrying_out.py`).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from ropewalk.core.commands import RunNode, WakeAt
from ropewalk.core.events import Event
from ropewalk.core.execution.resuming import first_signals
from ropewalk.core.signals import Due, Signal, Start
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.hands import Hands
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.outbox import write_down
from ropewalk.engines.native.reports import Reports
from ropewalk.engines.native.timers import Timers
from ropewalk.store.access import Store

GiveUp = Callable[[list[Live], Exception], None]
"""Forgets what was decided about these executions, and takes them up again from their logs."""

_log = logging.getLogger("ropewalk.engine")


class Deciding:
    """Tells executions in memory what happened, and drops those that cannot go on here."""

    def __init__(self, store: Store, memory: Memory, commit: GroupCommit, hands: Hands, reports: Reports,
                 give_up: GiveUp) -> None:  # fmt: skip
        self._store = store
        self._memory = memory
        self._commit = commit
        self._hands = hands
        self._give_up = give_up
        self._hungry: deque[Live] = deque()
        self.timers: Timers[Live] = Timers(store.now, self.due)
        reports.decide = self._take_all
        memory.on_unwanted = self.let_go

    def signal(self, live: Live, signal: Signal) -> list[Event]:
        """Let the machine decide; what it says goes into the next commit.

        An execution that was let go of is told nothing.
        """
        if live.reports:
            self._take_reports(live, self._store.now())
        return self._tell_together(live, (signal,), self._store.now())

    def _tell_together(self, live: Live, signals: Sequence[Signal], now: int) -> list[Event]:
        """The same for several that came in one turn of the loop."""
        if live.is_dropped:
            return []
        x, hands = live.execution, self._hands
        x.room = hands.room
        events = x.handle_all(signals, now)
        if events:
            live.events = [*live.events, *events] if live.events else events
        commands = x.take_commands()
        live.commands = [*live.commands, *commands] if live.commands else commands
        runs = 0
        for command in commands:
            if type(command) is RunNode:
                runs += 1
        # All of them first: a later fault drops the execution, and counts on that.
        hands.promised += runs
        if runs < len(commands):
            write_down(live, commands)
        if not live.is_dirty and (events or live.commands):
            self._commit.add(live)
        if x.has_more and x.has_slot:
            self._remember_hungry(live)
        return events

    # What attempts reported: before anything else that such an execution is told

    def _take_all(self, lives: list[Live]) -> None:
        now = self._store.now()
        for live in lives:
            try:
                self._take_reports(live, now)
            except Exception as error:  # noqa: BLE001 -- a fault of ours concerns one execution, not its neighbours
                _log.exception("execution %s: what was reported cannot be taken in", live.id)
                self._give_up([live], error)
        self.feed()

    def _take_reports(self, live: Live, now: int) -> None:
        reports = live.reports
        if not reports:
            return
        live.reports = []
        live.unwritten = [*live.unwritten, *reports] if live.unwritten else reports
        self._tell_together(live, reports, now)
        if not live.is_dirty:
            self.let_go(live)  # they came too late to change anything

    # Slots, hands and time

    def take_slot(self, live: Live) -> None:
        """The execution has a slot; it starts what it can. One it did not need is given back by the commit."""
        live.has_slot = True
        self.signal(live, Start())
        if not live.is_dirty:
            self._commit.add(live)

    def resume(self, live: Live, reports: Iterable[Signal] = (), *, has_slot: bool = True) -> None:
        """Let an execution go on whose log was folded, in the slot that it has or may take."""
        for signal in first_signals(live.execution, reports, has_slot=has_slot):
            live.has_slot |= type(signal) is Start
            self.signal(live, signal)
        # The machine has told of its wake-up before the log was folded, and does not tell of it again.
        live.commands = [*live.commands, WakeAt(live.execution.wake_at)]
        # Also if nothing came of it, so that its row says so.
        self._commit.add(live)

    def due(self, live: Live) -> None:
        """Its time has come, or there is room for what it has ready."""
        if not self._memory.owns(live):
            return
        try:
            self.signal(live, Due())
        except Exception as error:  # noqa: BLE001 -- a fault of ours concerns one execution, not its neighbours
            _log.exception("execution %s: what is due cannot be decided", live.id)
            self._give_up([live], error)

    def _remember_hungry(self, live: Live) -> None:
        """It has more to start than there are hands; it is asked again when one is free."""
        if not live.is_hungry:
            live.is_hungry = True
            self._hungry.append(live)

    def feed(self) -> None:
        """Start what was ready when all hands were busy, as far as there is room now."""
        for _ in range(len(self._hungry)):
            if not self._hands.room:
                break
            live = self._hungry.popleft()
            live.is_hungry = False
            if live.execution.has_more:
                self.due(live)

    # Leaving memory

    def let_go(self, live: Live) -> None:
        """An execution that has nothing to do here leaves memory; if the store says it is ours, that is undone."""
        if live.is_idle and not live.is_dropped:
            if live.is_recorded_as_owned:
                self._commit.add(live)
            else:
                self._memory.forget(live)

    def drop(self, live: Live) -> None:
        """Forget an execution and stop what it runs; the store says whose it is."""
        live.is_dropped = True
        self._hands.drop(live)
        self._commit.forget(live)
        self._hands.promised -= sum(1 for command in live.commands if type(command) is RunNode)
        # What a commit under way has taken along comes back with it, and is counted then.
        live.commands = ()
        self._memory.forget(live)
        self._memory.left(live)
        asyncio.get_running_loop().call_soon(self.feed)

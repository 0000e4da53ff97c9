"""After a commit: what became durable is told, and what it asks for is done."""

import logging
from collections.abc import Iterator

from ropewalk.core.commands import Command, EvaluateOutput, NeedSlot, RunNode, StopRun, WakeAt
from ropewalk.engines.base import Breakers, Observer
from ropewalk.engines.native.claims import Claims
from ropewalk.engines.native.deciding import Deciding, GiveUp
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.observing import log_failures, observe
from ropewalk.engines.native.offers import Offers
from ropewalk.engines.native.outputs import Outputs
from ropewalk.engines.native.parts import Committed
from ropewalk.engines.publishing import Publishing
from ropewalk.engines.reporting import Deliver
from ropewalk.engines.watching import Watching
from ropewalk.store.access import Store

_log = logging.getLogger("ropewalk.engine")


class CarryingOut:
    """Carries out the commands of executions."""

    def __init__(self, store: Store, watching: Watching, publishing: Publishing, breakers: Breakers, memory: Memory,
                 deciding: Deciding, claims: Claims, offers: Offers, outputs: Outputs, deliver: Deliver,
                 give_up: GiveUp) -> None:  # fmt: skip
        self._store = store
        self._watching = watching
        self._publishing = publishing
        self._breakers = breakers
        self._memory = memory
        self._deciding = deciding
        self._claims = claims
        self._offers = offers
        self._outputs = outputs
        self._deliver = deliver
        self._give_up = give_up
        self.observer: Observer | None = None

    def carry_out(self, committed: list[Committed]) -> None:
        """A commit is durable: say so, and do what it asks for; what fails for one execution stops no other."""
        if self.observer is not None:
            observe(self.observer, committed)
        now, is_followed = self._store.now(), self._watching.has_listeners
        for each in committed:
            # What is left of them after a failure has not been done, and its hands are free again.
            left = iter(each.commands)
            try:
                # Of one that goes on in its slot only those hear who listen.
                if not each.has_slot or each.live.written.event_waits:
                    self._after_commit(each)
                if each.failures:
                    log_failures(each)
                if is_followed or each.is_ended:
                    self._watching.publish(each)
                self._follow(each, left, now)
            except Exception as error:  # noqa: BLE001 -- a fault of ours concerns one execution, not its neighbours
                _log.exception("execution %s: what its commit asks for cannot be carried out", each.live.id)
                each.live.commands = [*each.live.commands, *left]
                self._give_up([each.live], error)
        self._deciding.feed()  # what was promised a hand may have gone to others

    def _after_commit(self, each: Committed) -> None:
        live = each.live
        if live.has_slot and not each.has_slot:
            live.has_slot = False
            self._claims.freed()
            # A timer it had while it held the slot is the claims' to watch from now on.
            self._wake_at(live, live.execution.wake_at)
        elif each.is_ended and live.accepted.concurrency_key is not None:
            self._claims.freed()
        if live.written.queued is not None:
            self._claims.asked()
        if each.is_ended and self._offers.has_others:
            self._store.hint(live.id)
        if live.written.event_waits:
            self._publishing.doubt(each, self._breakers)

    def _follow(self, each: Committed, commands: Iterator[Command], now: int) -> None:
        live = each.live
        for command in commands:
            if type(command) is RunNode:
                self._offers.place(live, command, now)
            else:
                self._do(live, command)
        if each.post:
            self._deliver(each.post)
        if each.leaves:
            self._memory.left(live)
        elif not live.has_slot:
            self._deciding.let_go(live)

    def _do(self, live: Live, command: Command) -> None:
        match command:
            case StopRun():
                self._offers.stop(live, command)
            case WakeAt(at):
                self._wake_at(live, at)
            case NeedSlot():
                self._claims.asked()
                self._store.hint("queue")
            case EvaluateOutput(seq):
                self._outputs.evaluate(live, seq)
            case _:
                return  # what concerns other executions was written down with the events, and is told from there

    def _wake_at(self, live: Live, at: int | None) -> None:
        if at is None:
            return
        if live.execution.has_slot:
            self._deciding.timers.add(at, live)
        else:
            self._claims.parked(at)

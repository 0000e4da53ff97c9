"""The native engine: signal → commit → commands, and nothing else.

A worker owns executions; they live in its memory and no other worker moves them. What only waits is parked: a row
with a wake-up time, no memory. Whatever was under way when the process died is found again by folding its log.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import uuid_utils

from ropewalk.core.commands import Command, EvaluateOutput, NeedSlot, RunNode, StopRun, WakeAt
from ropewalk.core.errors import InvalidTransition, RopewalkError, Unavailable, Unreadable, VersionLost
from ropewalk.core.events import Event
from ropewalk.core.signals import Cancel, Discard, Due, Resume, Returned, Signal, Start, check_request
from ropewalk.engines.base import Ended, NoReach, Observer, Reaches, StartRequest
from ropewalk.engines.computing import Computing
from ropewalk.engines.native.breakers import SharedBreakers, WorkerBreakers
from ropewalk.engines.native.children import Children
from ropewalk.engines.native.claims import Claims
from ropewalk.engines.native.commit import Committed, GroupCommit
from ropewalk.engines.native.dlq import LetterDecisions
from ropewalk.engines.native.evaluating import Evaluating
from ropewalk.engines.native.followers import Followers
from ropewalk.engines.native.hands import Hands
from ropewalk.engines.native.lending import Lending
from ropewalk.engines.native.letters import Letters
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.losing import cancel_lost
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.observing import log_failures, observe
from ropewalk.engines.native.offers import Offers
from ropewalk.engines.native.ownership import OneOfMany, OwnedElsewhere, SoleOwner
from ropewalk.engines.native.publishing import Held
from ropewalk.engines.native.rate_limits import RateLimits
from ropewalk.engines.native.recovery import Recovery
from ropewalk.engines.native.reports import Reports
from ropewalk.engines.native.settings import DEFAULT_POOL, NativeSettings
from ropewalk.engines.native.shelf import WorkerShelf
from ropewalk.engines.native.takeover import Takeover
from ropewalk.engines.native.timers import Timers
from ropewalk.engines.runner import Desk
from ropewalk.nodes.base import Facilities, Registry
from ropewalk.store import executions
from ropewalk.store.access import CONNECTED, Store
from ropewalk.store.suspicion import SET_ASIDE

Remember = Callable[[str], tuple[Any, ...]]
"""Gives the row of an idempotency key from the id of the execution that was accepted under it."""
WORKFLOWS = "workflows"
"""The topic of hints that one was changed."""
RATE_LIMITS = "rate-limits"
"""The topic of hints that those of a workspace were changed."""

_log = logging.getLogger("ropewalk.engine")


class NativeEngine:
    """A worker: executes workflows alone on an embedded store, or with others on a shared one."""

    def __init__(self, store: Store, types: Registry, facilities: Facilities, settings: NativeSettings,
                 reaches: Reaches | None = None) -> None:  # fmt: skip
        self.store = store
        self.settings = settings
        self.types = types
        self.ownership = OneOfMany(store) if store.is_shared else SoleOwner(store)
        self.computing = Computing()
        self.evaluating = Evaluating(self.computing)
        self.memory = Memory(store, self.ownership, self.computing)
        self.memory.on_unwanted = self.let_go
        self.recovery = Recovery(self)
        self.commit = GroupCommit(store, self.memory, self._carry_out, self.recovery.lost_the_store)
        self.held = Held(self)
        self.breakers: WorkerBreakers | SharedBreakers = (
            SharedBreakers(store, settings.breaker, self.held.may_go)
            if store.is_shared
            else WorkerBreakers(store, self.commit.add_row, settings.breaker, self.held.may_go)
        )
        self.shelf = WorkerShelf(store.blobs, store, store.now, self.commit.add_row)
        self.rate_limits = RateLimits(store, settings.rate_limits)
        large = (self.evaluating.of_run, settings.execution_bytes)
        self._desk = desk = Desk(types, facilities, self.breakers, self.rate_limits, self.shelf, *large)
        self.reports = Reports(self)
        self.hands = Hands(desk, settings.hands, store.now, self.memory.values.load, self.reports.add, self.evaluating)
        self.timers: Timers[Live] = Timers(store.now, self._due)
        self.followers = Followers(store, self.memory.is_under_way)
        self.children = Children(self)
        self.letters = Letters(self)
        self.dlq = LetterDecisions(self)
        self.claims = Claims(self)
        self.takeover = Takeover(self)
        self.offers, self.lending = Offers(self, desk), Lending(self)
        self.observer: Observer | None = None
        # Asked by executions of actors who are no members of their workspace, and by no other.
        self.reaches = reaches or NoReach()
        self._hungry: deque[Live] = deque()
        # The idempotency keys under which something is being accepted here; each is done when that is.
        self.keys_under_way: dict[tuple[str, str, str], asyncio.Future[None]] = {}
        self.is_closing = False
        # Goes up when others say that they have changed one: what is remembered of them is to be looked up again.
        self.workflow_changes = 0

    # What others call

    async def open(self) -> None:
        """Take up everything that was under way when the last process ended."""
        self.commit.open()
        await self.breakers.load()
        await self.rate_limits.load()
        await self.recovery.take_up_left()
        await self.letters.catch_up()
        if self.settings.claims:
            self.claims.open()
        if self.store.is_shared:
            self._join_the_others()

    def _join_the_others(self) -> None:
        self.store.on_hint, self.store.on_lost = self._hinted, self.recovery.lost_the_lease
        self.followers.open()
        self.recovery.open()
        if self.settings.claims:
            self.letters.open()
            self.takeover.open()
        if self.settings.claims or self.settings.pool != DEFAULT_POOL:
            self.offers.open()

    def _hinted(self, topics: list[str]) -> None:
        """Others say that there may be something to do."""
        if "*" in topics or "queue" in topics:
            self.claims.asked()
        if "*" in topics or self.store.worker in topics:
            self.letters.asked()
        if "*" in topics or f"offer {self.settings.pool}" in topics:
            self.offers.asked()
        if "*" in topics or WORKFLOWS in topics:
            self.workflow_changes += 1
        if "*" in topics or RATE_LIMITS in topics:
            self.children.spawn(self.rate_limits.look_again())
        if CONNECTED in topics:
            # What was asked of the server before may be another answer there.
            self.memory.forget_versions()
            self.recovery.suspect_strays()
        self.lending.hinted(topics)
        self.followers.hinted(topics)

    def begin_closing(self) -> None:
        """From now on nothing new begins here."""
        self.is_closing = self.hands.is_closing = True

    async def close(self) -> None:
        """Let running nodes finish or hand them back, write everything down, and go."""
        self.begin_closing()
        if self.store.is_shared:
            self.children.spawn(self.takeover.leave())
        for watching in (self.claims, self.takeover, self.letters, self.offers):
            await watching.close()
        with suppress(RopewalkError):  # the log has said why; what runs is drained all the same
            # A commit under way may start nodes: they are to be drained or handed back like the others.
            await self.commit.settled()
        unfinished = await self.hands.drain(self.settings.drain_seconds)
        self.reports.take_all()
        for running in unfinished:
            self.signal(running.live, Returned(running.node, running.attempt, running.item))
        await self.children.close()
        await self.breakers.close()
        await self.rate_limits.close()
        try:
            await self.commit.close()
        finally:
            self.timers.close()
            self.hands.close()
            self.followers.close()
            self.computing.close()

    async def start(self, request: StartRequest, letter: str | None = None, remember: Remember | None = None) -> str:
        """Accept an execution durably; it starts in the same commit if there is a slot for it.

        `letter` asked for it, and is gone from the inbox with the same commit. `remember` gives the row of its
        idempotency key, which is written with it; Unavailable also if another server has that key already.
        """
        if self.commit.is_crowded:
            await self.commit.give_way()
        if self.is_closing:
            raise Unavailable("this worker is shutting down; start it again elsewhere or later")
        is_limited = await self.claims.limit(request.workspace) is not None
        live = await self.memory.accept(request, self.store.now())
        self.audit(live, request.actor, "start")
        if letter is not None:
            live.rows.append(("delete_inbox", (letter,)))
        if remember is not None:
            live.rows.append(("insert_idempotency", remember(live.id)))
            if self.store.is_shared:
                self.commit.set_apart(live)
        has_room = self.settings.claims and len(self.memory.lives) <= self.settings.executions
        if has_room and not is_limited and live.accepted.concurrency_key is None:
            self.take_slot(live)
        else:
            live.commands = (NeedSlot(),)
            self.commit.add(live)
        await self.commit.settled()
        # Dropped before its first commit, it was never accepted; after it, it goes on from its log.
        if live.is_dropped and await executions.load(self.store, live.id) is None:
            raise Unavailable("the start could not be written; nothing was done, try again")
        return live.id

    async def tell(self, execution: str, signal: Signal | Discard, by: str) -> bool:
        """Tell an execution something, wherever it is; False if it changed nothing."""
        check_request(signal)
        try:
            async with self.dlq.turn(execution, signal):
                return await self._tell_owned(execution, signal, by)
        except OwnedElsewhere as elsewhere:
            # Out of turn: its owner may be this worker again by the time it is told.
            if elsewhere.owner != SET_ASIDE:
                return await self.letters.ask(elsewhere, signal, by)
            await self.recovery.release_set_aside(execution, signal, by)
            return await self.tell(execution, signal, by) or isinstance(signal, Resume)
        except VersionLost:
            if not isinstance(signal, Cancel):
                raise
            return await cancel_lost(self, execution, signal, by)

    async def _tell_owned(self, execution: str, signal: Signal | Discard, by: str) -> bool:
        live, above = await self.dlq.addressees(execution, signal)
        try:
            has_changed = self.tell_here(live, above, signal, by)
        except InvalidTransition:
            if live.is_dropped:
                await self.recovery.release(live.id)
            raise
        await self.commit.settled()
        if live.is_dropped:
            raise Unavailable("the store could not be written; nothing was done, try again")
        return has_changed

    def tell_here(self, live: Live, above: Live | None, signal: Signal | Discard, by: str) -> bool:
        """Tell an execution that is ours, and its parent if that is ours too; False if it changed nothing."""
        try:
            if isinstance(signal, Discard):
                self.dlq.discard(live, signal)
                return True
            events = self.children.tell(live, signal, above)
        finally:
            for loaded in (live, above):
                if loaded is not None:
                    self.let_go(loaded)
        if events:
            self.audit(live, by, type(signal).__name__.lower())
        return bool(events)

    async def with_parent(self, execution: str) -> tuple[Live, Live | None]:
        """The execution and its parent, if it has one, both in memory at the same moment.

        A parent in the hands of another worker is left out: it is told by letter. So is one that cannot be read, once
        it can be.
        """
        while True:
            live = await self.memory.load(execution)
            parent = live.accepted.parent
            if parent is None:
                return live, None
            try:
                above = await self.memory.load(parent.execution)
            except (OwnedElsewhere, Unreadable):
                above = None
            except (RopewalkError, asyncio.CancelledError):
                self.let_go(live)
                raise
            if self.memory.owns(live):
                return live, above
            if above is not None:
                self.let_go(above)  # the other has left meanwhile, and may be another's when it is looked for again

    def let_go(self, live: Live) -> None:
        """An execution that has nothing to do here leaves memory; if the store says it is ours, that is undone."""
        if live.is_idle and not live.is_dropped:
            if live.is_recorded_as_owned:
                self.commit.add(live)
            else:
                self.memory.forget(live)

    async def ended(self, execution: str) -> Ended:
        return await self.followers.ended(execution)

    def follow(self, execution: str, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        return self.followers.follow(execution, after)

    def audit(self, live: Live, actor: str, verb: str) -> None:
        about = (live.accepted.workspace, actor, verb, live.id)
        row = (str(uuid_utils.uuid7()), live.execution.now, *about, None, None, None)
        live.rows.append(("insert_audit", row))

    # The loop: signal → commit → commands

    def signal(self, live: Live, signal: Signal) -> list[Event]:
        """Let the machine decide; what it says goes into the next commit.

        An execution that was let go of is told nothing.
        """
        if live.reports:
            self.reports.take(live)
        return self.tell_together(live, (signal,), self.store.now())

    def tell_together(self, live: Live, signals: Sequence[Signal], now: int) -> list[Event]:
        """The same for several that came in one turn of the loop."""
        if live.is_dropped:
            return []
        x, hands = live.execution, self.hands
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
        # All of them first: whatever goes wrong with the others, who drops the execution counts on that.
        hands.promised += runs
        if runs < len(commands):
            self.children.write_down(live, commands)
        if not live.is_dirty and (events or live.commands):
            self.commit.add(live)
        if x.has_more and x.has_slot:
            self._remember_hungry(live)
        return events

    def _remember_hungry(self, live: Live) -> None:
        """It has more to start than there are hands; it is asked again when one is free."""
        if not live.is_hungry:
            live.is_hungry = True
            self._hungry.append(live)

    def feed(self) -> None:
        """Start what was ready when all hands were busy, as far as there is room now."""
        for _ in range(len(self._hungry)):
            if not self.hands.room:
                break
            live = self._hungry.popleft()
            live.is_hungry = False
            if live.execution.has_more:
                self._due(live)

    def _carry_out(self, committed: list[Committed]) -> None:
        """A commit is durable: say so, and do what it asks for; what fails for one execution stops no other."""
        if self.observer is not None:
            observe(self.observer, committed)
        now, is_followed = self.store.now(), self.followers.has_listeners
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
                    self.followers.publish(each)
                self._follow(each, left, now)
            except Exception as error:  # noqa: BLE001 -- a fault of ours concerns one execution, not its neighbours
                _log.exception("execution %s: what its commit asks for cannot be carried out", each.live.id)
                each.live.commands = [*each.live.commands, *left]
                self.recovery.lost_the_store([each.live], error)
        self.feed()  # what was promised a hand may have gone to others

    def _after_commit(self, each: Committed) -> None:
        live = each.live
        if live.has_slot and not each.has_slot:
            live.has_slot = False
            self.claims.freed()
            # A timer it had while it held the slot is the claims' to watch from now on.
            self._wake_at(live, live.execution.wake_at)
        elif each.is_ended and live.accepted.concurrency_key is not None:
            self.claims.freed()
        if live.written.queued is not None:
            self.claims.asked()
        if each.is_ended and self.offers.has_others:
            self.store.hint(live.id)
        if live.written.event_waits:
            self.held.doubt(each)

    def _follow(self, each: Committed, commands: Iterator[Command], now: int) -> None:
        live = each.live
        for command in commands:
            if type(command) is RunNode:
                self.offers.place(live, command, now)
            else:
                self._do(live, command)
        if each.post:
            self.letters.deliver(each.post)
        if each.leaves:
            self.memory.left(live)
        elif not live.has_slot:
            self.let_go(live)

    def _do(self, live: Live, command: Command) -> None:
        match command:
            case StopRun():
                self.hands.stop(live, command.node, command.attempt, command.item)
                self.offers.stop(live, command)
            case WakeAt(at):
                self._wake_at(live, at)
            case NeedSlot():
                self.claims.asked()
                self.store.hint("queue")
            case EvaluateOutput(seq):
                self.children.spawn(self._evaluate_output(live, seq))
            case _:
                return  # what concerns other executions was written down with the events, and is told from there

    async def _evaluate_output(self, live: Live, seq: int) -> None:
        try:
            evaluated = await self.evaluating.output(live, seq, self._desk)
        except Exception as error:  # noqa: BLE001 -- the execution is taken up again, and evaluates it once more
            if self.memory.owns(live):
                self.recovery.lost_the_store([live], error)
            return
        if self.memory.owns(live):
            self.reports.add(live, evaluated)

    def _wake_at(self, live: Live, at: int | None) -> None:
        if at is None:
            return
        if live.execution.has_slot:
            self.timers.add(at, live)
        else:
            self.claims.parked(at)

    def take_slot(self, live: Live) -> None:
        """The execution has a slot; it starts what it can. One it did not need is given back by the commit."""
        live.has_slot = True
        self.signal(live, Start())
        if not live.is_dirty:
            self.commit.add(live)

    def _due(self, live: Live) -> None:
        """Its time has come, or there is room for what it has ready."""
        if not self.memory.owns(live):
            return
        try:
            self.signal(live, Due())
        except Exception as error:  # noqa: BLE001 -- a fault of ours concerns one execution, not its neighbours
            _log.exception("execution %s: what is due cannot be decided", live.id)
            self.recovery.lost_the_store([live], error)

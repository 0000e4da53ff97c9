"""An engine that keeps its logs in a dict: the proof that the core and the shared parts are all an engine needs.

An event is durable once it is in the log; everything else follows. The tables are a mirror that is brought up to the
log after each step and after each fold, slots and keys are taken in the store beforehand, and after a crash everything
that is `outstanding()` is carried out, whether or not it was before: there is no inbox in which executions leave
messages for each other.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import msgspec
import uuid_utils

from ropewalk import wiring
from ropewalk.core import log
from ropewalk.core.acceptance import StartRequest, first_events
from ropewalk.core.commands import Command, EvaluateOutput, Finish, NeedSlot, RunNode, StartChild, StopRun, WakeAt
from ropewalk.core.errors import InvalidTransition, NotFound, RopewalkError, Unavailable
from ropewalk.core.events import Event, ExecutionAccepted
from ropewalk.core.execution.resuming import first_signals, lost, under_way
from ropewalk.core.kinship import end_of_child, never_began, reopening_of_child, verb_of_parent
from ropewalk.core.signals import (
    ChildEnded,
    Discard,
    Due,
    Failed,
    Fix,
    Requeue,
    Returned,
    Signal,
    check_request,
)
from ropewalk.core.state import ExecutionState
from ropewalk.engines.background import Background
from ropewalk.engines.base import NoReach
from ropewalk.engines.breakers import WorkerBreakers
from ropewalk.engines.computing import Computing
from ropewalk.engines.custody import STORED
from ropewalk.engines.held_values import HeldValues
from ropewalk.engines.native.children import Children
from ropewalk.engines.native.evaluating import Evaluating
from ropewalk.engines.native.hands import Hands
from ropewalk.engines.native.live import Fold, Live, Written
from ropewalk.engines.native.parts import Committed
from ropewalk.engines.native.projecting import RowsByStatement, put_rows
from ropewalk.engines.native.record import recorded
from ropewalk.engines.native.shelf import WorkerShelf
from ropewalk.engines.native.stored import admitted, count
from ropewalk.engines.native.telling import Telling
from ropewalk.engines.native.timers import Timers
from ropewalk.engines.publishing import Publishing
from ropewalk.engines.rate_limits import RateLimits
from ropewalk.engines.run import Desk
from ropewalk.engines.runner import with_jitter
from ropewalk.engines.settings import WorkerSettings
from ropewalk.engines.versions import Versions
from ropewalk.engines.watching import Watching
from ropewalk.nodes.base import Registry
from ropewalk.nodes.facilities import Facilities
from ropewalk.nodes.network import NetworkPolicy
from ropewalk.service import Service
from ropewalk.service.speaking import SpokenExecutions
from ropewalk.store import inbox, queue
from ropewalk.store import log as stored_log
from ropewalk.store.access import Store
from tests.engines.worlds import World

Logs = dict[str, list[bytes]]
"""The entries of each execution's log: the only thing that a crash leaves of an engine."""
MOST = 1_000


class InMemoryEngine:
    """One worker, alone on its store."""

    def __init__(self, store: Store, types: Registry, facilities: Facilities, settings: WorkerSettings,
                 logs: Logs) -> None:  # fmt: skip
        self.store, self.types, self.settings, self.logs = store, types, settings, logs
        self.background, self.computing, self.custody = Background(), Computing(), STORED
        self.spawn = self.background.spawn
        self.evaluating = Evaluating(self.computing)
        self.versions = Versions(store, self.computing)
        self.values = HeldValues(store.blobs, self.computing)
        self.watching = Watching(store, self.is_under_way)
        about = (self.background, self.deliver, self.suspect_strays)
        self.publishing = Publishing(store, types, self.computing, *about)
        self.breakers = WorkerBreakers(store, self.add_row, settings.breaker, self.publishing.may_go)
        self.rate_limits = RateLimits(store, settings.rate_limits)
        self.shelf = WorkerShelf(store.blobs, store, store.now, self.add_row)
        large = (self.evaluating.of_run, settings.execution_bytes)
        self.desk = Desk(types, facilities, self.breakers, self.rate_limits, self.shelf, *large)
        self.hands = Hands(self.desk, settings.hands, store.now, self.values.load, self.reported, self.evaluating)
        self.timers: Timers[Live] = Timers(store.now, self._due)
        self.leasing, self.reaches, self.observer = SimpleNamespace(is_open=False), NoReach(), None
        # For what a discard writes, and what is cached of children.
        me: Any = self
        self.telling = Telling(store, me, me, me, self.desk)
        # For the requests of children.
        self.family = Children(store, self.versions, self.computing, self.reaches, me, self.telling, me)
        self.workflow_changes = 0
        self.lives: dict[str, Live] = {}
        self.is_gone = False
        self._dirty: dict[Live, None] = {}
        self._rows: list[tuple[str, Any]] = []
        self._wake = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._is_asked = True
        self._kin: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self._deciding = asyncio.Lock()

    # Its life

    async def open(self) -> None:
        await self.breakers.load()
        await self.rate_limits.load()
        for execution in list(self.logs):
            self._take_up(await self.load(execution))
        for letter in await inbox.messages_for(self.store, self.store.worker):
            signal = msgspec.json.decode(letter.signal, type=Signal)
            self.deliver([(letter.id, letter.execution, signal)])
        self.spawn(self._go_on())
        self.spawn(self._talk())

    def begin_closing(self) -> None:
        self.background.is_closing = self.hands.is_closing = True

    async def close(self) -> None:
        self.begin_closing()
        with suppress(RopewalkError):
            await self.settled()
        for running in await self.hands.drain(self.settings.drain_seconds):
            self.signal(running.live, Returned(running.node, running.attempt, running.item))
        try:
            await self.settled()
        finally:
            await self.background.close()
            await self.breakers.close()
            await self.rate_limits.close()
            for part in (self.timers, self.hands, self.watching, self.computing):
                part.close()

    # Loading: fold the log, bring the mirror up to it, and see to everything that ought to be under way

    async def load(self, execution: str) -> Live:
        if (live := self.lives.get(execution)) is None:
            live = await self._folded(execution)
            live = self.lives.setdefault(execution, live)
        return live

    async def _folded(self, execution: str) -> Live:
        if execution not in self.logs:
            raise NotFound(f"there is no execution {execution}")
        events = list(log.decode_all(self.logs[execution]))
        accepted = log.acceptance(events)
        mirror = (await stored_log.whole(self.store, [execution])).get(execution, [])
        known = sum(len(log.decode(entry)[1]) for entry in mirror)
        fold = Fold(await self.versions.followed(accepted), accepted)
        fold.add(events[:known], sum(map(len, mirror)))
        found = await recorded(self.store, [execution])
        live = fold.done(found[execution].written if found else Written())
        live.written.seal = log.seal_of(mirror[-1]) if mirror else 0
        live.execution.apply(events[known:])
        live.events = events[known:]
        count(live, 0, live.events)
        return live

    def _take_up(self, live: Live) -> None:
        """What was under way is lost; what is to be under way, and what others ought to know, is seen to once more."""
        x = live.execution
        has_slot = x.has_slot or bool(live.written.live and live.written.live[2])
        ended = [lost(attempt, random.random()) for attempt in under_way(x)]
        for signal in first_signals(x, ended, has_slot=has_slot):
            self.signal(live, signal)
        runs = [command for command in live.commands if isinstance(command, RunNode)]
        rest = [command for command in x.outstanding() if not isinstance(command, RunNode)]
        live.commands = [*runs, *rest]
        self.add(live)

    # Telling: decide, append, mirror, carry out

    def signal(self, live: Live, signal: Signal) -> list[Event]:
        return [] if self.is_gone else self._append(live, self._decide(live, signal))

    def _decide(self, live: Live, signal: Signal) -> list[Event]:
        live.execution.room = self.hands.room
        return live.execution.handle(signal, self.store.now())

    def _append(self, live: Live, events: Sequence[Event]) -> list[Event]:
        """From here on it is so."""
        if events:
            entries = self.logs.setdefault(live.id, [])
            entries.append(log.encode(live.execution.seq - len(events) + 1, events))
        live.events = [*live.events, *events]
        commands = live.execution.take_commands()
        self.hands.promised += sum(isinstance(command, RunNode) for command in commands)
        live.commands = [*live.commands, *commands]
        self.add(live)
        return list(events)

    def add(self, live: Live) -> None:
        self._dirty[live] = None
        self._wake.set()

    def add_row(self, statement: str, row: Any) -> None:
        self._rows.append((statement, row))
        self._wake.set()

    async def settled(self) -> None:
        """Everything said so far is mirrored and carried out."""
        if self.is_gone:
            raise Unavailable("the process is gone")
        self._waiting.append(waiter := asyncio.get_running_loop().create_future())
        self._wake.set()
        await waiter

    async def _go_on(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            waiting, self._waiting = self._waiting, []
            try:
                await self._mirror()
                if self._is_asked and not self.background.is_closing:
                    self._is_asked = False
                    await self._claim()
            except RopewalkError as error:
                for waiter in waiting:
                    waiter.set_exception(error)
                return
            for waiter in waiting:
                if not waiter.done():
                    waiter.set_result(None)

    async def _mirror(self) -> None:
        batch: RowsByStatement = defaultdict(list)
        rows, self._rows = self._rows, []
        for statement, row in rows:
            batch[statement].append(row)
        lives, self._dirty = list(self._dirty), {}
        written = [self._written(live, batch) for live in lives]
        if batch:
            ordered = sorted(batch.items(), key=lambda item: (not item[0].startswith("insert"), item[0]))
            await self.store.write(self.store.prepared(ordered))
        for each in written:
            self.watching.publish(each)
            if each.live.written.event_waits:
                self.publishing.doubt(each, self.breakers)
            for command in each.commands:
                self._carry_out(each.live, command)
        self._feed()

    def _written(self, live: Live, batch: RowsByStatement) -> Committed:
        x, freed = (
            live.execution,
            live.written.live is not None and live.written.live[2] and not live.execution.has_slot,
        )
        put_rows(live, self.store.worker if x.has_slot else None, batch)
        self._is_asked |= bool(freed) or x.is_ended or live.written.queued is not None
        about = (live.accepted, x, x.seq, live.events, x.is_ended, live, live.commands, (), x.has_slot, False, (), ())
        live.events = live.commands = live.failures = ()
        return Committed(*about)

    def _carry_out(self, live: Live, command: Command) -> None:
        match command:
            case RunNode(node, attempt, item):
                self.hands.promised -= 1
                work = live.execution.work(node, item)
                if work is not None and work.attempt == attempt and not self.is_gone:
                    self.hands.start(live, work, self.store.now())
            case StopRun(node, attempt, item):
                self.hands.stop(live, node, attempt, item)
            case WakeAt(at):
                if at is not None:
                    self.timers.add(at, live)
            case EvaluateOutput(seq):
                self.spawn(self._evaluate(live, seq))
            case NeedSlot():
                self._is_asked = True
                self._wake.set()
            case _:
                self._kin.put_nowait(lambda: self._tell_kin(live, command))

    async def _evaluate(self, live: Live, seq: int) -> None:
        self.signal(live, await self.hands.large.output(live, seq))

    def reported(self, live: Live, signal: Signal) -> None:
        """An attempt ended."""
        if self.lives.get(live.id) is live:
            self.signal(live, with_jitter(signal) if isinstance(signal, Failed) else signal)
            self._feed()

    def _feed(self) -> None:
        for live in list(self.lives.values()):
            if self.hands.room and live.execution.has_more and live.execution.has_slot:
                self.signal(live, Due())

    def _due(self, live: Live) -> None:
        if self.lives.get(live.id) is live:
            self.signal(live, Due())

    # Slots and keys, taken in the store before the log says so

    async def _claim(self) -> None:
        async with self.store.transaction() as tx:
            claimed, _ = await queue.claim(
                tx, tx.worker, self.store.now(), MOST, may=lambda each: self.lives.get(each) not in self._dirty
            )
        for entry in claimed:
            live = await self.load(entry.execution)
            written = (await recorded(self.store, [live.id]))[live.id].written
            written.seal, written.seq = live.written.seal, live.written.seq
            live.written, live.has_key = written, entry.has_key
            for signal in first_signals(live.execution, has_slot=True):
                self.signal(live, signal)
            self.add(live)

    # Kin: one thing after the other, in the order it was said

    async def _talk(self) -> None:
        while True:
            tell = await self._kin.get()
            with suppress(InvalidTransition, NotFound):
                await tell()

    async def _tell_kin(self, live: Live, command: Command) -> None:
        if isinstance(command, StartChild):
            await self._start_child(live, command)
        elif isinstance(command, Finish):
            parent = live.accepted.parent
            if parent is not None and live.execution.is_ended:
                last = log.decode(self.logs[live.id][-1])[1][-1]
                await self._deliver(
                    parent.execution,
                    end_of_child(
                        parent, last, live.execution.opening, random.random(), undone=live.execution.has_undone
                    ),
                )
        elif (verb := verb_of_parent(command)) is not None:
            await self._deliver(*verb)

    async def _start_child(self, live: Live, command: StartChild) -> None:
        if command.wait.child in self.logs:
            return
        if live.execution.ending is not None:
            self.signal(live, never_began(command, ExecutionState.CANCELLED, "the parent is ending"))
            return
        try:
            request = await self.family._request(live, command)
        except RopewalkError as error:
            self.signal(live, never_began(command, ExecutionState.FAILED, str(error)))
            return
        await self.start(request)

    async def _deliver(self, execution: str, signal: Signal, letter: str | None = None) -> None:
        live = await self.load(execution)
        await live.expect(self.values.load, signal)
        if isinstance(signal, ChildEnded):
            self.telling._cache(live, signal)
        if letter is not None:
            live.rows.append(("delete_inbox", (letter,)))
            self.add(live)
        self.signal(live, admitted(live, signal, self.settings.execution_bytes))

    def deliver(self, post: Sequence[tuple[str, str, Signal]]) -> None:
        """What the store has for executions from outside: events they wait for, breakers that let them go on."""
        for letter, execution, signal in post:
            self._kin.put_nowait(lambda about=(execution, signal, letter): self._deliver(*about))

    def suspect_strays(self) -> None:
        """What is in the store's inbox is looked at when the engine opens."""

    # What others call

    async def start(self, request: StartRequest, *, remember: Any = None) -> str:
        if self.background.is_closing:
            raise Unavailable("this worker is shutting down; start it again elsewhere or later")
        accepted, events = first_events(request, request.execution or str(uuid_utils.uuid7()), self.store.now())
        live = Live(request.version, accepted)
        live.execution.apply(events)
        count(live, 0, events)
        self.lives[live.id] = live
        self._append(live, events)
        live.audit(request.actor, "start", self.store.now())
        if remember is not None:
            live.rows += remember(live.id)
        await self.settled()
        return live.id

    async def tell(self, execution: str, signal: Signal | Discard, by: str) -> bool:
        check_request(signal)
        async with self._deciding:
            if isinstance(signal, Requeue | Fix | Discard) and signal.letter is not None:
                await self.telling._require_pending(signal)
            live = await self.load(execution)
            if isinstance(signal, Discard):
                self.telling._discard(live, signal)
                has_changed = True
            elif has_changed := await self._told(live, signal):
                live.audit(by, type(signal).__name__.lower(), self.store.now())
            await self.settled()
            return has_changed

    async def _told(self, live: Live, signal: Signal) -> bool:
        """A child that is reopened takes its parent along; where that refuses, nothing has happened."""
        parent = live.accepted.parent
        above = None if parent is None else await self.load(parent.execution)
        events = self._decide(live, signal)
        news = reopening_of_child(live.accepted, events)
        if news is not None and above is not None:
            try:
                told = self._decide(above, news[1])
            except InvalidTransition:
                del self.lives[live.id]
                raise
            self._append(above, told)
        self._append(live, events)
        return bool(events)

    def under_way(self, execution: str) -> ExecutionAccepted | None:
        return self.lives[execution].accepted if self.is_under_way(execution) else None

    def is_under_way(self, execution: str) -> bool:
        live = self.lives.get(execution)
        return live is not None and not live.execution.is_ended


class InMemoryWorld(World):
    """A world on the in-memory engine: its logs outlive every engine on it."""

    logs: Logs

    async def open(self, *, default_slots: int | None = None, **native: Any) -> None:
        self.logs = getattr(self, "logs", {})
        self.default_slots = self.default_slots if default_slots is None else default_slots
        self._native = msgspec.structs.replace(self._native, **native)
        self.service = await self._opened.enter_async_context(self._running())

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[Service]:
        settings, facilities = self.settings, Facilities(NetworkPolicy())
        async with wiring._opened(settings) as store:
            await wiring._prepare(store, settings)
            engine = InMemoryEngine(store, self.types, facilities, settings.worker, self.logs)
            service = Service(store, engine, self.types, settings.env, settings.limits)
            facilities.executions = SpokenExecutions(service)
            try:
                await engine.open()
                yield service
            finally:
                await engine.close()
                await facilities.close()

    async def crash(self) -> None:
        self.service.engine.is_gone = True
        await super().crash()

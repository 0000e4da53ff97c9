"""The native engine: signal → commit → commands, and nothing else.

A worker owns executions; they live in its memory and nobody else moves them. What only waits is parked: a row
with a wake-up time, no memory. Whatever was under way when the process died is found again by folding its log.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from itertools import chain, repeat

import msgspec
import uuid_utils
from msgspec import Struct

from ropewalk.core.breaker import BreakerPolicy
from ropewalk.core.commands import Command, NeedSlot, RunNode, StopRun, WakeAt
from ropewalk.core.errors import NotFound, RopewalkError, Unavailable
from ropewalk.core.events import Event, ExecutionFailed, ExecutionSucceeded
from ropewalk.core.execution.work import Phase
from ropewalk.core.signals import Due, Failed, Lost, Returned, Signal, Start
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import Ended, StartRequest
from ropewalk.engines.native.breakers import WorkerBreakers
from ropewalk.engines.native.children import Children
from ropewalk.engines.native.claims import Claims
from ropewalk.engines.native.commit import Committed, GroupCommit
from ropewalk.engines.native.followers import Followers
from ropewalk.engines.native.hands import Hands
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.shelf import WorkerShelf
from ropewalk.engines.native.slots import Slots
from ropewalk.engines.native.timers import Timers
from ropewalk.engines.runner import INLINE_LIMIT, Desk
from ropewalk.nodes.base import Facilities, Registry
from ropewalk.store.blobs import BlobTooLarge
from ropewalk.store.sqlite import SqliteStore

RECOVERY_PAUSES = (0.1, 0.5, 1, 2, 5, 10, 30, 60)

_log = logging.getLogger("ropewalk.engine")


class NativeSettings(Struct, frozen=True):
    """How much a worker takes on at once."""

    hands: int = 5_000
    executions: int = 20_000
    drain_seconds: float = 10.0
    breaker: BreakerPolicy = BreakerPolicy()


class NativeEngine:
    """Executes workflows on the embedded store; one process, one loop, any number of executions."""

    def __init__(self, store: SqliteStore, types: Registry, facilities: Facilities, settings: NativeSettings,
                 limit: Callable[[str], int | None]) -> None:  # fmt: skip
        self.store = store
        self.settings = settings
        self.slots = Slots(limit)
        self.memory = Memory(store)
        self.commit = GroupCommit(store, self._carry_out, self._lost_the_store)
        self.breakers = WorkerBreakers(store.now, self.commit.add_row, settings.breaker)
        shelf = WorkerShelf(store.blobs, store, store.now, self.commit.add_row)
        desk = Desk(types, facilities, self.breakers, shelf)
        self.hands = Hands(desk, settings.hands, store.now, self.memory.load_blob, self._reported)
        self.timers: Timers[Live] = Timers(store.now, self._due)
        self.followers = Followers(store, self.memory.is_under_way)
        self.children = Children(self)
        self.claims = Claims(self)
        self._hungry: deque[Live] = deque()
        self._is_closing = False

    # What others call

    async def open(self) -> None:
        """Take up everything that was under way when the last process ended."""
        self.commit.open()
        self.breakers.load(await self.store.fetch("every_breaker"))
        for execution in await self.memory.key_holders():
            holder = await self.memory.load(execution)
            self.slots.take_key(holder.accepted)
            self.memory.forget(holder)
        for execution in await self.memory.left_running():
            self._take_up(await self.memory.load(execution))
        await self.children.catch_up()
        self.claims.open()

    async def close(self) -> None:
        """Let running nodes finish or hand them back, write everything down, and go."""
        self._is_closing = True
        await self.claims.close()
        with suppress(RopewalkError):  # the log has said why; what runs is drained all the same
            # A commit under way may start nodes: they are to be drained or handed back like the others.
            await self.commit.settled()
        for running in await self.hands.drain(self.settings.drain_seconds):
            self.signal(running.live, Returned(running.node, running.attempt, running.item))
        await self.children.close()
        try:
            await self.commit.close()
        finally:
            self.timers.close()
            self.hands.close()
            self.followers.close()

    async def start(self, request: StartRequest, letter: str | None = None) -> str:
        """Accept an execution durably; it starts in the same commit if there is a slot for it.

        `letter` asked for it, and is gone from the inbox with the same commit.
        """
        if self._is_closing:
            raise Unavailable("this worker is shutting down; start it again elsewhere or later")
        live = self.memory.accept(request, self.store.now())
        self._audit(live, request.actor, "start")
        if letter is not None:
            live.rows.append(("delete_inbox", (letter,)))
        has_room = len(self.memory.lives) <= self.settings.executions
        is_next = self.claims.is_queue_empty or not self.slots.is_limited(live.accepted)
        if has_room and is_next and self.slots.is_free(live.accepted):
            self.take_slot(live)
        else:
            live.commands.append(NeedSlot())
        self.commit.add(live)
        await self.commit.settled()
        return live.id

    async def tell(self, execution: str, signal: Signal, by: str) -> bool:
        """Tell an execution something, wherever it is; False if it changed nothing."""
        live, above = await self._with_parent(execution)
        try:
            events = self.children.tell(live, signal, above)
        finally:
            for loaded in (live, above):
                if loaded is not None and loaded.is_idle:
                    self.memory.forget(loaded)
        if events:
            self._audit(live, by, type(signal).__name__.lower())
        await self.commit.settled()
        if live.is_dropped:
            raise Unavailable("the store could not be written; nothing was done, try again")
        return bool(events)

    async def _with_parent(self, execution: str) -> tuple[Live, Live | None]:
        """The execution and its parent, if it has one, both in memory at the same moment."""
        while True:
            live = await self.memory.load(execution)
            parent = live.accepted.parent
            if parent is None:
                return live, None
            try:
                above = await self.memory.load(parent.execution)
            except RopewalkError:
                if live.is_idle:
                    self.memory.forget(live)
                raise
            if self.memory.owns(live):
                return live, above

    async def ended(self, execution: str) -> Ended:
        return await self.followers.ended(execution)

    def follow(self, execution: str, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        return self.followers.follow(execution, after)

    def _audit(self, live: Live, actor: str, verb: str) -> None:
        about = (live.accepted.workspace, actor, verb, live.id)
        row = (str(uuid_utils.uuid7()), self.store.now(), *about, None, None, None)
        live.rows.append(("insert_audit", row))

    # The loop: signal → commit → commands

    def signal(self, live: Live, signal: Signal) -> list[Event]:
        """Let the machine decide; what it says goes into the next commit."""
        x = live.execution
        x.room = 0 if self._is_closing else max(0, self.hands.free)
        events = x.handle(signal, self.store.now())
        commands = x.take_commands()
        live.events += events
        if x.is_ended and events:
            try:
                self._shrink_output(live)
            except Unavailable as error:
                self._lost_the_store([live], error)
                return []
        for command in commands:
            if type(command) is RunNode:
                self.hands.promised += 1
            else:
                self.children.write_down(live, command)
        live.commands += commands
        if events or commands:
            self.commit.add(live)
        if x.ready_count and x.has_slot:
            self._remember_hungry(live)
        return events

    def _remember_hungry(self, live: Live) -> None:
        """It has more to start than there are hands; it is asked again when one is free."""
        if not live.is_hungry:
            live.is_hungry = True
            self._hungry.append(live)

    def _shrink_output(self, live: Live) -> None:
        """An output too large for the log goes where the nodes' large results are."""
        last = live.events[-1]
        if isinstance(last, ExecutionSucceeded) and last.output is not None:
            encoded = msgspec.json.encode(last.output)
            if len(encoded) > INLINE_LIMIT:
                # On this thread: nothing may come between the decision and its record. Rare, and bounded in size.
                try:
                    blob = self.store.blobs.put_here(encoded)
                except BlobTooLarge as error:
                    live.execution.state = ExecutionState.FAILED
                    live.events[-1] = ExecutionFailed(last.at, f"output: {error}")
                else:
                    live.rows.append(("insert_blob", (blob.hash, blob.size, last.at)))
                    live.events[-1] = ExecutionSucceeded(last.at, None, blob)

    def _reported(self, live: Live, signal: Signal) -> None:
        """An attempt ended: a hand is free."""
        if isinstance(signal, Failed):
            signal = with_jitter(signal)
        self.signal(live, signal)
        if live.is_idle:
            self.memory.forget(live)  # it came too late to change anything
        for _ in range(len(self._hungry)):
            if self.hands.free <= 0:
                break
            self._feed(self._hungry.popleft())

    def _feed(self, live: Live) -> None:
        """Start what was ready when all hands were busy."""
        live.is_hungry = False
        if live.execution.ready_count and self.memory.owns(live):
            self.signal(live, Due())

    def _carry_out(self, committed: list[Committed]) -> None:
        """A commit is durable: say so, then do what it asks for."""
        for each in committed:
            self._after_commit(each)
        for each in committed:
            for command in each.commands:
                self._do(each.live, command)
            if each.post:
                self.children.deliver(each.post)
            if each.live.is_idle:
                self.memory.forget(each.live)

    def _after_commit(self, each: Committed) -> None:
        live = each.live
        if live.has_slot and not each.has_slot:
            live.has_slot = False
            self.slots.give_back(live.accepted)
            self.claims.freed()
            # A timer it had while it held the slot is the claims' to watch from now on.
            self._wake_at(live, live.execution.wake_at)
        if each.is_ended:
            self.slots.give_back_key(live.accepted)
            self.claims.freed()
        self.followers.publish(each)

    def _do(self, live: Live, command: Command) -> None:
        match command:
            case RunNode():
                self.hands.start(live, command)
            case StopRun():
                self.hands.stop(live, command.node, command.attempt, command.item)
            case WakeAt(at):
                self._wake_at(live, at)
            case NeedSlot():
                self.claims.asked()
            case _:
                return  # what concerns other executions was written down with the events, and is told from there

    def _wake_at(self, live: Live, at: int | None) -> None:
        if at is None:
            return
        if live.execution.has_slot:
            self.timers.add(at, live)
        else:
            self.claims.parked(at)

    def take_slot(self, live: Live) -> None:
        """Grant the execution a slot; it starts what it can. One it did not need is given back by the commit."""
        live.has_key = self.slots.take(live.accepted)
        live.has_slot = True
        self.signal(live, Start())
        self.commit.add(live)

    def _due(self, live: Live) -> None:
        if self.memory.owns(live):
            self.signal(live, Due())

    # Beginnings and ends of ownership

    def _take_up(self, live: Live) -> None:
        """Go on with an execution whose last owner is gone: what it ran is lost, what was ready starts."""
        x = live.execution
        live.has_key = self.slots.take(live.accepted)
        live.has_slot = True
        for work in [each for each in x.active_works() if each.phase is Phase.RUNNING]:
            self.signal(live, Lost(x.plan.ids[work.node], work.attempt, work.item, random.random()))
        live.commands += [command for command in x.outstanding() if isinstance(command, WakeAt)]
        self.signal(live, Due())
        self.commit.add(live)

    def _lost_the_store(self, lives: list[Live], error: Exception) -> None:
        """A commit failed: forget what was decided on top of it; the log knows better."""
        _log.error("a commit failed; its %d executions are taken up again from their logs: %s", len(lives), error)
        for live in lives:
            self.drop(live)
            self.children.spawn(self._recover(live))

    def drop(self, live: Live) -> None:
        """Forget an execution and stop what it runs. Its slot and key stay counted: its log may hold them."""
        live.is_dropped = True
        live.is_writing = False
        self.hands.drop(live)
        self.commit.forget(live)
        self.hands.promised -= sum(1 for command in live.commands if type(command) is RunNode)
        self.memory.forget(live)

    async def _recover(self, dropped: Live) -> None:
        """Take an execution up again from its log, as soon as the store lets us."""
        for pause in chain(RECOVERY_PAUSES, repeat(RECOVERY_PAUSES[-1])):
            await asyncio.sleep(pause)
            try:
                await self.children.catch_up()
                live = await self._folded(dropped.id)
            except RopewalkError as error:
                _log.warning("execution %s cannot be taken up yet: %s", dropped.id, error)
                continue
            self._go_on_with(dropped, live)
            return

    async def _folded(self, execution: str) -> Live | None:
        """The execution as its log tells it, those who follow it told the same; None if it was never accepted."""
        try:
            live = await self.memory.load(execution)
            await self.followers.catch_up(execution)
        except NotFound:
            return None
        return live

    def _go_on_with(self, dropped: Live, live: Live | None) -> None:
        """The log has told whether it holds a slot and a key, or (None) that it was never accepted."""
        if dropped.has_slot:
            self.slots.give_back(dropped.accepted)
        if live is not None and live.execution.has_slot and not live.has_slot:
            self._take_up(live)
        elif live is None or not (live.has_key or live.has_slot):
            self.slots.give_back_key(dropped.accepted)
        if live is not None:
            self.commit.add(live)
        self.claims.asked()


def with_jitter(report: Failed) -> Failed:
    """Chance comes from here: the core takes it as an argument."""
    return Failed(report.node, report.attempt, report.error, report.item, report.inputs, random.random())

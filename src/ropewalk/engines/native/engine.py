"""The native engine: signal → commit → commands, made of its parts here and nowhere else.

A worker owns executions; they live in its memory and no other worker moves them. What only waits is parked: a row
with a wake-up time, no memory. What was under way when the process died is found again by folding its log.

Parts are made from the bottom up, in five groups, and each is given those below it that it needs. Four things are said
upwards, by a function: a commit is to be carried out, executions are given up, what is in an inbox is to be delivered,
strays are to be looked for.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from ropewalk.core.errors import InvalidTransition, RopewalkError, Unavailable, VersionLost
from ropewalk.core.signals import Cancel, Discard, Resume, Returned, Signal, check_request
from ropewalk.engines.background import Background
from ropewalk.engines.base import RATE_LIMITS, WORKFLOWS, Custody, Load, NoReach, Observer, Reaches
from ropewalk.engines.computing import Computing
from ropewalk.engines.custody import STORED
from ropewalk.engines.native.dispatch import Dispatch
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.losses import Losses
from ropewalk.engines.native.ownership import OwnedElsewhere
from ropewalk.engines.native.owning import Owning
from ropewalk.engines.native.parts import Committed
from ropewalk.engines.native.requests import Requests
from ropewalk.engines.native.runs import Runs
from ropewalk.engines.publishing import Publishing
from ropewalk.engines.reporting import Message
from ropewalk.engines.settings import DEFAULT_POOL, WorkerSettings
from ropewalk.engines.versions import Versions
from ropewalk.engines.watching import Watching
from ropewalk.nodes.base import Facilities, Registry
from ropewalk.store import live as stored_live
from ropewalk.store.access import CONNECTED, Store
from ropewalk.store.suspicion import SET_ASIDE


class NativeEngine:
    """A worker: executes workflows alone on an embedded store, or with others on a shared one."""

    def __init__(self, store: Store, types: Registry, facilities: Facilities, settings: WorkerSettings,
                 reaches: Reaches | None = None) -> None:  # fmt: skip
        self.store = store
        self.settings = settings
        self.reaches = reaches or NoReach()
        self.custody: Custody = STORED
        self.observer: Observer | None = None
        # Goes up when others say that they have changed one: what is remembered of them is to be looked up again.
        self.workflow_changes = 0
        self.background, self.computing = Background(), Computing()
        self.versions = Versions(store, self.computing)
        owning = Owning(store, self.computing, self.versions, self._carry_out, self._give_up)
        self.ownership, self.memory, self.commit = owning.ownership, owning.memory, owning.commit
        self.watching = Watching(store, self.memory.is_under_way)
        missed = self.memory.suspect_strays
        self.publishing = Publishing(store, types, self.computing, self.background, self._deliver, missed)
        runs = Runs(store, settings, types, facilities, self.background, self.computing, self.publishing,
                    self._deliver, owning)  # fmt: skip
        self.breakers, self.rate_limits, self.deciding = runs.breakers, runs.rate_limits, runs.deciding
        self.reports, self.hands, self.leased, self.leasing = runs.reports, runs.hands, runs.leased, runs.leasing
        requests = Requests(store, settings, self.background, self.computing, self.versions, self.reaches, owning, runs)
        self.telling, self.losing, self.letters = requests.telling, requests.losing, requests.letters
        dispatch = Dispatch(store, settings, self.background, self.watching, self.publishing, self._deliver,
                            self._find_strays, owning, runs, requests)  # fmt: skip
        self.claims, self.offers, self.carrying_out = dispatch.claims, dispatch.offers, dispatch.carrying_out
        losses = Losses(store, settings, self.background, self.versions, self.watching, self._workflows_changed,
                        owning, runs, requests, dispatch)  # fmt: skip
        self.recovery, self.setbacks = losses.recovery, losses.setbacks
        self.rejoining, self.takeover = losses.rejoining, losses.takeover
        # Said by the parts themselves, without a step in between.
        self.start, self.accept = requests.starting.start, requests.starting.accept
        self.settled, self.spawn, self.under_way = self.commit.settled, self.background.spawn, self.memory.under_way

    # What parts say upwards

    def _carry_out(self, committed: list[Committed]) -> None:
        self.carrying_out.carry_out(committed)

    def _give_up(self, lives: list[Live], error: Exception) -> None:
        self.setbacks.give_up(lives, error)

    def _deliver(self, post: Sequence[Message]) -> None:
        self.letters.deliver(post)

    async def _find_strays(self) -> None:
        await self.recovery.find_strays()

    def _workflows_changed(self) -> None:
        self.workflow_changes += 1

    # Its life

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
        self.store.on_hint, self.store.on_lost = self._hinted, self.rejoining.lost_the_lease
        self.watching.open()
        if self.settings.claims:
            self.letters.open()
            self.takeover.open()
        else:
            self.background.spawn(self.recovery.watch())
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
            self._workflows_changed()
        if "*" in topics or RATE_LIMITS in topics:
            self.background.spawn(self.rate_limits.look_again())
        if CONNECTED in topics:
            # What was asked of the server before may be another answer there.
            self.versions.forget()
            self.memory.suspect_strays()
        self.leasing.hinted(topics)
        self.watching.hinted(topics)

    def observe(self, observer: Observer) -> None:
        """From now on the observer is told of everything that becomes durable."""
        self.commit.is_observed = True
        self.observer = self.carrying_out.observer = self.claims.observer = observer
        self.leasing.observer = self.leased.observer = observer

    def begin_closing(self) -> None:
        """From now on nothing new begins here."""
        self.background.is_closing = self.hands.is_closing = True

    async def close(self) -> None:
        """Let running nodes finish or hand them back, write everything down, and go."""
        self.begin_closing()
        if self.store.is_shared:
            self.background.spawn(self.takeover.leave())
        for watching in (self.claims, self.takeover, self.letters, self.offers):
            await watching.close()
        with suppress(RopewalkError):  # the log has said why; what runs is drained all the same
            # A commit under way may start nodes: they are to be drained or handed back like the others.
            await self.commit.settled()
        unfinished = await self.hands.drain(self.settings.drain_seconds)
        self.reports.take_all()
        for running in unfinished:
            self.deciding.signal(running.live, Returned(running.node, running.attempt, running.item))
        await self.background.close()
        # What was not told is in the inbox, and the execution that was to be told is let go of.
        await self.memory.loaded()
        for live in list(self.memory.lives.values()):
            self.deciding.let_go(live)
        await self.breakers.close()
        await self.rate_limits.close()
        try:
            await self.commit.close()
        finally:
            self.deciding.timers.close()
            self.hands.close()
            self.watching.close()
            self.computing.close()

    # Telling

    async def tell(self, execution: str, signal: Signal | Discard, by: str) -> bool:
        """Tell an execution something, wherever it is; False if it changed nothing."""
        check_request(signal)
        try:
            async with self.telling.turn(execution, signal):
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
            return await self.losing.cancel(execution, signal, by)

    async def _tell_owned(self, execution: str, signal: Signal | Discard, by: str) -> bool:
        live, above = await self.telling.addressees(execution, signal)
        try:
            has_changed = self.telling.tell(live, above, signal, by)
        except InvalidTransition:
            if live.is_dropped:
                await self.memory.release(live.id)
            raise
        await self.commit.settled()
        if live.is_dropped:
            raise Unavailable("the store could not be written; nothing was done, try again")
        return has_changed

    def accepted(self) -> None:
        """Something may wait for a slot, or there are more slots: look."""
        self.claims.asked()
        self.store.hint("queue")

    # What it has in hand

    @property
    def accepts_only(self) -> bool:
        return not self.settings.claims

    @property
    def load(self) -> Load:
        return Load(len(self.memory.lives), self.hands.busy + self.leased.busy)

    # Time, for tests that skip it

    @property
    def is_quiet(self) -> bool:
        """Whether no node runs, nothing is to be committed, and nothing is on its way between executions."""
        is_running = self.hands.busy or self.hands.promised or self.reports.has_any
        return not is_running and self.background.is_idle and self.claims.is_at_rest and self.commit.is_at_rest

    async def quiet(self) -> None:
        """Wait until there is nothing to do before time passes or something is told."""
        while not self.is_quiet:
            await self.hands.idle()
            await self.commit.settled()
            await self.background.idle()
            await asyncio.sleep(0)

    async def next_due(self) -> int | None:
        """The next moment at which time alone changes something, of executions in memory and of parked ones."""
        moments = [each.execution.wake_at for each in self.memory.lives.values()]
        return min((at for at in (*moments, await stored_live.next_wake(self.store)) if at is not None), default=None)

    def look(self) -> None:
        """The store's time has moved: carry out what is due by now."""
        self.deciding.timers.look()
        self.claims.asked()

"""Runs of executions that another worker owns: what their runner is told, and those that this worker carries out.

A worker reports in one transaction: the offer goes, if the lease is still its own, and a letter to the owner comes.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import msgspec

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import RopewalkError
from ropewalk.core.events import Blob
from ropewalk.core.signals import Failed, Returned, Signal
from ropewalk.core.waits import RateLimitWait
from ropewalk.engines.background import Background
from ropewalk.engines.base import Observer
from ropewalk.engines.held_values import HeldValues
from ropewalk.engines.reporting import Reporting
from ropewalk.engines.run import Desk, Run
from ropewalk.engines.runner import STOPPED, Outcome, failure, overdue, run_node, with_inputs_at, with_jitter
from ropewalk.nodes.failure import failure_of
from ropewalk.store import offers
from ropewalk.store.access import Store
from ropewalk.store.events import item_of
from ropewalk.store.offers import Offer

BATCH = 100
PATIENCE = 1.0
"""How long a run may take to stop when its worker leaves (s)."""

_log = logging.getLogger("ropewalk.engine")


class Offered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an offer tells the runner that takes it."""

    type: str
    inputs: Any
    timeout: int
    config_hash: str
    held_since: int | None = None
    cache_ttl: int | None = None
    run: str | None = None
    trace: str | None = None
    inputs_blob: Blob | None = None
    bounded_by: tuple[str, ...] = ()
    rate_limit: str | None = None
    reserved: RateLimitWait | None = None
    credentials: str | dict[str, str] | None = None
    """Names alone: a worker that takes the offer looks the credentials up itself, and a runner gets none."""
    round: int = 0


class LeasedRun(Run, eq=False):
    """A run of an execution that another worker owns, carried out here."""

    config: str
    bounds: tuple[str, ...] = ()
    slots: RateLimitWait | None = None
    named: str | dict[str, str] | None = None
    turn: int = 0

    def round(self) -> int:
        return self.turn

    def reserved(self) -> RateLimitWait | None:
        return self.slots

    def config_hash(self) -> str:
        return self.config

    def bounded_by(self) -> tuple[str, ...]:
        return self.bounds

    def credentials(self) -> str | dict[str, str] | None:
        return self.named


class InHand(msgspec.Struct, eq=False):
    """A leased run that is carried out here, and the task that tells in time how it ended: not every node stops."""

    offer: Offer
    attempt: asyncio.Task[Outcome]
    telling: asyncio.Task[None] | None = None

    def returned(self) -> Returned:
        return Returned(self.offer.node, self.offer.attempt, item_of(self.offer.item))


class LeasedRuns:
    """What this worker carries out for the owners of executions."""

    def __init__(self, store: Store, pool: str, desk: Desk, values: HeldValues, reporting: Reporting,
                 background: Background) -> None:  # fmt: skip
        self._store = store
        self._pool = pool
        self._desk = desk
        self._values = values
        self._reporting = reporting
        self._background = background
        self._leased: dict[str, InHand] = {}
        self.observer: Observer | None = None
        # Told that a run was reported: there is room for another.
        self.on_done: Callable[[], None] = lambda: None

    @property
    def busy(self) -> int:
        return len(self._leased)

    @property
    def lease_time(self) -> int:
        """How long a worker is silent before it has lost its runs (µs)."""
        return round(self._store.lease_seconds * SECOND)

    async def lease(self, free: Callable[[], int]) -> None:
        """Take what is offered, as far as so many runs more can be carried out here."""
        store = self._store
        while (room := min(BATCH, free() - self.busy)) > 0:
            now, began = store.now(), time.perf_counter()
            async with store.transaction() as tx:
                found = await offers.lease(tx, self._pool, tx.worker, now + self.lease_time, now, room)
            if self.observer is not None and found:
                self.observer.leased(time.perf_counter() - began)
            for offer in found:
                self._carry_out(offer)
            if len(found) < room:
                return

    def _carry_out(self, offer: Offer) -> None:
        work = msgspec.json.decode(offer.work, type=Offered)
        now, loop = self._store.now(), asyncio.get_running_loop()
        run = LeasedRun(
            execution=offer.execution, workspace=offer.workspace, node=offer.node, type=work.type,
            attempt=offer.attempt, item=item_of(offer.item), inputs=work.inputs, now=now, deadline=now + work.timeout,
            held_since=work.held_since, cache_ttl=work.cache_ttl, rate_limit=work.rate_limit,
            inputs_at=work.inputs_blob, is_little=False, config=work.config_hash, bounds=work.bounded_by,
            slots=work.reserved, named=work.credentials, turn=work.round,
        )  # fmt: skip
        in_hand = self._leased[offer.id] = InHand(offer, loop.create_task(self._run_node(run)))
        in_hand.telling = loop.create_task(self._see_through(in_hand, run, work.timeout))

    async def _run_node(self, run: LeasedRun) -> Outcome:
        try:
            if run.inputs_at is not None:
                run.inputs = await self._values.load(run.inputs_at)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 -- it ends one way or another
            return failure(run, STOPPED if isinstance(error, asyncio.CancelledError) else failure_of(error))
        return with_inputs_at(await run_node(run, self._desk), run.inputs_at)

    async def _see_through(self, in_hand: InHand, run: LeasedRun, limit: int) -> None:
        """Report how the run ended, or that its time is up: not every node stops when it is told to."""
        offer, attempt = in_hand.offer, in_hand.attempt
        # Its time may begin later than it does.
        while not attempt.done() and (left := run.deadline - self._store.now()) > 0:
            await asyncio.wait((attempt,), timeout=left / SECOND)
        signal: Signal
        if attempt.done():
            signal = attempt.result()
        else:
            attempt.cancel()
            signal = Failed(offer.node, offer.attempt, overdue(limit), item_of(offer.item))
        is_leaving = self._background.is_closing
        if is_leaving and isinstance(signal, Failed) and signal.error.message == STOPPED.message:
            signal = in_hand.returned()
        await self._report(offer, with_jitter(signal) if isinstance(signal, Failed) else signal)

    async def _report(self, offer: Offer, signal: Signal) -> None:
        """Tell the owner, if the run is still ours to tell of."""
        store = self._store
        try:
            async with store.transaction() as tx:
                reported = await offers.end(tx, offer, store.now())
                post = [] if reported is None else [await self._reporting.write(tx, offer.execution, signal)]
        except RopewalkError as error:
            _log.warning("execution %s: the run of %s cannot be reported: %s", offer.execution, offer.node, error)
            return
        finally:
            self._leased.pop(offer.id, None)
        if reported is None:
            _log.warning("execution %s: the run of %s was reported too late", offer.execution, offer.node)
        self._reporting.send(post)
        self.on_done()

    async def extend(self, now: int) -> None:
        """Keep the leases; a run whose lease is lost, or which is not wanted any more, stops."""
        mine = list(self._leased.values())
        if not mine:
            return
        async with self._store.transaction() as tx:
            until = now + self.lease_time
            kept = [(each, await offers.extend(tx, each.offer, until, now)) for each in mine]
        for each, is_stopped in kept:
            if is_stopped is None or is_stopped:
                each.attempt.cancel()

    async def hand_back(self) -> None:
        """A run that stops when it is told to has told its end by then; one that does not is handed back without it."""
        leased = list(self._leased.values())
        for each in leased:
            each.attempt.cancel()
        telling = {each.telling: each for each in leased if each.telling is not None}
        _, deaf = await asyncio.wait(telling, timeout=PATIENCE) if telling else (set(), set())
        for task in deaf:
            task.cancel()
            await self._report(telling[task].offer, telling[task].returned())

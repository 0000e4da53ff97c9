"""Runs carried out elsewhere: those of a pool, and those of a wide execution whose owner has no hand free.

The owner writes such a run down as an offer with everything a runner needs. Whoever leases it reports in one
transaction: the offer goes, if the lease is still its own, and a letter to the owner comes. A runner that has gone
silent loses its runs, and the owner is told so. The owner itself leases like everyone else.
"""

import asyncio
import logging
import random
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import uuid_utils

from ropewalk.core.commands import RunNode
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, RopewalkError, RunError
from ropewalk.core.events import Blob
from ropewalk.core.execution.view import TooMuch
from ropewalk.core.expression import ExpressionError
from ropewalk.core.plan import DEFAULT_ATTEMPT_TIMEOUT
from ropewalk.core.signals import Failed, Lost, Signal
from ropewalk.engines.leased import InHand, LeasedRun, Offered
from ropewalk.engines.native.live import Live
from ropewalk.engines.runner import STOPPED, Desk, Outcome, failure, overdue, run_node, with_inputs_at, with_jitter
from ropewalk.engines.settings import DEFAULT_POOL
from ropewalk.nodes.failure import NodeFailure, failure_of
from ropewalk.store import offers, workers
from ropewalk.store.events import item_of, place_of
from ropewalk.store.offers import Offer, Reported
from ropewalk.store.rows import NewOffer

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine

EVERY = 1.0
BATCH = 100
MOST_OFFERED = 1_000
PATIENCE = 1.0
"""How long a run may take to stop when its worker leaves (s)."""

_log = logging.getLogger("ropewalk.engine")


class Offers:
    """Offers what this worker does not carry out itself, and carries out what others offer."""

    def __init__(self, engine: "NativeEngine", desk: Desk) -> None:
        self._engine = engine
        self._hands = engine.hands
        self._desk = desk
        self._rows: list[tuple[Live, NewOffer]] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._leased: dict[str, InHand] = {}
        self._pool, self._is_alone = engine.settings.pool, not engine.store.is_shared
        # Whether anybody is there to be told anything; found out anew every second.
        self.has_others = True
        self._looked_at = 0
        # Whether any run is offered or leased, on a store where nobody else could offer one.
        self._has_any = False

    def open(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Hand back what is not done; no attempt is used up by it."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        with suppress(RopewalkError):  # what was not written is lost with the lease, and offered again by its owner
            await self._write()
        await self._hand_back(list(self._leased.values()))

    async def _hand_back(self, leased: list[InHand]) -> None:
        """Whatever stops when it is told to has told its end by then; what does not is handed back without it."""
        for each in leased:
            each.attempt.cancel()
        telling = {each.telling: each for each in leased if each.telling is not None}
        _, deaf = await asyncio.wait(telling, timeout=PATIENCE) if telling else (set(), set())
        for task in deaf:
            task.cancel()
            await self._report(telling[task].offer, telling[task].returned())

    @property
    def busy(self) -> int:
        return len(self._leased)

    # The owner's side

    def place(self, live: Live, command: RunNode, now: int) -> None:
        """Carry out an attempt whose start is durable, here or elsewhere; not if it was called off meanwhile.

        Of an execution that was dropped it is found in the log, by whoever takes that up.
        """
        hands, x = self._hands, live.execution
        hands.promised -= 1
        work = None if live.is_dropped else x.work(command.node, command.item)
        if work is None or work.attempt != command.attempt:
            return
        plan, node = x.plan, work.node
        if (plan.pools[node] or DEFAULT_POOL) == self._pool and (self._is_alone or hands.has_room):
            hands.start(live, work, now)
        elif work.item is None and plan.for_each[node] is not None:
            hands.start(live, work, now)  # the list of a map is evaluated by the owner, who needs it
        else:
            self._engine.background.spawn(self._make(live, command))

    async def _make(self, live: Live, command: RunNode) -> None:
        engine = self._engine
        try:
            work = live.execution.work(command.node, command.item)
            if work is None or work.attempt != command.attempt:
                return
            evaluate = partial(engine.evaluating.beside, live)
            async with self._hands.large.inputs(live, work, evaluate) as inputs:
                blob = await self._hands.large.kept(live, work, inputs)
                if engine.memory.owns(live):
                    self._offer(live, command, None if blob is not None else inputs, blob)
        except NodeFailure as error:
            engine.reports.add(live, _failed(command, error.error))
        except (ExpressionError, TooMuch) as error:
            engine.reports.add(live, _failed(command, RunError(ErrorType.PERMANENT, f"with: {error}")))
        except Exception as error:  # noqa: BLE001 -- the attempt ends one way or another
            engine.reports.add(
                live, _failed(command, RunError(ErrorType.TRANSIENT, f"{type(error).__name__}: {error}"))
            )

    def _offer(self, live: Live, command: RunNode, inputs: Any, blob: Blob | None) -> None:
        x, plan, now = live.execution, live.execution.plan, self._engine.store.now()
        work = x.work(command.node, command.item)
        if work is None or work.attempt != command.attempt:
            return
        told = Offered(
            plan.types[work.node],
            inputs,
            plan.timeouts[work.node] or DEFAULT_ATTEMPT_TIMEOUT,
            plan.config_hash(work.node),
            work.held_since,
            plan.cache_ttl[work.node],
            live.ledger.run(command.node, command.item),
            live.accepted.trace,
            blob,
            live.accepted.bounded_by,
            plan.rate_limits[work.node],
            work.reserved,
        )
        live.offered.add((command.node, command.item, command.attempt))
        about = (live.id, live.accepted.workspace, command.node, place_of(command.item), command.attempt)
        text = msgspec.json.encode(told).decode()
        row = NewOffer(str(uuid_utils.uuid7()), *about, plan.pools[work.node] or DEFAULT_POOL, text, now)
        self._rows.append((live, row))
        self.watch()
        self._wake.set()

    def watch(self) -> None:
        """Something is offered: somebody has to look after it, also where there are no other workers."""
        self._has_any = True
        if self._task is None and not self._engine.store.is_shared:
            self.open()

    def stop(self, live: Live, command: Any) -> None:
        """Tell whoever has the run to stop."""
        key = (command.node, command.item, command.attempt)
        if key in live.offered:
            self._engine.background.spawn(self._stop(live, key))

    async def _stop(self, live: Live, key: offers.Key) -> None:
        try:
            async with self._engine.store.transaction() as tx:
                is_withdrawn = await offers.stop(tx, live.id, key)
        except RopewalkError as error:
            _log.warning("execution %s: a run elsewhere cannot be stopped: %s", live.id, error)
            return
        if is_withdrawn and self._engine.memory.owns(live):
            node, item, attempt = key
            self._engine.reports.add(live, Failed(node, attempt, STOPPED, item))

    # The loop

    def asked(self) -> None:
        """There may be something to lease."""
        self._wake.set()

    async def _run(self) -> None:
        is_shared = self._engine.store.is_shared
        while True:
            timer = asyncio.get_running_loop().call_later(EVERY, self._tick)
            await self._wake.wait()
            self._wake.clear()
            timer.cancel()
            try:
                await self._write()
                if is_shared:
                    await self._lease()
                await self._look_after()
            except RopewalkError as error:
                _log.warning("runs of others cannot be looked at for now: %s", error)
            except Exception:  # noqa: BLE001 -- a fault of ours must not keep others' runs waiting for good
                _log.exception("looking at the runs of others failed; it is tried again")

    def _tick(self) -> None:
        if self._has_any or self._engine.store.is_shared:
            self._wake.set()

    async def _write(self) -> None:
        """Make what is offered known, once: whoever has taken a run may have reported it before we hear of it."""
        made, self._rows = self._rows, []
        offered = [(live, row) for live, row in made if self._engine.memory.owns(live)]
        if not offered:
            return
        try:
            await self._engine.store.write([("insert_offer", [row for _, row in offered])])
        except RopewalkError as error:
            lives = {live.id: live for live, _ in offered if self._engine.memory.owns(live)}
            self._engine.recovery.lost_the_store(list(lives.values()), error)
            raise
        for pool, count in sorted(Counter(row.pool for _, row in offered).items()):
            self._engine.store.hint(f"offer {pool}")
            self._engine.leasing.arrived(pool, count)

    # The runner's side

    async def _lease(self) -> None:
        engine = self._engine
        while (room := min(BATCH, engine.hands.free - self.busy)) > 0:
            now, began = engine.store.now(), time.perf_counter()
            async with engine.store.transaction() as tx:
                found = await offers.lease(tx, engine.settings.pool, tx.worker, now + self._lease_time, now, room)
            if engine.observer is not None and found:
                engine.observer.leased(time.perf_counter() - began)
            for offer in found:
                self._carry_out(offer)
            if len(found) < room:
                return

    @property
    def _lease_time(self) -> int:
        return round(self._engine.store.lease_seconds * SECOND)

    def _carry_out(self, offer: Offer) -> None:
        work = msgspec.json.decode(offer.work, type=Offered)
        now, loop = self._engine.store.now(), asyncio.get_running_loop()
        run = LeasedRun(
            offer.execution, offer.workspace, offer.node, work.type, offer.attempt, item_of(offer.item), work.inputs,
            now, now + work.timeout, work.held_since, work.cache_ttl, work.rate_limit, work.inputs_blob, False,
            work.config_hash, work.bounded_by, work.reserved,
        )  # fmt: skip
        in_hand = self._leased[offer.id] = InHand(offer, loop.create_task(self._run_node(run)))
        in_hand.telling = loop.create_task(self._see_through(in_hand, run, work.timeout))

    async def _run_node(self, run: LeasedRun) -> Outcome:
        try:
            if run.inputs_at is not None:
                run.inputs = await self._engine.memory.values.load(run.inputs_at)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 -- it ends one way or another
            return failure(run, STOPPED if isinstance(error, asyncio.CancelledError) else failure_of(error))
        return with_inputs_at(await run_node(run, self._desk), run.inputs_at)

    async def _see_through(self, in_hand: InHand, run: LeasedRun, limit: int) -> None:
        """Report how the run ended, or that its time is up: not every node stops when it is told to."""
        offer, attempt = in_hand.offer, in_hand.attempt
        # Its time may begin later than it does.
        while not attempt.done() and (left := run.deadline - self._engine.store.now()) > 0:
            await asyncio.wait((attempt,), timeout=left / SECOND)
        signal: Signal
        if attempt.done():
            signal = attempt.result()
        else:
            attempt.cancel()
            signal = Failed(offer.node, offer.attempt, overdue(limit), item_of(offer.item))
        if (
            self._engine.background.is_closing
            and isinstance(signal, Failed)
            and signal.error.message == STOPPED.message
        ):
            signal = in_hand.returned()
        await self._report(offer, with_jitter(signal) if isinstance(signal, Failed) else signal)

    async def _report(self, offer: Offer, signal: Signal) -> None:
        """Tell the owner, if the run is still ours to tell of."""
        store = self._engine.store
        try:
            async with store.transaction() as tx:
                reported = await offers.end(tx, offer, store.now())
                post = [] if reported is None else [await self._engine.reporting.write(tx, offer.execution, signal)]
        except RopewalkError as error:
            _log.warning("execution %s: the run of %s cannot be reported: %s", offer.execution, offer.node, error)
            return
        finally:
            self._leased.pop(offer.id, None)
        if reported is None:
            _log.warning("execution %s: the run of %s was reported too late", offer.execution, offer.node)
        self._engine.reporting.send(post)
        self._wake.set()

    async def _look_after(self) -> None:
        """Keep the own leases, end those of the silent, and see who else is there; from time to time."""
        engine = self._engine
        now = engine.store.now()
        if now - self._looked_at < EVERY * SECOND / 2:
            return
        self._looked_at = now
        await self._extend(now)
        await self._end_silent(now)
        if engine.store.is_shared:
            await self._see_others(now)
        else:
            self._has_any = bool(self._rows) or await offers.are_any(engine.store)
        engine.feed()  # whoever has come since may help

    async def _end_silent(self, now: int) -> None:
        """Whoever has not been heard of in time has lost its runs; their executions are told so."""
        engine, post = self._engine, []
        async with engine.store.transaction() as tx:
            for lost in await offers.expired(tx, now, BATCH):
                signal = engine.leasing.ended(lost) or _lost(lost.run)
                post.append(await self._engine.reporting.write(tx, lost.run.execution, signal))
        self._engine.reporting.send(post)

    async def _see_others(self, now: int) -> None:
        engine = self._engine
        engine.store.load = len(engine.memory.lives) + self.busy
        alive = [
            each for each in await workers.listed(engine.store)
            if each.id != engine.store.worker and each.heartbeat_at > now - self._lease_time
        ]  # fmt: skip
        self.has_others = bool(alive)
        has_company = any(each.pool == DEFAULT_POOL and each.load < each.slots for each in alive)
        engine.hands.helped = MOST_OFFERED if has_company else 0

    async def _extend(self, now: int) -> None:
        """Whoever has lost a run, or is to stop it, stops."""
        mine = list(self._leased.values())
        if not mine:
            return
        async with self._engine.store.transaction() as tx:
            until = now + self._lease_time
            kept = [(each, await offers.extend(tx, each.offer, until, now)) for each in mine]
        for each, is_stopped in kept:
            if is_stopped is None or is_stopped:
                each.attempt.cancel()


def _failed(command: RunNode, error: RunError) -> Failed:
    return Failed(command.node, command.attempt, error, command.item)


def _lost(reported: Reported) -> Lost:
    return Lost(reported.node, reported.attempt, reported.item, random.random())

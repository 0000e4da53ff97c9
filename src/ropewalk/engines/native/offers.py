"""Runs that are carried out elsewhere: those of a pool, and those of a wide execution whose owner has no hand free.

The owner writes such a run down as an offer with everything a runner needs. A runner that has gone silent loses its
runs, and the owner is told so. The owner itself leases like every other worker (`engines/leased.py`).
"""

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import uuid_utils

from ropewalk.core.commands import RunNode, StopRun
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, RopewalkError, RunError
from ropewalk.core.events import Blob
from ropewalk.core.execution.view import TooMuch
from ropewalk.core.expression import ExpressionError
from ropewalk.core.plan import DEFAULT_ATTEMPT_TIMEOUT
from ropewalk.core.signals import Failed
from ropewalk.engines.background import Background
from ropewalk.engines.leased import LeasedRuns, Offered
from ropewalk.engines.leasing import Leasing
from ropewalk.engines.native.deciding import Deciding, GiveUp
from ropewalk.engines.native.evaluating import Evaluating
from ropewalk.engines.native.hands import Hands
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.reports import Reports
from ropewalk.engines.runner import STOPPED
from ropewalk.engines.settings import DEFAULT_POOL
from ropewalk.nodes.failure import NodeFailure
from ropewalk.store import offers, workers
from ropewalk.store.access import Store
from ropewalk.store.events import place_of
from ropewalk.store.rows import NewOffer

EVERY = 1.0
MOST_OFFERED = 1_000

_log = logging.getLogger("ropewalk.engine")


class Offers:
    """Offers what this worker does not carry out itself, and has it carry out what others offer."""

    def __init__(self, store: Store, pool: str, background: Background, leasing: Leasing, leased: LeasedRuns,
                 memory: Memory, hands: Hands, reports: Reports, evaluating: Evaluating, deciding: Deciding,
                 give_up: GiveUp) -> None:  # fmt: skip
        self._store = store
        self._pool, self._is_alone = pool, not store.is_shared
        self._background = background
        self._leasing = leasing
        self._leased = leased
        leased.on_done = self.asked
        self._memory = memory
        self._hands = hands
        self._reports = reports
        self._evaluating = evaluating
        self._deciding = deciding
        self._give_up = give_up
        self._rows: list[tuple[Live, NewOffer]] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # Whether another worker is there to be told anything; found out anew every second.
        self.has_others = True
        self._looked_at = 0
        # Whether any run is offered or leased, on a store where no other worker could offer one.
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
        await self._leased.hand_back()

    def place(self, live: Live, command: RunNode, now: int) -> None:
        """Carry out an attempt whose start is durable, here or elsewhere; not if it was called off meanwhile.

        Of an execution that was dropped it is found in the log, by the worker that takes that up.
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
            self._background.spawn(self._make(live, command))

    async def _make(self, live: Live, command: RunNode) -> None:
        try:
            work = live.execution.work(command.node, command.item)
            if work is None or work.attempt != command.attempt:
                return
            evaluate = partial(self._evaluating.beside, live)
            async with self._hands.large.inputs(live, work, evaluate) as inputs:
                blob = await self._hands.large.kept(live, work, inputs)
                if self._memory.owns(live):
                    self._offer(live, command, None if blob is not None else inputs, blob)
        except NodeFailure as error:
            self._reports.add(live, _failed(command, error.error))
        except (ExpressionError, TooMuch) as error:
            self._reports.add(live, _failed(command, RunError(ErrorType.PERMANENT, f"with: {error}")))
        except Exception as error:  # noqa: BLE001 -- the attempt ends one way or another
            self._reports.add(live, _failed(command, RunError(ErrorType.TRANSIENT, f"{type(error).__name__}: {error}")))

    def _offer(self, live: Live, command: RunNode, inputs: Any, blob: Blob | None) -> None:
        x, plan, now = live.execution, live.execution.plan, self._store.now()
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
            plan.credentials(work.node),
            work.round,
        )
        live.offered.add((command.node, command.item, command.attempt))
        about = (live.id, live.accepted.workspace, command.node, place_of(command.item), command.attempt)
        text = msgspec.json.encode(told).decode()
        row = NewOffer(str(uuid_utils.uuid7()), *about, plan.pools[work.node] or DEFAULT_POOL, text, now)
        self._rows.append((live, row))
        self.watch()
        self._wake.set()

    def watch(self) -> None:
        """Something is offered: this worker looks after it, also where there is no other."""
        self._has_any = True
        if self._task is None and not self._store.is_shared:
            self.open()

    def stop(self, live: Live, command: StopRun) -> None:
        """Tell the worker or runner that has the run to stop."""
        self._hands.stop(live, command.node, command.attempt, command.item)
        key = (command.node, command.item, command.attempt)
        if key in live.offered:
            self._background.spawn(self._stop(live, key))

    async def _stop(self, live: Live, key: offers.Key) -> None:
        try:
            async with self._store.transaction() as tx:
                is_withdrawn = await offers.stop(tx, live.id, key)
        except RopewalkError as error:
            _log.warning("execution %s: a run elsewhere cannot be stopped: %s", live.id, error)
            return
        if is_withdrawn and self._memory.owns(live):
            node, item, attempt = key
            self._reports.add(live, Failed(node, attempt, STOPPED, item))

    # The loop

    def asked(self) -> None:
        """There may be something to lease."""
        self._wake.set()

    async def _run(self) -> None:
        is_shared = self._store.is_shared
        while True:
            timer = asyncio.get_running_loop().call_later(EVERY, self._tick)
            await self._wake.wait()
            self._wake.clear()
            timer.cancel()
            try:
                await self._write()
                if is_shared:
                    await self._leased.lease(lambda: self._hands.free)
                await self._look_after()
            except RopewalkError as error:
                _log.warning("runs of others cannot be looked at for now: %s", error)
            except Exception:  # noqa: BLE001 -- a fault of ours must not keep others' runs waiting for good
                _log.exception("looking at the runs of others failed; it is tried again")

    def _tick(self) -> None:
        if self._has_any or self._store.is_shared:
            self._wake.set()

    async def _write(self) -> None:
        """Make what is offered known, once: a run may be taken and reported before this worker hears of it."""
        made, self._rows = self._rows, []
        offered = [(live, row) for live, row in made if self._memory.owns(live)]
        if not offered:
            return
        try:
            await self._store.write([("insert_offer", [row for _, row in offered])])
        except RopewalkError as error:
            lives = {live.id: live for live, _ in offered if self._memory.owns(live)}
            self._give_up(list(lives.values()), error)
            raise
        for pool, count in sorted(Counter(row.pool for _, row in offered).items()):
            self._store.hint(f"offer {pool}")
            self._leasing.arrived(pool, count)

    async def _look_after(self) -> None:
        """Keep the own leases, end those of the silent, and see who else is there; from time to time."""
        now = self._store.now()
        if now - self._looked_at < EVERY * SECOND / 2:
            return
        self._looked_at = now
        await self._leased.extend(now)
        await self._leasing.end_silent(now)
        if self._store.is_shared:
            await self._see_others(now)
        else:
            self._has_any = bool(self._rows) or await offers.are_any(self._store)
        self._deciding.feed()  # a worker that has come since may help

    async def _see_others(self, now: int) -> None:
        self._store.load = len(self._memory.lives) + self._leased.busy
        alive = [
            each for each in await workers.listed(self._store)
            if each.id != self._store.worker and each.heartbeat_at > now - self._leased.lease_time
        ]  # fmt: skip
        self.has_others = bool(alive)
        has_company = any(each.pool == DEFAULT_POOL and each.load < each.slots for each in alive)
        self._hands.helped = MOST_OFFERED if has_company else 0


def _failed(command: RunNode, error: RunError) -> Failed:
    return Failed(command.node, command.attempt, error, command.item)

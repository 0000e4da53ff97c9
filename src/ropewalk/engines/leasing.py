"""Runs carried out by those who are no workers: they lease over HTTP, say now and then that they live, and report.

A lease ends when nothing was heard for its time, and then the attempt counts as lost; or with the time limit of the
run, and then it timed out. Reports count only under the fence of the lease and before its end.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.canonical import content_hash, idempotency_key
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, InvalidInput, InvalidTransition, Problem, RunError
from ropewalk.core.reach import refusal
from ropewalk.core.signals import Failed, Lost, Signal, Succeeded, Suspended
from ropewalk.core.waits import RateLimitWait
from ropewalk.engines.background import Background
from ropewalk.engines.base import Observer
from ropewalk.engines.held_values import HeldValues
from ropewalk.engines.leased import BATCH, Offered
from ropewalk.engines.rate_limits import RateLimits
from ropewalk.engines.reporting import Reporting
from ropewalk.engines.runner import INLINE_LIMIT, with_jitter
from ropewalk.nodes.base import Registry
from ropewalk.store import offers
from ropewalk.store.access import Store, Transaction
from ropewalk.store.events import item_of
from ropewalk.store.files import names_inside
from ropewalk.store.offers import RUNNER, Expired, Offer
from ropewalk.store.rows import BlobReference

LOOKS_EVERY: Final = 2.0
MOST_WOKEN: Final = 32
OVERDUE: Final = RunError(ErrorType.TIMEOUT, "the node did not end in its time limit")

_log = logging.getLogger("ropewalk.engine")


class LeaseOver(InvalidTransition):
    """The lease is over, or was never the caller's; a report under it changes nothing."""


class Seeker(Struct, frozen=True):
    """A runner that looks for work."""

    workspace: str
    pool: str
    runner: str
    limit: int


class Lease(Struct, frozen=True):
    """What a runner shows with every report: which run it has, as whom, and under which fence."""

    offer: str
    run: str
    workspace: str
    runner: str
    fence: int
    deadline: int


class Leased(Struct, frozen=True):
    """A run in the hands of a runner, with everything it needs to know."""

    lease: Lease
    offer: Offer
    work: Offered

    @property
    def item(self) -> int | None:
        return item_of(self.offer.item)

    @property
    def idempotency_key(self) -> str:
        offer, work = self.offer, self.work
        inputs = content_hash(work.inputs) if work.inputs_blob is None else work.inputs_blob.hash
        place = work.round or self.item
        return idempotency_key(offer.workspace, offer.execution, offer.node, place, inputs, work.config_hash)


class Kept(Struct, frozen=True):
    """A lease that goes on until then; one whose run is not wanted any more is to be given up."""

    until: int
    is_stopped: bool


class Leasing:
    """Hands runs to runners, and hears of them."""

    def __init__(self, store: Store, types: Registry, rate_limits: RateLimits, values: HeldValues,
                 reporting: Reporting, background: Background, lease_seconds: float) -> None:  # fmt: skip
        self._store = store
        self._types = types
        self._rate_limits = rate_limits
        self._values = values
        self._reporting = reporting
        self._background = background
        self._lease_time = round(lease_seconds * SECOND)
        self.observer: Observer | None = None
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._is_ending = False
        # Whether runners can reach this process at all.
        self.is_open = False
        self.refused = 0

    @property
    def waiting(self) -> int:
        """How many runners wait for work."""
        return sum(map(len, self._waiting.values()))

    # Looking for work

    async def lease(self, seeker: Seeker, seconds: float, gone: "asyncio.Future[None]") -> list[Leased]:
        """The oldest runs of the pool; waits so long for the first to come, unless the runner is gone."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while not (found := await self._take(seeker)):
            left = until - loop.time()
            if left <= 0 or self._is_ending or gone.done():
                break
            await self._arrival(seeker.pool, min(left, LOOKS_EVERY), gone)
        if len(found) == seeker.limit:
            self.arrived(seeker.pool, 1)  # there may be more for the next in line
        return found

    async def _take(self, seeker: Seeker) -> list[Leased]:
        store = self._store
        # Asked first: most look in vain, and reading locks nothing.
        if self._background.is_closing or not await offers.is_waiting(store, seeker.workspace, seeker.pool):
            return []
        began = time.perf_counter()
        async with store.transaction() as tx:
            now = store.now()
            about = (seeker.workspace, seeker.pool, seeker.runner)
            found = await offers.lease_in(tx, *about, now + self._lease_time, now, seeker.limit)
            leased = [await self._leased(tx, offer, now) for offer in found]
        leased = [await self._with_inputs(each) for each in await self._in_turn(leased)]
        if self.observer is not None and leased:
            self.observer.leased(time.perf_counter() - began)
        return leased

    async def _leased(self, tx: Transaction, offer: Offer, now: int) -> Leased:
        work = msgspec.json.decode(offer.work, type=Offered)
        deadline = now + work.timeout
        if work.timeout < self._lease_time:
            await offers.cap(tx, offer.id, deadline)
            offer = replace(offer, lease_until=deadline)
        lease = Lease(offer.id, work.run or offer.id, offer.workspace, offer.leased_by or "", offer.fence, deadline)
        return Leased(lease, offer, work)

    async def _in_turn(self, leased: list[Leased]) -> list[Leased]:
        """The runs that may begin now by the rate limits they name: at most one that names any, the others later."""
        limited = [each for each in leased if each.work.rate_limit is not None]
        if not limited:
            return leased
        if len(limited) > 1:
            await self.give_back(limited[1:])
        is_first = await self._has_turn(limited[0])
        return [each for each in leased if each.work.rate_limit is None or (is_first and each is limited[0])]

    async def _has_turn(self, leased: Leased) -> bool:
        """Whether it is the run's turn; if not, it waits without a runner."""
        work, offer = leased.work, leased.offer
        if work.bounded_by:
            refused = refusal(f"the rate limit {work.rate_limit!r}", work.bounded_by)
            await self.fail(leased.lease, RunError(ErrorType.PERMANENT, refused))
            return False
        limits = self._rate_limits
        turn = await limits.turn(offer.workspace, work.rate_limit, None, work.reserved)
        if not isinstance(turn, RateLimitWait):
            await asyncio.sleep(0 if turn is None else max(0, turn - limits.now()) / SECOND)
            return True
        about = (offer.node, offer.attempt, turn, leased.item, work.inputs or None, work.inputs_blob)
        await self._report(leased.lease, lambda _: Suspended(*about))
        return False

    async def _with_inputs(self, leased: Leased) -> Leased:
        """Large inputs lie elsewhere, and a runner is told them like any others."""
        if (blob := leased.work.inputs_blob) is None:
            return leased
        return replace(leased, work=replace(leased.work, inputs=await self._values.load(blob)))

    async def _arrival(self, pool: str, seconds: float, gone: "asyncio.Future[None]") -> None:
        coming: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line = self._waiting.setdefault(pool, deque())
        line.append(coming)
        try:
            await asyncio.wait((coming, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            with suppress(ValueError):  # the seeker that was called has left the line already
                line.remove(coming)
            if not line and self._waiting.get(pool) is line:
                del self._waiting[pool]

    def arrived(self, pool: str, count: int) -> None:
        """So many runs of a pool may be leased: the seeker that has waited longest looks first."""
        line = self._waiting.get(pool, ())
        for _ in range(min(count, len(line))):
            coming = self._waiting[pool].popleft()
            if not coming.done():
                coming.set_result(None)

    def hinted(self, topics: list[str]) -> None:
        """Others have made offers."""
        for pool in list(self._waiting) if self._waiting else ():
            if f"offer {pool}" in topics or "*" in topics:
                self.arrived(pool, MOST_WOKEN)

    async def give_back(self, leased: list[Leased]) -> None:
        """The runner never heard of these: others may have them, and no attempt is used up."""
        async with self._store.transaction() as tx:
            for each in leased:
                await offers.unlease(tx, each.offer)
        for each in leased:
            self.arrived(each.offer.pool, 1)

    def end_waiting(self) -> None:
        """No seeker waits any longer, nor will."""
        self._is_ending = True
        for pool in list(self._waiting):
            self.arrived(pool, len(self._waiting[pool]))

    # Under a lease

    async def keep(self, lease: Lease) -> Kept:
        """The runner lives and keeps the run for another while, but not beyond the run's time limit."""
        store = self._store
        async with store.transaction() as tx:
            now = store.now()
            until = min(now + self._lease_time, lease.deadline)
            is_stopped = await offers.extend(tx, await self._held(tx, lease), until, now)
            if is_stopped is None:
                raise self._too_late(lease)
        return Kept(until, is_stopped)

    async def succeed(self, lease: Lease, output: Any, ports: tuple[str, ...], tokens: int | None = None) -> None:
        """The run has this result; a large one is kept apart, as if a worker had made it.

        InvalidInput for ports that its node does not have; the run stays leased.
        """
        encoded = msgspec.json.encode(output)
        is_large = len(encoded) > INLINE_LIMIT
        blob = await self._store.blobs.put(encoded) if is_large else None
        value = None if is_large else output

        def success(run: Leased) -> Succeeded:
            self._check_ports(run.work, ports)
            about = (run.item, run.work.inputs or None, blob, tokens, run.work.inputs_blob)
            return Succeeded(run.offer.node, run.offer.attempt, value, ports, *about)

        await self._report(lease, success, [] if blob is None else names_inside(blob, encoded))

    def _check_ports(self, work: Offered, ports: tuple[str, ...]) -> None:
        node_type = self._types.get(work.type)
        if node_type is not None and (wrong := node_type.wrong_ports(work.inputs or {}, ports)):
            raise InvalidInput([Problem(("ports",), wrong)])

    async def fail(self, lease: Lease, error: RunError) -> None:
        """The run failed so."""
        await self._report(lease, lambda run: with_jitter(
            Failed(run.offer.node, run.offer.attempt, error, run.item, run.work.inputs or None, 0.0,
                   run.work.inputs_blob)
        ))  # fmt: skip

    async def _report(
        self, lease: Lease, signal_of: Callable[[Leased], Signal], names: Sequence[BlobReference] = ()
    ) -> None:
        store = self._store
        async with store.transaction() as tx:
            held = await self._held(tx, lease)
            if await offers.end(tx, held, store.now()) is None:
                raise self._too_late(lease)
            run = Leased(lease, held, msgspec.json.decode(held.work, type=Offered))
            posted = await self._reporting.write(tx, held.execution, signal_of(run))
            await tx.execute_many("insert_blob_reference", names)
        self._reporting.send([posted])

    async def _held(self, tx: Transaction, lease: Lease) -> Offer:
        """The offer as the lease has it: if that is not so any more, nothing is found under its fence."""
        found = await offers.get(tx, lease.offer)
        if found is None or found.workspace != lease.workspace:
            raise self._too_late(lease)
        return replace(found, leased_by=lease.runner, fence=lease.fence)

    def not_theirs(self, run: str) -> LeaseOver:
        """A runner reports that has no lease of the run."""
        self.refused += 1
        _log.warning("run %s: a runner without a lease of it reports, and is refused", run)
        return LeaseOver("this is no lease of yours")

    def _too_late(self, lease: Lease) -> LeaseOver:
        self.refused += 1
        _log.warning("run %s: %s reports too late, and is not listened to", lease.run, lease.runner)
        return LeaseOver("this lease is over: the run was ended, or is leased to another by now; stop working on it")

    async def end_silent(self, now: int) -> None:
        """A runner or worker that was not heard of in time has lost its runs; their executions are told so."""
        async with self._store.transaction() as tx:
            expired = await offers.expired(tx, now, BATCH)
            post = [await self._reporting.write(tx, each.run.execution, self._ended(each)) for each in expired]
        self._reporting.send(post)

    def _ended(self, expired: Expired) -> Signal:
        """What became of a run: its lease ended with its time limit, or its runner was not heard of."""
        run = expired.run
        if not expired.leased_by.startswith(RUNNER) or expired.granted >= self._lease_time:
            return Lost(run.node, run.attempt, run.item, random.random())
        return with_jitter(Failed(run.node, run.attempt, OVERDUE, run.item))

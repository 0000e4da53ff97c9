"""What is kept, and for how long; one bounded step of removing the rest, and the loop that takes it again and again.

A step never takes long: it removes at most so many of each kind in one transaction, and remembers how far it got. A
round of steps looks at everything that is old once. On a fleet one worker does this for all.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import uuid_utils
from msgspec import Struct

from ropewalk.core.duration import DAY, HOUR, MINUTE, SECOND, format_duration
from ropewalk.core.errors import InvalidInput, Problem, RopewalkError
from ropewalk.engines.base import Custody
from ropewalk.engines.custody import STORED
from ropewalk.store import audit, cache, idempotency, inbox, kept_values, retention, singletons, triggers, workers
from ropewalk.store.access import Reader, Store, Transaction
from ropewalk.store.retention import Cutoffs, RemovableBlobs
from ropewalk.store.rows import AuditEntry

STEP: Final = 500
SHORTEST: Final = HOUR
"""A person who wants to reopen an execution has at least this long before it is removed."""

NAMED_WITHIN: Final = DAY
"""A new blob is named by a log at the latest after so long, or never."""

_NAME: Final = "retention"
_log = logging.getLogger("ropewalk.retention")


class Policy(Struct, frozen=True, kw_only=True):
    """How long (µs) executions are kept after their end, dead letters after their resolution, the audit log (None: for
    good). Where other workers write too, a step removes at most `step` of each kind: other writers wait no longer for
    it than for a few commits. `pause` is between two steps, `rest` after a round that found nothing more to remove."""

    executions: int = 30 * DAY
    letters: int = 30 * DAY
    audit: int | None = None
    step: int = 100
    pause: int = SECOND // 10
    rest: int = 10 * MINUTE

    def __post_init__(self) -> None:
        given = {"executions": self.executions, "letters": self.letters, "audit": self.audit}
        problems = [
            Problem((name,), f"must be kept for {format_duration(SHORTEST)} at least")
            for name, length in given.items()
            if length is not None and length < SHORTEST
        ]
        if problems:
            raise InvalidInput(problems)

    def cutoffs(self, now: int) -> Cutoffs:
        return Cutoffs(
            now=now, executions=now - self.executions, letters=now - self.letters, blobs=now - NAMED_WITHIN
        )  # fmt: skip


DEFAULT: Final = Policy()


class Position(Struct, frozen=True):
    """How far a round has come: the last execution and the last blob looked at, None when all were."""

    execution: str | None = ""
    blob: str | None = ""

    @property
    def is_end(self) -> bool:
        return self.execution is None and self.blob is None


START: Final = Position()


class Swept(Struct, frozen=True, kw_only=True):
    """How much of what was removed, and where to go on."""

    executions: int = 0
    letters: int = 0
    keys: int = 0
    results: int = 0
    audit: int = 0
    blobs: int = 0
    position: Position = START

    @property
    def total(self) -> int:
        return self.executions + self.letters + self.keys + self.results + self.audit + self.blobs


async def sweep(store: Store, now: int, policy: Policy = DEFAULT, position: Position = START, *,
                limit: int = STEP, on_behalf: tuple[str, str] | None = None,
                custody: Custody = STORED) -> Swept:  # fmt: skip
    """One step: remove at most `limit` of each kind of what is old; audited if it is on behalf of (workspace, who)."""
    cut, blobs = policy.cutoffs(now), 0
    executions: list[str] = []
    at_execution, at_blob = position.execution, position.blob
    async with store.transaction() as tx:
        if at_execution is not None:
            executions, at_execution = await retention.remove_executions(tx, at_execution, cut, limit)
        rest = await _forget(tx, store.worker, policy, cut, limit)
        if on_behalf is not None and len(executions) + sum(rest):
            await _audit(tx, now, *on_behalf, len(executions))
    if executions:
        await custody.forget(executions)
    if at_blob is not None:
        blobs, at_blob = await _sweep_blobs(store, at_blob, cut, limit)
    letters, keys, results, entries = rest
    return Swept(
        executions=len(executions), letters=letters, keys=keys, results=results, audit=entries, blobs=blobs,
        position=Position(at_execution, at_blob),
    )  # fmt: skip


async def _sweep_blobs(store: Store, after: str, cut: Cutoffs, limit: int) -> tuple[int, str | None]:
    """Last, and apart from the rest: the values themselves are not part of every store's transactions.

    One that cannot be removed ends this part of the round, with a word in the log, and holds up nothing else.
    """
    if not isinstance(store.blobs, RemovableBlobs):
        return 0, None
    try:
        async with store.transaction() as tx:
            return await retention.remove_blobs(tx, store.blobs, after, cut, limit)
    except RopewalkError as error:
        _log.warning("large values cannot be removed for now: %s", error)
        return 0, None


async def _forget(tx: Transaction, worker: str, policy: Policy, cut: Cutoffs, limit: int) -> tuple[int, int, int, int]:
    await retention.forget_holds(tx, cut.now)
    await workers.forget(tx, worker, cut.now - DAY)
    await inbox.drop_answers(tx, cut.now - HOUR)
    return (
        await retention.forget_letters(tx, cut.letters, limit),
        await retention.forget_keys(tx, cut.now, limit),
        await cache.forget_expired(tx, cut.now, limit)
        + await kept_values.forget_expired(tx, cut.now, limit)
        + await triggers.forget_old(tx, cut.now, limit),
        0 if policy.audit is None else await retention.forget_audit(tx, cut.now - policy.audit, limit),
    )


async def _audit(tx: Transaction, now: int, workspace: str, by: str, executions: int) -> None:
    about = (workspace, by, "sweep", "store", None, None, f"{executions} executions")
    await audit.append(tx, AuditEntry(str(uuid_utils.uuid7()), now, *about))


async def survey(reader: Reader, now: int, policy: Policy = DEFAULT) -> Swept:
    """What a sweep would remove first, without doing it: parents go after their children, blobs after both."""
    cut = policy.cutoffs(now)
    return Swept(
        executions=await retention.count_executions(reader, cut),
        letters=await retention.count(reader, "count_old_dead_letters", cut.letters),
        keys=await retention.count(reader, "count_old_idempotency", now - idempotency.KEPT),
        results=await retention.count(reader, "count_expired_results", now)
        + await retention.count(reader, "count_expired_values", now),
    )


# The loop


async def run_forever(store: Store, policy: Policy = DEFAULT,
                      told: Callable[[Swept], None] | None = None, custody: Custody = STORED) -> None:  # fmt: skip
    """Remove what is old as it gets old, as long as it is this worker's turn; `told` hears of every step."""
    keeper = Retention(store, policy, custody=custody)
    try:
        while True:
            swept = await keeper.step()
            if swept is not None and told is not None:
                told(swept)
            await asyncio.sleep(keeper.pause / SECOND)
    finally:
        await keeper.leave()


class Retention:
    """One worker's part: takes steps while it is its turn, and knows how long to wait after each."""

    def __init__(self, store: Store, policy: Policy = DEFAULT, holder: str | None = None,
                 custody: Custody = STORED) -> None:  # fmt: skip
        self._store = store
        self._policy = policy
        self._holder = holder or store.worker
        self._custody = custody
        self._position = START
        self._removed = 0
        self._is_ours = False
        self.pause = policy.pause

    async def step(self) -> Swept | None:
        """Takes a step if it is this worker's turn; None if it is another's, or the store does not answer."""
        try:
            self._is_ours = await self._take_turn()
            swept = await self._sweep() if self._is_ours else None
        except RopewalkError as error:
            _log.warning("nothing can be removed for now: %s", error)
            swept = None
        except Exception:  # noqa: BLE001 -- a fault of ours must not let the store grow for good
            _log.exception("removing what is old failed; it is tried again")
            swept = None
        if swept is None:
            self.pause = self._policy.rest
        return swept

    async def leave(self) -> None:
        """Give up the turn, so that another worker may go on at once."""
        if not self._is_ours:
            return
        self._is_ours = False
        try:
            async with self._store.transaction() as tx:
                await singletons.leave(tx, _NAME, self._holder)
        except RopewalkError as error:
            _log.info("the next has to wait for the end of this worker's turn: %s", error)

    async def _take_turn(self) -> bool:
        """Take the turn until well after the next step; if this worker dies, another takes the turn then."""
        now = self._store.now()
        until = now + self._policy.rest + MINUTE
        async with self._store.transaction() as tx:
            return await singletons.take(tx, _NAME, self._holder, until, now)

    async def _sweep(self) -> Swept:
        policy = self._policy
        swept = await sweep(self._store, self._store.now(), policy, self._position, limit=policy.step,
                            custody=self._custody)  # fmt: skip
        self._removed += swept.total
        self._position, self.pause = swept.position, self._policy.pause
        if swept.position.is_end:
            # Children go before their parents, so a round that removed something is followed by another at once.
            self.pause = self._policy.pause if self._removed else self._policy.rest
            self._position, self._removed = START, 0
        return swept

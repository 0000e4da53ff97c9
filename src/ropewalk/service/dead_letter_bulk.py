"""Many dead letters, one after the other: each is a decision of its own, made by the ordinary verb.

So it does not matter whether other callers work on them at the same time, or whether the verbs are carried out here or
by another process. What gave up after the beginning is left alone: a dead letter that fails again is not taken up
twice.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.core.canonical import JSON
from ropewalk.core.errors import Conflict, InvalidInput, InvalidTransition, NotFound, Problem, Unreadable
from ropewalk.core.state import ExecutionState, Resolution, RunState
from ropewalk.store import dlq, executions
from ropewalk.store.access import Reader
from ropewalk.store.dlq import Pending, Wanted

LOOK_EVERY: Final = 0.05
LOOKS: Final = 4
MOST_LOOKED_AT: Final = 100
"""How many of those under way are looked at in one go; the others have their turn in the next."""

_PAGE: Final = 100


class DeadLetterVerbs(Protocol):
    """What can decide about one dead letter: a service, or a client of one."""

    async def requeue(self, letter: str, overrides: dict[str, JSON] | None = ..., by: str = ...) -> str: ...
    async def discard(self, letter: str, by: str = ..., notes: str | None = ...) -> object: ...


class Pace(Struct, frozen=True, kw_only=True):
    """How fast, how many, and after how many failures it is enough.

    `rate` is per second and never exceeded, not even for a moment. Without one, and with `stop_after_failures`, no more
    are under way at a time than may still fail.
    """

    rate: float | None = None
    stop_after_failures: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        given = {"rate": self.rate, "stopAfterFailures": self.stop_after_failures, "limit": self.limit}
        problems = [
            Problem((name,), "must be more than 0") for name, value in given.items() if value is not None and value <= 0
        ]
        if problems:
            raise InvalidInput(problems)


AT_ONCE: Final = Pace()


class Bounds(Struct, frozen=True, kw_only=True):
    """Where to begin and how long to go on, for callers that do it in steps.

    Letters up to `after` were dealt with, and none younger than `last` is meant; `failures` are those of the steps
    before. `seconds` is for taking up letters; those that were are watched for `LINGER` more.
    """

    after: str = ""
    last: str | None = None
    failures: int = 0
    seconds: float | None = None


ALL: Final = Bounds()
LINGER: Final = 5.0


class Outcome(StrEnum):
    """What became of a dead letter: SKIPPED was resolved by another caller, FAILED gave up again, STOPPED ends it."""

    REQUEUED = "REQUEUED"
    DISCARDED = "DISCARDED"
    SKIPPED = "SKIPPED"
    REFUSED = "REFUSED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class Progress(Struct, frozen=True):
    """One thing that happened to one dead letter."""

    letter: str
    execution: str
    outcome: Outcome
    reason: str | None = None


async def requeue_all(reader: Reader, verbs: DeadLetterVerbs, workspace: str, wanted: Wanted, pace: Pace = AT_ONCE,
                      by: str = "local", bounds: Bounds = ALL) -> AsyncIterator[Progress]:  # fmt: skip
    """Tries these dead letters again, the oldest first; stops as soon as enough of them have failed again."""
    beat, watch, time = _Beat(pace.rate, bounds), _Watch(reader, workspace, pace, bounds), _Time(bounds.seconds)
    async for letter in _pending(reader, workspace, wanted, pace.limit, bounds):
        while True:
            for failed in await watch.look():
                yield failed
            if watch.has_seen_enough:
                yield watch.verdict(letter)
                return
            if time.is_up or (watch.has_room and beat.is_due):
                break
            await asyncio.sleep(time.at_most(beat.patience(LOOK_EVERY if watch.is_watching else None)))
        if time.is_up:
            break
        done = await _requeued(letter, verbs, by, watch)
        if done.outcome is Outcome.REQUEUED:
            beat.struck()
            watch.add(letter)
        yield done
    if bounds.seconds is not None:
        async for failed in watch.linger():
            yield failed


async def discard_all(reader: Reader, verbs: DeadLetterVerbs, workspace: str, wanted: Wanted, by: str = "local",
                      notes: str | None = None, limit: int | None = None,
                      bounds: Bounds = ALL) -> AsyncIterator[Progress]:  # fmt: skip
    """Closes these dead letters, the oldest first."""
    time = _Time(bounds.seconds)
    async for letter in _pending(reader, workspace, wanted, limit, bounds):
        if time.is_up:
            return
        try:
            await verbs.discard(letter.id, by, notes)
        except (Conflict, NotFound) as error:
            yield Progress(letter.id, letter.execution, Outcome.SKIPPED, str(error))
        except InvalidTransition as error:
            yield Progress(letter.id, letter.execution, Outcome.REFUSED, str(error))
        else:
            yield Progress(letter.id, letter.execution, Outcome.DISCARDED)


async def newest(reader: Reader, workspace: str) -> str | None:
    """The newest dead letter, so that later ones are left alone."""
    found = await dlq.listed(reader, workspace, limit=1)
    return found[0].id if found else None


async def _pending(
    reader: Reader, workspace: str, wanted: Wanted, limit: int | None, bounds: Bounds
) -> AsyncIterator[Pending]:
    """The unresolved dead letters, page by page."""
    last = bounds.last or await newest(reader, workspace)
    after, left = bounds.after, limit
    while last is not None and left != 0:
        size = _PAGE if left is None else min(_PAGE, left)
        page = await dlq.pending(reader, workspace, wanted, after=after, last=last, limit=size)
        for letter in page:
            yield letter
        if len(page) < size:
            return
        after = page[-1].id
        left = None if left is None else left - len(page)


async def _requeued(letter: Pending, verbs: DeadLetterVerbs, by: str, watch: "_Watch") -> Progress:
    """Tries one dead letter again; a refusal of one does not stop the others."""
    try:
        await verbs.requeue(letter.id, None, by)
    except (Conflict, NotFound) as error:
        return Progress(letter.id, letter.execution, Outcome.SKIPPED, str(error))
    except Unreadable as error:
        return Progress(letter.id, letter.execution, Outcome.REFUSED, str(error))
    except InvalidTransition as error:
        # A faster caller has resolved it, or will have in a moment; else the request itself is at fault.
        outcome = Outcome.REFUSED if await watch.stays_pending(letter) else Outcome.SKIPPED
        return Progress(letter.id, letter.execution, outcome, str(error))
    return Progress(letter.id, letter.execution, Outcome.REQUEUED)


class _Beat:
    """When the next may go: never sooner after the last than the rate allows, however long the last took to come."""

    def __init__(self, rate: float | None, bounds: Bounds) -> None:
        self._interval = 0.0 if rate is None else 1 / rate
        self._now = asyncio.get_running_loop().time
        # The step before may have ended just now, with one of them.
        self._next = self._now() + (self._interval if bounds.after else 0.0)

    @property
    def is_due(self) -> bool:
        return self._now() >= self._next

    def struck(self) -> None:
        self._next = self._now() + self._interval

    def patience(self, longest: float | None) -> float:
        """How long to wait before asking again."""
        left = self._next - self._now()
        if longest is None:
            return max(0.0, left)
        return longest if left <= 0 else min(longest, left)


class _Time:
    """How long there is to go on; without end if the caller names none."""

    def __init__(self, seconds: float | None) -> None:
        self._now = asyncio.get_running_loop().time
        self._end = None if seconds is None else self._now() + seconds

    @property
    def is_up(self) -> bool:
        return self._end is not None and self._now() >= self._end

    def at_most(self, pause: float) -> float:
        """A pause that does not outlast it."""
        return pause if self._end is None else max(0.0, min(pause, self._end - self._now()))


class _Watch:
    """Sees what becomes of the dead letters that were tried again, as long as failures are counted."""

    def __init__(self, reader: Reader, workspace: str, pace: Pace, bounds: Bounds) -> None:
        self._reader = reader
        self._workspace = workspace
        self._most = pace.stop_after_failures
        self._is_paced = pace.rate is not None
        self._failures = bounds.failures
        self._under_way: deque[Pending] = deque()

    @property
    def is_watching(self) -> bool:
        return bool(self._under_way)

    @property
    def has_seen_enough(self) -> bool:
        return self._most is not None and self._failures >= self._most

    @property
    def has_room(self) -> bool:
        """Whether one more may fail without there being more failures than wanted; a rate is the caller's own way."""
        return self._most is None or self._is_paced or len(self._under_way) + self._failures < self._most

    def add(self, letter: Pending) -> None:
        if self._most is not None:
            self._under_way.append(letter)

    async def look(self) -> list[Progress]:
        """The dead letters that have failed again since the last look."""
        failed = []
        for _ in range(min(MOST_LOOKED_AT, len(self._under_way))):
            letter = self._under_way.popleft()
            has_failed = await self._has_failed(letter)
            if has_failed is None:
                self._under_way.append(letter)
            elif has_failed:
                self._failures += 1
                failed.append(Progress(letter.id, letter.execution, Outcome.FAILED))
        return failed

    async def linger(self) -> AsyncIterator[Progress]:
        """The dead letters that fail within a moment after the last was taken up; later failures are not counted."""
        time = _Time(LINGER)
        while self.is_watching and not time.is_up:
            for failed in await self.look():
                yield failed
            if self.is_watching:
                await asyncio.sleep(LOOK_EVERY)

    def verdict(self, next_letter: Pending) -> Progress:
        reason = f"{self._failures} of those that were tried again have failed again"
        return Progress(next_letter.id, next_letter.execution, Outcome.STOPPED, reason)

    async def _has_failed(self, letter: Pending) -> bool | None:
        """Whether it gave up again; None as long as that is open."""
        run = await dlq.tried_again(self._reader, letter)
        if run in (RunState.SUCCESS, RunState.DLQ):
            return run is RunState.DLQ
        execution = await executions.load(self._reader, letter.execution)
        if execution is None:
            return False
        state = ExecutionState(execution.state)
        if not state.is_ended or await self._is_pending(letter):
            return None
        return state.is_reopenable

    async def stays_pending(self, letter: Pending) -> bool:
        """Whether it is unresolved, and stays so for a few looks."""
        for _ in range(LOOKS):
            if not await self._is_pending(letter):
                return False
            await asyncio.sleep(LOOK_EVERY)
        return True

    async def _is_pending(self, letter: Pending) -> bool:
        """Whether it is unresolved; the end of the execution is the old one then."""
        found = await dlq.get(self._reader, self._workspace, letter.id)
        return found is not None and found.resolution == Resolution.PENDING

"""Rate limits: at most so many calls in any stretch of time, by slots that are handed out one after the other.

A slot is a moment from which one call may begin, up to `LATEST` later. The next slot is never before the slot `limit`
places earlier plus `span`, which is `per` and a margin: a call that goes out late for its slot and one that does so in
time for the slot `limit` places later are still `per` apart. Slots are also at least `spacing` apart, so that a burst
does not repeat at the end of one stretch and the beginning of the next.

Pure functions of what was handed out: the worker that keeps it reads it, asks, and writes back what it is given. Only
the last `limit` slots matter, and these are kept in runs of neighbours, so what is kept stays small. A run counts as
late as its last slot, which errs on the side of fewer calls.
"""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.core.duration import DAY, MILLISECOND, SECOND
from ropewalk.core.target import matches

MOST_CALLS = 1_000_000
SHORTEST_PER, LONGEST_PER = 10 * MILLISECOND, 31 * DAY
FASTEST = 10_000
"""So many calls a second at most; what is faster needs no limit."""
WIDEST_SPACING = 106 * MILLISECOND
LATEST = 30 * MILLISECOND
"""A call may begin so much later than its slot; later it needs another."""
MARGIN = LATEST + 30 * MILLISECOND
"""And so much later it has gone out, unless the process was held up for longer."""
MOST_LOST = 16
"""To be exact costs at most this part of the calls: where `per` is under a second, a late call may count twice."""
RUNS = 250
"""In so many parts of `per` neighbours are one run."""


class RateLimit(Struct, frozen=True):
    """At most `limit` calls in any `per` (µs), for nodes that name it and for calls to hosts like these."""

    limit: int
    per: int
    hosts: tuple[str, ...] = ()

    @property
    def spacing(self) -> int:
        """How far apart slots are at least (µs)."""
        return min(WIDEST_SPACING, -(-self.span // self.limit))

    @property
    def span(self) -> int:
        """How far apart a slot and the one `limit` places later are at least (µs)."""
        return self.per + min(MARGIN, self.per // MOST_LOST)

    @property
    def is_even(self) -> bool:
        """Whether slots that are that far apart keep the limit by that alone."""
        return self.spacing * self.limit >= self.span

    def holds_for(self, target: str) -> bool:
        return any(matches(pattern, target) for pattern in self.hosts)


Slots = tuple[tuple[int, int], ...]
"""Slots that were handed out, in runs of neighbours: when the last of the run is, and how many they are."""


def next_slot(taken: Slots, rate: RateLimit, now: int) -> int:
    """When the next slot is: now, unless earlier ones forbid it."""
    if not taken:
        return now
    at = max(now, taken[-1][0] + rate.spacing)
    is_full = not rate.is_even and sum(count for _, count in taken) >= rate.limit
    return max(at, taken[0][0] + rate.span) if is_full else at


def with_slot(taken: Slots, rate: RateLimit, at: int, now: int) -> Slots:
    """What was handed out, and this slot, which is not before the next; without what does not matter any more."""
    if rate.is_even:
        return ((at, 1),)
    runs = [run for run in taken if run[0] + rate.span > now]
    part = max(1, rate.per // RUNS)
    if runs and runs[-1][0] // part == at // part:
        runs[-1] = (at, runs[-1][1] + 1)
    else:
        runs.append((at, 1))
    surplus = sum(count for _, count in runs) - rate.limit
    while surplus > 0:
        first, count = runs[0]
        runs[0] = (first, count - surplus)
        surplus -= count
        if runs[0][1] <= 0:
            del runs[0]
    return tuple(runs)


def place(taken: Slots, rate: RateLimit, now: int, at: int) -> int:
    """Which place in the line a slot has that was handed out: 1 for the next to come."""
    if at <= now or not taken:
        return 1
    if rate.is_even:
        return (at - now) // rate.spacing + 1
    seen = sum(count for moment, count in taken if now < moment <= at)
    # Slots before the ones that are kept come `limit` at a time.
    return max(1, seen + max(0, taken[0][0] - now) * rate.limit // rate.span)


class Wanted(Struct, frozen=True):
    """A limit that a call has to keep, what was handed out for it, and the slot that the call holds already."""

    rate: RateLimit
    taken: Slots = ()
    held: int | None = None


class Turn(Struct, frozen=True):
    """When a call may begin, and by which of its limits it holds a slot for then; `decisive` puts it off the most.

    `taken` is what was handed out for each limit afterwards. A call that does not hold a slot of every limit asks again
    shortly before: a slot that is taken too early would keep others from calling.
    """

    at: int
    taken: tuple[Slots, ...]
    is_held: tuple[bool, ...]
    decisive: int

    @property
    def is_complete(self) -> bool:
        return all(self.is_held)


def next_turn(wanted: Sequence[Wanted], now: int, lead: int) -> Turn:
    """The next moment at which a call keeps all its limits; slots that are `lead` or less before it are taken."""
    held = [each.held if each.held is not None and now <= each.held + LATEST else None for each in wanted]
    earliest = [slot if slot is not None else next_slot(each.taken, each.rate, now)
                for slot, each in zip(held, wanted, strict=True)]  # fmt: skip
    while late := _too_early(held, max(earliest)):
        at = max(earliest)
        for i in late:
            held[i] = None
            earliest[i] = next_slot(wanted[i].taken, wanted[i].rate, at)
    at = max(earliest)
    is_taken = [slot is None and at - first <= lead for slot, first in zip(held, earliest, strict=True)]
    return Turn(
        at,
        tuple(
            with_slot(each.taken, each.rate, at, now) if is_new else each.taken
            for each, is_new in zip(wanted, is_taken, strict=True)
        ),
        tuple(slot is not None or is_new for slot, is_new in zip(held, is_taken, strict=True)),
        earliest.index(at),
    )


def _too_early(held: Sequence[int | None], at: int) -> list[int]:
    """The limits whose slot the call holds, and would miss."""
    return [i for i, slot in enumerate(held) if slot is not None and at > slot + LATEST]


def is_too_fast(limit: int, per: int) -> bool:
    """Whether so many calls in so long are more than any limit allows."""
    return limit * SECOND > FASTEST * per

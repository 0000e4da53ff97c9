"""What the checker is given, and what it answers."""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.core.events import Event
from ropewalk.core.plan import Plan
from ropewalk.core.rows import Rows


class Effect(Struct, frozen=True):
    """One thing the outside world saw a run do; `key` is the idempotency key it came with, if any."""

    execution: str
    node: str
    item: int | None
    attempt: int
    key: str


class History(Struct, frozen=True):
    """One execution's log, and what else is known about it.

    `seqs` are the numbers the events were stored under (None: 1 to n); `entries` are the bytes they were stored as, by
    the number of the first event in each, empty if they are not at hand; `effects` what the outside world saw, empty if
    nothing was watched; `is_quiescent` says that nothing more will happen; `rows` are the tables as they were kept.
    """

    plan: Plan
    events: Sequence[Event]
    seqs: Sequence[int] | None = None
    effects: Sequence[Effect] = ()
    is_quiescent: bool = True
    rows: Rows | None = None
    entries: Sequence[tuple[int, bytes]] = ()


class Violation(Struct, frozen=True):
    """A promise that was broken, and the one or two events that show it."""

    invariant: str
    message: str
    execution: str
    seq: int
    other: int | None = None

    def __str__(self) -> str:
        events = f"event {self.seq}" if self.other is None else f"events {self.seq} and {self.other}"
        return f"{self.invariant} {self.execution} {events}: {self.message}"

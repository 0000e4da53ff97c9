"""What an execution remembers about the attempts at one node, and about the items of a map."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct

from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import RateLimitWait, Wait

MAX_ITEMS = 100_000


class Phase(StrEnum):
    """What is happening to a node, or to an item of a map, between its attempts."""

    READY = "READY"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    BACKOFF = "BACKOFF"
    ENDED = "ENDED"


# Looked up on every signal; an enum's members are slow to reach through their class.
READY, RUNNING, WAITING, BACKOFF, ENDED = Phase.READY, Phase.RUNNING, Phase.WAITING, Phase.BACKOFF, Phase.ENDED


class NodeError(Struct, frozen=True, gc=False):
    """What expressions see as `nodes.<id>.error`.

    `detail` and `body` are kept where an error edge leads on, or nodes close the execution: no other expression can
    look at them, and a map may have thousands of failures.
    """

    type: ErrorType
    message: str
    attempts: int
    index: int | None = None
    status: int | None = None
    detail: str | None = None
    body: str | None = None
    child: ExecutionState | None = None
    faults: tuple[str, ...] = ()
    """What was wrong with the expressions that asked which failure it is."""


class Work(Struct, eq=False, gc=False):
    """The attempts at one node or item. Numbers go on for life; `used` and `lost` restart with a reopening.

    Of a node that is repeated, `round` is the one it is in, counted from 0, and `last` what the round before gave.
    """

    node: int
    item: int | None = None
    phase: Phase = Phase.READY
    turn: int = 1
    attempt: int = 0
    used: int = 0
    lost: int = 0
    again: bool = False
    held_since: int | None = None
    due: int | None = None
    wait: Wait | None = None
    child: ExecutionState | None = None
    # Whether that child has undone what it did, so that another takes its place.
    is_child_undone: bool = False
    # After how many reopenings of its child the end came that is known: only a later one counts.
    opening: int | None = None
    gave_up: bool = False
    inputs: Any = None
    overrides: dict[str, Any] | None = None
    reserved: RateLimitWait | None = None
    """The slots of rate limits that its attempt holds, to be used when it goes on after the wait, and once."""
    as_of: int = 0
    """How many changes to maps that were done it sees: those before its first start."""
    first_at: int = 0
    """When it first started since it was last begun anew, or in this round: what `now` is."""
    used_before: int = 0
    """How many attempts the rounds before have used: each has a budget of its own."""
    round: int = 0
    last: Any = None

    @property
    def tries(self) -> int:
        """How many attempts of the budget are used."""
        return self.used - self.used_before

    @property
    def next_attempt(self) -> int:
        """An attempt that was handed back or held goes on under its number."""
        return self.attempt if self.again else self.attempt + 1

    @property
    def has_reopenable_child(self) -> bool:
        return self.child is not None and self.child.is_reopenable and not self.is_child_undone

    def renew(self, overrides: dict[str, Any] | None = None) -> None:
        """Begin again after a reopening: a fresh budget and fresh inputs."""
        self.used = self.lost = self.used_before = 0
        self.again = self.gave_up = False
        self.due = self.wait = self.child = self.opening = self.inputs = self.held_since = self.reserved = None
        self.overrides = overrides

    def revive(self) -> None:
        """Begin again after the execution ended around it; inputs a person chose stand until they were tried."""
        self.renew(None if self.tries else self.overrides)

    def end_round(self, output: Any) -> None:
        """The next round has a fresh budget and fresh inputs; what has begun keeps its place."""
        self.used_before, self.lost, self.gave_up = self.used, 0, False
        self.wait = self.inputs = self.held_since = self.reserved = self.opening = self.overrides = None
        self.round, self.last = self.round + 1, output


_UNSTARTED, _ACTIVE, _SUCCEEDED, _FAILED = range(4)


class Change(NamedTuple):
    """What became of an item after its map had succeeded: it is under way again, has failed again, or has an output."""

    number: int
    item: int
    error: NodeError | None = None
    has_output: bool = False


class Map:
    """The items of one map node: which are done, which are under way, and which comes next."""

    __slots__ = ("_changes", "_cursor", "_errors_before", "_status", "as_of", "count", "errors", "failures", "first_at",
                 "given_up", "goes_on", "in_flight", "is_handed_out", "is_mending", "limit", "outputs",
                 "stopped", "width", "works")  # fmt: skip

    def __init__(self, count: int, width: int, limit: int, *, goes_on: bool = False, as_of: int = 0,
                 first_at: int = 0) -> None:  # fmt: skip
        self.count = count
        self.width = width
        self.limit = limit
        # Whether every item is tried, also after failures.
        self.goes_on = goes_on
        # How many changes to other maps its list was made with.
        self.as_of = as_of
        # When the node started that made its list.
        self.first_at = first_at
        self.works: dict[int, Work] = {}
        self.outputs: list[Any] = [None] * count
        self.errors: dict[int, NodeError] = {}
        self.in_flight = 0
        self.failures = 0
        # Whether it has failed too often in this opening, and whether no new item starts therefore.
        self.given_up = self.stopped = False
        # Whether it has succeeded, and a failure that it tolerated is being mended.
        self.is_mending = False
        # Whether others may have the list of outputs, so that it is not to be changed.
        self.is_handed_out = False
        self._changes: list[Change] = []
        self._errors_before: dict[int, NodeError] = {}
        self._status = bytearray(count)
        self._cursor = 0

    @property
    def has_failed(self) -> bool:
        return len(self.errors) > self.limit

    @property
    def is_over(self) -> bool:
        """Nothing under way, and nothing left that may start."""
        return not self.in_flight and (self.stopped or self._seek() is None)

    def feed(self, node: int) -> Iterator[Work]:
        """The items that may start now, at most `width` under way at once."""
        while not self.stopped and self.in_flight < self.width and (item := self._seek()) is not None:
            self._status[item] = _ACTIVE
            self.in_flight += 1
            yield self.works.setdefault(item, Work(node, item))

    def _seek(self) -> int | None:
        found = self._status.find(_UNSTARTED, self._cursor)
        self._cursor = self.count if found < 0 else found
        return None if found < 0 else found

    def succeed(self, item: int, output: Any) -> None:
        self.works.pop(item)
        if self.is_handed_out:
            self._renew_outputs()
        self.outputs[item] = output
        self._end(item, _SUCCEEDED)

    def _renew_outputs(self) -> None:
        """Leave the list to those who have it."""
        self.outputs = self.outputs.copy()
        self.is_handed_out = False

    def fail(self, item: int, error: RunError, attempts: int) -> None:
        self.errors[item] = NodeError(error.type, error.message, attempts, item, error.status)
        self.failures += 1
        self._end(item, _FAILED)

    def _end(self, item: int, status: int) -> None:
        self._status[item] = status
        self.in_flight -= 1

    def drop(self, item: int) -> None:
        """An item that was about to start does not."""
        self._end(item, _UNSTARTED)

    def fix(self, item: int, output: Any) -> None:
        del self.errors[item]
        self.works.pop(item)
        if self.is_handed_out:
            self._renew_outputs()
        self.outputs[item] = output
        self._status[item] = _SUCCEEDED
        self.reopen()

    def requeue(self, item: int) -> Work:
        del self.errors[item]
        self._status[item] = _UNSTARTED
        self.reopen()
        return self.works[item]

    def reattach(self, item: int) -> Work:
        """A failed item waits for its reopened child again."""
        del self.errors[item]
        self._status[item] = _ACTIVE
        self.in_flight += 1
        self.reopen()
        return self.works[item]

    def give_up(self) -> None:
        """More items have failed than are tolerated."""
        self.given_up = True
        self.stopped = not self.goes_on

    def reopen(self) -> None:
        """Items that never ran have their turn again; failures are counted anew."""
        self.given_up = self.stopped = False
        self.failures = 0
        self._cursor = 0

    def interrupt(self) -> None:
        """The execution ended around the map: what was under way counts as never started."""
        for item, work in self.works.items():
            if self._status[item] == _ACTIVE:
                self._status[item] = _UNSTARTED
                work.revive()
        self.in_flight = 0
        self.reopen()

    # After its success

    def note(self, change: Change) -> None:
        """Remember what changes, or has just changed; the first change is that a failure is taken up."""
        if not self._changes:
            self._errors_before = dict(self.errors)
        self._changes.append(change)

    def _is_as_it_was(self, number: int) -> bool:
        return not self._changes or self._changes[-1].number <= number

    def hand_out(self, number: int | None) -> list[Any]:
        """The outputs after so many changes (None: after all), in a list that stays as it is."""
        if number is None or self._is_as_it_was(number):
            self.is_handed_out = True
            return self.outputs
        outputs = self.outputs.copy()
        for change in self._changes:
            if change.number > number and change.has_output:
                outputs[change.item] = None
        return outputs

    def errors_at(self, number: int) -> dict[int, NodeError]:
        """The failures after so many changes, in the order they came."""
        if self._is_as_it_was(number):
            return self.errors
        errors = dict(self._errors_before)
        for change in self._changes:
            if change.number <= number:
                errors.pop(change.item, None)
                if change.error is not None:
                    errors[change.item] = change.error
        return errors

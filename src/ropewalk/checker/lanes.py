"""What can happen to a node and to its attempts, and the lanes it is written down in."""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.events import ItemFailed, NodeFailed

Key = tuple[int, int | None]


class Kind(Enum):
    """What happened to an attempt."""

    START = auto()
    WAIT = auto()
    RETURN = auto()
    RELEASE = auto()
    RETRY = auto()
    ROUND = auto()
    SUCCEED = auto()
    GIVE_UP = auto()
    QUARANTINE = auto()
    RENEW = auto()
    RESUME = auto()
    FIX = auto()


HALTS: Final = (Kind.WAIT, Kind.RETURN, Kind.RELEASE)
UNDER_WAY: Final = (Kind.START, *HALTS)
ENDS: Final = (Kind.RETRY, Kind.ROUND, Kind.SUCCEED, Kind.GIVE_UP)


class Step(Enum):
    """What happened to a node, or, where the node is -1, to all of them."""

    CARRY = auto()
    START = auto()
    SKIP = auto()
    SUCCEED = auto()
    FAIL = auto()
    WITHDRAW = auto()
    RESUME = auto()
    FIX = auto()
    DECIDE = auto()
    END = auto()
    REOPEN = auto()


class Mark(Struct, frozen=True, gc=False):
    """One step of one attempt. `opening` counts reopenings; `number` is the attempt named, or meant."""

    seq: int
    kind: Kind
    node: int
    item: int | None
    number: int
    opening: int
    event: Any


class Fact(Struct, frozen=True, gc=False):
    """One step of one node."""

    seq: int
    step: Step
    node: int
    event: Any


class Lane:
    """Everything that happened to one node's or item's attempts, in order."""

    __slots__ = ("item", "marks", "node", "number")

    def __init__(self, node: int, item: int | None) -> None:
        self.node = node
        self.item = item
        self.number = 0
        self.marks: list[Mark] = []

    @property
    def failure(self) -> NodeFailed | ItemFailed | None:
        """The failure for good that stands now, if one does."""
        for mark in reversed(self.marks):
            if mark.kind is Kind.GIVE_UP:
                failure: NodeFailed | ItemFailed = mark.event
                return failure
            if mark.kind is not Kind.QUARANTINE:
                return None
        return None

    def pairs(self) -> Iterator[tuple[Mark | None, Mark]]:
        """Each mark with the one before it."""
        before = None
        for mark in self.marks:
            yield before, mark
            before = mark


def handed_on(event: Any) -> Any:
    """What an attempt gave that ended so: the value, or where it lies."""
    return event.output if event.blob is None else event.blob

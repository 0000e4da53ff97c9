"""What executions held, and from when to when: in columns, so that those of a million executions fit into memory."""

from array import array
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct

from ropewalk.checker.history import History

FOR_EVER: Final = 2**62


class Holding(Struct, frozen=True):
    """Something an execution held: since its event `seq`, and until not included."""

    what: str
    execution: str
    since: int
    until: int
    seq: int


class Holdings:
    """Takes holdings in any order, and goes through them in the order of time."""

    def __init__(self) -> None:
        self._what: list[str] = []
        self._executions: list[str] = []
        self._since = array("q")
        self._until = array("q")
        self._seqs = array("q")

    def add(self, held: Holding) -> None:
        self._what.append(held.what)
        self._executions.append(held.execution)
        self._since.append(held.since)
        self._until.append(held.until)
        self._seqs.append(held.seq)

    def __getitem__(self, place: int) -> Holding:
        since, until, seq = self._since[place], self._until[place], self._seqs[place]
        return Holding(self._what[place], self._executions[place], since, until, seq)

    def swept(self) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """The place of each holding when it begins, with end and place of those of the same thing that last then.

        What ends at the moment another begins has ended before.
        """
        last: str | None = None
        lasting: list[tuple[int, int]] = []
        for place in self._order():
            if self._what[place] != last:
                last = self._what[place]
                lasting.clear()
            while lasting and lasting[0][0] <= self._since[place]:
                heappop(lasting)
            yield place, lasting
            heappush(lasting, (self._until[place], place))

    def most(self) -> dict[str, int]:
        """How many held each thing at most at one moment."""
        found: dict[str, int] = {}
        for place, lasting in self.swept():
            what = self._what[place]
            found[what] = max(found.get(what, 0), len(lasting) + 1)
        return found

    def _order(self) -> list[int]:
        """By what is held, then since when: one column at a time, so that no keys are built for all of them."""
        order = sorted(range(len(self._what)), key=self._executions.__getitem__)
        order.sort(key=self._since.__getitem__)
        order.sort(key=self._what.__getitem__)
        return order


def held_by(
    execution: str, history: History, what: str, taken: tuple[type, ...], returned: tuple[type, ...]
) -> Iterator[Holding]:
    """What an execution took with these events and gave back with those; nothing that it held for no time at all."""
    since: tuple[int, int] | None = None
    for seq, event in enumerate(history.events, 1):
        if since is None and isinstance(event, taken):
            since = (event.at, seq)
        elif since is not None and isinstance(event, returned):
            if event.at > since[0]:
                yield Holding(what, execution, since[0], event.at, since[1])
            since = None
    if since is not None:
        yield Holding(what, execution, since[0], FOR_EVER, since[1])

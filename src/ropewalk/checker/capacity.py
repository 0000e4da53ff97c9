"""Rules about room: slots, I-27; `maxParallel`, map concurrency and concurrency keys, I-28."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from ropewalk.checker.history import History, Violation
from ropewalk.checker.holdings import Holdings, held_by
from ropewalk.checker.lanes import Key, Kind, Mark
from ropewalk.checker.trace import STARTS, TERMINAL, Trace
from ropewalk.core.events import ExecutionAccepted, ExecutionStarted, SlotReleased, SlotTaken

SLOT_TAKEN = (ExecutionStarted, SlotTaken)
SLOT_RETURNED = (SlotReleased, *TERMINAL)
_BETWEEN: Final = "\0"
"""Between a workspace and its key where both are one text; nothing that is stored has it."""


def starts_need_a_slot(t: Trace) -> Iterator[Violation]:
    """I-27, in one log: nodes start only while the execution has a slot; it takes one when it has none, and returns
    the one it has, at the latest with its end.
    """
    held: int | None = None
    for seq, event in t.whole:
        if isinstance(event, SLOT_TAKEN):
            if held is not None:
                yield t.violation("I-27", "a second slot was taken", seq, held)
            held = seq
        elif isinstance(event, SlotReleased):
            if held is None:
                yield t.violation("I-27", "a slot was returned that was not held", seq)
            held = None
        elif isinstance(event, TERMINAL):
            held = None
        elif isinstance(event, STARTS) and held is None:
            yield t.violation("I-27", "a node started without a slot", seq)


def limits_inside_are_kept(t: Trace) -> Iterator[Violation]:
    """I-28, in one log: no more than `maxParallel` nodes and items are under way at once (started and not ended for
    good, waits and backoff included), and no more than `concurrency` items of a map. Not counted is one that waits for
    its reopened child, and what follows from that. Of an execution accepted under earlier rules an attempt counted for
    `maxParallel` only while it executed.
    """
    if t.plan.max_parallel is None and not t.expanded:
        return
    counts_waits = t.accepted is not None and t.accepted.rules > 0
    places = _Places(counts_waits)
    for mark in t.marks:
        if mark.kind is not Kind.START:
            places.leave(mark)
        elif places.enter(mark, t.plan.ordinary):
            yield from _too_parallel(t, mark, places.all)
            if mark.item is not None:
                yield from _too_many_items(t, mark, places.items[mark.node])


class _Places:
    """The attempts that are under way, in the whole execution and in each map, since which event."""

    def __init__(self, counts_waits: bool) -> None:
        self.all: dict[Key, int] = {}
        self.items: dict[int, dict[int, int]] = {}
        self._resumed: dict[Key, None] = {}
        self._counts_waits = counts_waits
        self._opening = 0

    def enter(self, mark: Mark, ordinary: int) -> bool:
        """Whether it takes a place, or has one; what was cut short has none when the execution is closed."""
        self._begin_opening(mark)
        if mark.node >= ordinary:
            self.all = {key: seq for key, seq in self.all.items() if key[0] >= ordinary}
        if (mark.node, mark.item) in self._resumed:
            return False
        self.all[mark.node, mark.item] = mark.seq
        if mark.item is not None:
            self.items.setdefault(mark.node, {})[mark.item] = mark.seq
        return True

    def leave(self, mark: Mark) -> None:
        self._begin_opening(mark)
        key = (mark.node, mark.item)
        is_over = mark.kind in (Kind.SUCCEED, Kind.GIVE_UP, Kind.FIX, Kind.RESUME, Kind.RENEW)
        if is_over or (not self._counts_waits and mark.kind is not Kind.QUARANTINE):
            self.all.pop(key, None)
        if is_over:
            self._resumed.pop(key, None)
            if mark.item is not None:
                self.items.get(mark.node, {}).pop(mark.item, None)
        if mark.kind is Kind.RESUME:
            self._resumed[key] = None

    def _begin_opening(self, mark: Mark) -> None:
        if mark.opening != self._opening:
            self._opening = mark.opening
            self.all.clear()
            self.items.clear()
            self._resumed.clear()


def _too_parallel(t: Trace, mark: Mark, running: dict[Key, int]) -> Iterator[Violation]:
    limit = t.plan.max_parallel
    if limit is not None and len(running) > limit:
        message = f"{t.name(mark)} started as number {len(running)}, maxParallel is {limit}"
        yield t.violation("I-28", message, mark.seq, next(iter(running.values())))


def _too_many_items(t: Trace, mark: Mark, items: dict[int, int]) -> Iterator[Violation]:
    limit = t.plan.concurrency[mark.node]
    if len(items) > limit:
        message = f"{t.name(mark)} started as number {len(items)}, its concurrency is {limit}"
        yield t.violation("I-28", message, mark.seq, next(iter(items.values())))


# Across executions

Limit = int | Sequence[tuple[int, int | None]]
"""How many slots a workspace has; if that changed, since when how many, None being as many as it likes, as before."""

Limits = Mapping[str, Limit]
"""The slots of the workspaces that have a limit."""


def limits_of_workspaces_are_kept(slots: Holdings, limits: Limits) -> Iterator[Violation]:
    """I-27, across logs: no execution takes a slot while those of its workspace hold as many as the limit allows.

    A slot is taken by ExecutionStarted and SlotTaken, returned by SlotReleased and every end. A limit that is lowered
    takes no slot away; at the moment of a change the more generous one counts.
    """
    for place, lasting in slots.swept():
        taken = slots[place]
        limit = limit_at(limits[taken.what], taken.since)
        if limit is not None and len(lasting) + 1 > limit:
            holders = ", ".join(slots[other].execution for other in sorted(other for _, other in lasting))
            message = f"slot {len(lasting) + 1} of workspace {taken.what} was taken beside {holders}; {limit} may be"
            yield Violation("I-27", message, taken.execution, taken.seq)


def limit_at(limit: Limit, at: int) -> int | None:
    """How many slots there are at that moment; None for as many as one likes."""
    if isinstance(limit, int):
        return limit
    in_force: int | None = None
    for since, slots in limit:
        if since > at:
            break
        in_force = slots if since < at else _more_generous(in_force, slots)
    return in_force


def _more_generous(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


def keys_are_held_by_one(keys: Holdings, families: Mapping[str, "Family"]) -> Iterator[Violation]:
    """I-28, across logs: a concurrency key of a workspace is held by one execution at a time, from its start to its
    end, parked or paused; an execution and its descendants share it, one descendant at a time. Of those accepted under
    earlier rules several could at once.
    """
    for place, lasting in keys.swept():
        taken = keys[place]
        beside = [keys[known] for _, known in lasting]
        holders = dict.fromkeys(each.execution for each in beside)
        for other in beside:
            if not _may_share(families, taken.execution, other.execution, holders):
                key = taken.what.partition(_BETWEEN)[2]
                message = f"key {key!r} was taken while {other.execution} held it since its event {other.seq}"
                yield Violation("I-28", message, taken.execution, taken.seq)


class Family(Struct, frozen=True):
    """Whose descendant an execution is, and by which rules it takes its key."""

    ancestors: tuple[str, ...]
    rules: int


def _may_share(families: Mapping[str, Family], taker: str, other: str, holders: Mapping[str, None]) -> bool:
    """Whether the key may be taken beside this other holder.

    An ancestor and its descendant share the key whichever of them took it first: clocks differ, and a retried parent
    starts after the child that it reopened.
    """
    mine, beside = families[taker], families[other].ancestors
    if taker == other or other in mine.ancestors or taker in beside:
        return True
    return not mine.rules and any(each in beside and each in holders for each in mine.ancestors)


class Sharing:
    """What executions take from each other, gathered one execution at a time and held to the limits at the end."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._slots = Holdings()
        self._keys = Holdings()
        self._families: dict[str, Family] = {}

    def add(self, history: History) -> None:
        """One more execution; no event of it is kept."""
        accepted = history.events[0]
        assert isinstance(accepted, ExecutionAccepted), "a history begins with what accepted it"
        name, workspace = accepted.execution, accepted.workspace
        if workspace in self._limits:
            for held in held_by(name, history, workspace, SLOT_TAKEN, SLOT_RETURNED):
                self._slots.add(held)
        if accepted.concurrency_key is not None:
            what = f"{workspace}{_BETWEEN}{accepted.concurrency_key}"
            for held in held_by(name, history, what, (ExecutionStarted,), TERMINAL):
                self._keys.add(held)
            parent = accepted.parent
            above = () if parent is None else (parent.execution, *parent.ancestors)
            self._families[name] = Family(above, accepted.rules)

    def violations(self) -> Iterator[Violation]:
        """Where more was taken than there is."""
        yield from limits_of_workspaces_are_kept(self._slots, self._limits)
        yield from keys_are_held_by_one(self._keys, self._families)

    def most_slots(self) -> dict[str, int]:
        """How many slots of each limited workspace were held at most at one moment."""
        return self._slots.most()

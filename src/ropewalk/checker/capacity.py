"""Rules about room: slots, I-27; `maxParallel`, map concurrency and concurrency keys, I-28."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ropewalk.checker.history import History, Violation
from ropewalk.checker.holdings import Holdings, held_by
from ropewalk.checker.trace import STARTS, TERMINAL, Kind, Mark, Trace
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
    """I-28, in one log: no more than `maxParallel` attempts execute at once (started, and not yet ended, waiting or
    handed back), and no more than `concurrency` items of a map are under way (started and not ended for good, waits
    and backoff included; not counted is one that waits for its reopened child).
    """
    if t.plan.max_parallel is None and not t.expanded:
        return
    running: dict[tuple[int, int | None], int] = {}
    items: dict[int, dict[int, int]] = {}
    opening = 0
    for mark in t.marks:
        if mark.opening != opening:
            opening = mark.opening
            running.clear()
            items.clear()
        if mark.kind is not Kind.START:
            _leave(mark, running, items)
            continue
        running[mark.node, mark.item] = mark.seq
        yield from _too_parallel(t, mark, running)
        if mark.item is not None:
            items.setdefault(mark.node, {})[mark.item] = mark.seq
            yield from _too_many_items(t, mark, items[mark.node])


def _leave(mark: Mark, running: dict[tuple[int, int | None], int], items: dict[int, dict[int, int]]) -> None:
    if mark.kind is not Kind.QUARANTINE:
        running.pop((mark.node, mark.item), None)
    if mark.item is not None and mark.kind in (Kind.SUCCEED, Kind.GIVE_UP, Kind.FIX, Kind.RESUME, Kind.RENEW):
        items.get(mark.node, {}).pop(mark.item, None)


def _too_parallel(t: Trace, mark: Mark, running: dict[tuple[int, int | None], int]) -> Iterator[Violation]:
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


def keys_are_held_by_one(keys: Holdings, families: Mapping[str, tuple[str, ...]]) -> Iterator[Violation]:
    """I-28, across logs: a concurrency key of a workspace is held by one execution at a time, from its start to its
    end, parked or paused; children may use the keys their ancestors hold, also several at once.
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


def _may_share(families: Mapping[str, tuple[str, ...]], one: str, other: str, holders: Mapping[str, None]) -> bool:
    """Whether one descends from the other, or both from one that holds the key still."""
    above, beside = families.get(one, ()), families.get(other, ())
    if one == other or one in beside or other in above:
        return True
    return any(each in beside and each in holders for each in above)


class Sharing:
    """What executions take from each other, gathered one execution at a time and held to the limits at the end."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._slots = Holdings()
        self._keys = Holdings()
        self._families: dict[str, tuple[str, ...]] = {}

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
            if accepted.parent is not None:
                self._families[name] = (accepted.parent.execution, *accepted.parent.ancestors)

    def violations(self) -> Iterator[Violation]:
        """Where more was taken than there is."""
        yield from limits_of_workspaces_are_kept(self._slots, self._limits)
        yield from keys_are_held_by_one(self._keys, self._families)

    def most_slots(self) -> dict[str, int]:
        """How many slots of each limited workspace were held at most at one moment."""
        return self._slots.most()

"""Rules about room: slots, I-27; `maxParallel`, map concurrency and concurrency keys, I-28."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ropewalk.checker.history import History, Violation
from ropewalk.checker.trace import STARTS, TERMINAL, Kind, Mark, Trace
from ropewalk.core.events import Event, ExecutionAccepted, ExecutionStarted, SlotReleased, SlotTaken

SLOT_TAKEN = (ExecutionStarted, SlotTaken)


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


class _Moment(Struct, frozen=True, order=True):
    """When an execution takes or gives back something; at the same moment, giving back comes first."""

    at: int
    is_taken: bool
    execution: str
    seq: int


def limits_of_workspaces_are_kept(histories: Mapping[str, History], limits: Mapping[str, int]) -> Iterator[Violation]:
    """I-27, across logs: at no moment do the executions of a workspace hold more slots than its limit.

    A slot is taken by ExecutionStarted and SlotTaken, returned by SlotReleased and every end.
    """
    moments: dict[str, list[_Moment]] = {}
    for execution, history in histories.items():
        workspace = _accepted(history).workspace
        if workspace in limits:
            held = _held(execution, history, SLOT_TAKEN, (SlotReleased, *TERMINAL))
            moments.setdefault(workspace, []).extend(held)
    for workspace, known in moments.items():
        yield from _sweep_slots(sorted(known), limits[workspace], workspace)


def _sweep_slots(moments: list[_Moment], limit: int, workspace: str) -> Iterator[Violation]:
    holders: dict[str, int] = {}
    for moment in moments:
        if not moment.is_taken:
            del holders[moment.execution]
            continue
        holders[moment.execution] = moment.seq
        if len(holders) > limit:
            message = f"{len(holders)} slots of workspace {workspace} were held by {', '.join(holders)}; {limit} may be"
            yield Violation("I-27", message, moment.execution, moment.seq)


def keys_are_held_by_one(histories: Mapping[str, History]) -> Iterator[Violation]:
    """I-28, across logs: a concurrency key of a workspace is held by one execution at a time, from its start to its
    end, parked or paused; a child may use the keys of its ancestors.
    """
    moments: dict[tuple[str, str], list[_Moment]] = {}
    for execution, history in histories.items():
        accepted = _accepted(history)
        if accepted.concurrency_key is not None:
            held = _held(execution, history, (ExecutionStarted,), TERMINAL)
            moments.setdefault((accepted.workspace, accepted.concurrency_key), []).extend(held)
    for (_, key), known in moments.items():
        yield from _sweep_key(histories, sorted(known), key)


def _sweep_key(histories: Mapping[str, History], moments: list[_Moment], key: str) -> Iterator[Violation]:
    holders: dict[str, int] = {}
    for moment in moments:
        if not moment.is_taken:
            del holders[moment.execution]
            continue
        family = _ancestors(histories, moment.execution)
        for other, seq in holders.items():
            if other not in family and moment.execution not in _ancestors(histories, other):
                message = f"key {key!r} was taken while {other} held it since its event {seq}"
                yield Violation("I-28", message, moment.execution, moment.seq)
        holders[moment.execution] = moment.seq


def _held(execution: str, history: History, taken: tuple[type, ...], returned: tuple[type, ...]) -> Iterator[_Moment]:
    """When the execution took something and gave it back; what it held for no time at all is passed over."""
    since: _Moment | None = None
    for seq, event in enumerate(history.events, 1):
        if since is None and isinstance(event, taken):
            since = _Moment(event.at, True, execution, seq)
        elif since is not None and isinstance(event, returned):
            if event.at > since.at:
                yield from (since, _Moment(event.at, False, execution, seq))
            since = None
    if since is not None:
        yield since


def _ancestors(histories: Mapping[str, History], execution: str) -> tuple[str, ...]:
    """The execution itself and those it was started for."""
    parent = _accepted(histories[execution]).parent
    return (execution,) if parent is None else (execution, parent.execution, *parent.ancestors)


def _accepted(history: History) -> ExecutionAccepted:
    first: Event = history.events[0]
    assert isinstance(first, ExecutionAccepted), "histories are keyed by what accepted them"
    return first

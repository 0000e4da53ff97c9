"""Rules about what the outside world saw: I-32, I-33."""

from collections.abc import Iterator

from ropewalk.checker.attempt_rules import budgets, is_closed_again
from ropewalk.checker.history import Effect, Violation
from ropewalk.checker.lanes import Kind, Lane, Mark
from ropewalk.checker.trace import Trace
from ropewalk.core.events import ItemSucceeded, NodeSucceeded

Seen = dict[tuple[str, int | None], list[Effect]]


def effects_fit_the_attempts(t: Trace) -> Iterator[Violation]:
    """I-32: what succeeded was seen to do something, nothing was seen of what did not start, and all that one budget
    of attempts did came with one key.

    Fixed and carried-over results did nothing, nor need one that may be used again; a run that waited may have. Without
    a ledger there is nothing to say.
    """
    if not t.history.effects:
        return
    seen = _seen(t)
    for lane in t.lanes.values():
        effects = seen.pop((t.plan.ids[lane.node], lane.item), [])
        yield from _missing(t, lane, effects)
        yield from _unexplained(t, lane, effects)
        yield from _keys(t, lane, effects)
    for (node, _), effects in seen.items():
        yield t.violation("I-32", f"{node} was seen at work {len(effects)} times and never started", t.seqs[-1])


def _seen(t: Trace) -> Seen:
    seen: Seen = {}
    for effect in t.history.effects:
        if effect.execution == t.execution:
            seen.setdefault((effect.node, effect.item), []).append(effect)
    return seen


def _missing(t: Trace, lane: Lane, effects: list[Effect]) -> Iterator[Violation]:
    if t.plan.cache_ttl[lane.node] is not None:
        return
    numbers = dict.fromkeys(effect.attempt for effect in effects)
    for before, mark in lane.pairs():
        is_success = mark.kind is Kind.SUCCEED and isinstance(mark.event, NodeSucceeded | ItemSucceeded)
        if is_success and mark.number not in numbers and not _has_waited(before):
            yield t.violation("I-32", f"{t.name(lane)} succeeded and attempt {mark.number} was never seen", mark.seq)


def _has_waited(before: Mark | None) -> bool:
    return before is not None and before.kind is Kind.WAIT


def _unexplained(t: Trace, lane: Lane, effects: list[Effect]) -> Iterator[Violation]:
    starts = [mark for mark in lane.marks if mark.kind is Kind.START]
    if len(effects) > len(starts):
        last = lane.marks[-1].seq
        yield t.violation("I-32", f"{t.name(lane)} worked {len(effects)} times and started {len(starts)} times", last)
    numbers = dict.fromkeys(mark.number for mark in starts)
    for effect in effects:
        if effect.attempt not in numbers:
            message = f"attempt {effect.attempt} of {t.name(lane)} was seen at work and never started"
            yield t.violation("I-32", message, lane.marks[-1].seq)


def _keys(t: Trace, lane: Lane, effects: list[Effect]) -> Iterator[Violation]:
    if len(effects) < 2:
        return
    for part in budgets(lane):
        numbers = dict.fromkeys(mark.number for mark in part if mark.kind is Kind.START)
        keys = dict.fromkeys(effect.key for effect in effects if effect.key and effect.attempt in numbers)
        if len(keys) > 1:
            yield t.violation("I-32", f"{t.name(lane)} worked under {len(keys)} keys", part[-1].seq, part[0].seq)


def effects_are_repeated_for_a_reason(t: Trace) -> Iterator[Violation]:
    """I-33: a second effect of a node or item follows an attempt that ended, or was handed back, without success.

    So one attempt is seen once for each of its starts, and nothing is seen of attempts after the one that succeeded.
    """
    if not t.history.effects:
        return
    seen = _seen(t)
    for lane in t.lanes.values():
        effects = seen.get((t.plan.ids[lane.node], lane.item), [])
        if len(effects) > 1:
            yield from _repeated(t, lane, effects)


def _repeated(t: Trace, lane: Lane, effects: list[Effect]) -> Iterator[Violation]:
    starts: dict[int, int] = {}
    success: Mark | None = None
    for mark in lane.marks:
        if mark.kind is Kind.START:
            starts[mark.number] = starts.get(mark.number, 0) + 1
        elif mark.kind is Kind.SUCCEED:
            success = mark
        elif is_closed_again(mark):
            success = None
    for number, count in starts.items():
        times = sum(effect.attempt == number for effect in effects)
        if times > count:
            message = f"attempt {number} of {t.name(lane)} worked {times} times and started {count} times"
            yield t.violation("I-33", message, lane.marks[-1].seq)
        if success is not None and number > success.number and times:
            yield t.violation("I-33", f"{t.name(lane)} worked again after its success", lane.marks[-1].seq, success.seq)

"""Honest histories, told by the machine, and the tools to forge them."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from ropewalk.checker import Effect, History
from ropewalk.core import log
from ropewalk.core.events import RULES, Event, ExecutionAccepted
from ropewalk.core.execution import Execution
from ropewalk.core.plan import Plan
from ropewalk.core.signals import Signal
from tests.core.executions import NOON


def story(plan: Plan, *told: Signal | int, **accepted: Any) -> History:
    """What the machine records when it is told these; a number lets so much time pass first."""
    execution = Execution(plan)
    told_so_far: list[Event] = [acceptance(plan, **accepted)]
    execution.apply(told_so_far)
    now = NOON
    for each in told:
        if isinstance(each, int):
            now += each
        else:
            told_so_far += execution.handle(each, now)
    return History(plan, tuple(told_so_far))


def acceptance(plan: Plan, **fields: Any) -> ExecutionAccepted:
    known = {"execution": "e1", "workspace": "default", "workflow": "test", "version": 1, "rules": RULES}
    return ExecutionAccepted(NOON, **{**known, "hash": plan.definition.content_hash, **fields})


def place(history: History, kind: type[Event], nth: int = 0) -> int:
    """Where in the log the nth event of a kind is."""
    return [index for index, event in enumerate(history.events) if isinstance(event, kind)][nth]


def change(history: History, kind: type[Event], nth: int = 0, **fields: Any) -> History:
    at = place(history, kind, nth)
    return with_events(history, replacing(history.events, at, replace(history.events[at], **fields)))


def exchange(history: History, kind: type[Event], *events: Event) -> History:
    """Other events in the place of the first of a kind."""
    return with_events(history, replacing(history.events, place(history, kind), *events))


def drop(history: History, kind: type[Event], nth: int = 0) -> History:
    return with_events(history, replacing(history.events, place(history, kind, nth)))


def repeat(history: History, kind: type[Event], nth: int = 0) -> History:
    event = history.events[place(history, kind, nth)]
    return insert(history, kind, event, nth=nth)


def insert(history: History, before: type[Event], *events: Event, nth: int = 0) -> History:
    at = place(history, before, nth)
    return with_events(history, (*history.events[:at], *events, *history.events[at:]))


def move(history: History, kind: type[Event], before: type[Event], *, nth: int = 0, to: int = 0) -> History:
    """The nth event of a kind comes before the `to`th of another instead."""
    event = history.events[place(history, kind, nth)]
    goal = history.events[place(history, before, to)]
    rest = [each for each in history.events if each is not event]
    at = next(index for index, each in enumerate(rest) if each is goal)
    return with_events(history, (*rest[:at], event, *rest[at:]))


def append(history: History, *events: Event) -> History:
    return with_events(history, (*history.events, *events))


def under(history: History, plan: Plan) -> History:
    """The same log, told of another definition."""
    first = replace(history.events[0], hash=plan.definition.content_hash)
    return replace(history, plan=plan, events=(first, *history.events[1:]))


def seen(history: History, *effects: tuple[str, int, str]) -> History:
    """The history with a ledger of effects, each a node, an attempt and a key."""
    return replace(history, effects=tuple(Effect("e1", node, None, attempt, key) for node, attempt, key in effects))


def with_events(history: History, events: Iterable[Event]) -> History:
    return replace(history, events=tuple(events))


def replacing(events: Iterable[Event], at: int, *others: Event) -> tuple[Event, ...]:
    known = tuple(events)
    return (*known[:at], *others, *known[at + 1 :])


def sealed(history: History) -> History:
    """The same with the entries it was committed as, of two events each."""
    entries, seal = [], 0
    for start in range(0, len(history.events), 2):
        entry, seal = log.sealed(start + 1, history.events[start : start + 2], seal)
        entries.append((start + 1, entry))
    return replace(history, entries=entries)


def meddled(history: History, was: bytes, is_now: bytes) -> History:
    """The history with entries that were changed by hand."""
    return replace(history, entries=[(seq, entry.replace(was, is_now)) for seq, entry in history.entries])

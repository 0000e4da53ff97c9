"""Without the version it follows, an execution can be folded as far as its log tells, and ended."""

from itertools import pairwise

import pytest

from ropewalk.checker import History, check
from ropewalk.core.duration import SECOND
from ropewalk.core.events import Event
from ropewalk.core.execution import Execution
from ropewalk.core.execution.work import Phase
from ropewalk.core.log import acceptance
from ropewalk.core.plan import Plan
from ropewalk.core.signals import Cancel
from ropewalk.core.skeleton import last_words, skeleton
from ropewalk.core.state import ExecutionState
from tests.simulator.world import EPOCH, World

WORLDS = 60
BATCH = 20
Open = list[tuple[str, int | None, int, Phase, object]]


def moments(seed: int) -> list[tuple[Plan, list[Event]]]:
    """What became of the executions of one simulated world, as it was after each of their appends."""
    world = World(seed)
    world.run(until=EPOCH + 30 * SECOND)
    found = []
    for row in world.store.rows.values():
        ends = [here + 1 for here, (event, then) in enumerate(pairwise(row.log)) if event.at < then.at]
        found += [(row.plan, row.log[:end]) for end in (*ends, len(row.log))]
    return found


def folded(plan: Plan, events: list[Event]) -> Execution:
    x = Execution(plan)
    x.apply(events)
    return x


def bare(events: list[Event]) -> Execution:
    return folded(skeleton(acceptance(events), events), events)


def under_way(x: Execution) -> Open:
    """What runs, waits or is to be tried again."""
    names = x.plan.ids
    works = [work for work in x.active_works() if work.phase not in (Phase.READY, Phase.ENDED)]
    found: Open = [(names[work.node], work.item, work.attempt, work.phase, work.wait) for work in works]
    return sorted(found, key=lambda each: (each[0], each[1] or 0))


@pytest.mark.parametrize("first", range(0, WORLDS, BATCH))
def test_at_every_moment_of_every_history_the_log_alone_tells_what_is_under_way(first: int):
    different = [
        (seed, len(events))
        for seed in range(first, first + BATCH)
        for plan, events in moments(seed)
        if (x := folded(plan, events)).state is not bare(events).state or under_way(x) != under_way(bare(events))
    ]

    assert different == []


@pytest.mark.parametrize("first", range(0, WORLDS, BATCH))
def test_what_is_ended_without_its_plan_is_an_honest_history_with_it(first: int):
    wrong = [
        (seed, len(events), problem)
        for seed in range(first, first + BATCH)
        for plan, events in moments(seed)
        if not plan.has_closing  # nothing closes an execution whose version is lost
        for problem in problems_of_ending(plan, events)
    ]

    assert wrong == []


def problems_of_ending(plan: Plan, events: list[Event]) -> list[object]:
    x = bare(events)
    if x.is_ended:
        return []
    ends_as, told = x.ending or ExecutionState.CANCELLED, list(events)
    if x.ending is None:
        told += x.handle(Cancel("ada"), events[-1].at)
    for word in last_words(x):
        told += x.handle(word, events[-1].at)
    if folded(plan, told).state is not ends_as:
        return [f"it is {folded(plan, told).state}, not {ends_as}"]
    return list(check(History(plan, tuple(told))))

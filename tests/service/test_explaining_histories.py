"""At any moment of any execution there is a reason for everything that is not done."""

from itertools import pairwise

import pytest

from ropewalk.core.duration import SECOND
from ropewalk.core.events import Event, ExecutionAccepted
from ropewalk.core.plan import Plan
from ropewalk.service.facts import Around, Facts, told_by_log
from ropewalk.service.node_reasons import node_answer
from ropewalk.service.reading import Recorded
from ropewalk.service.reasons import Cause
from ropewalk.service.whole_reasons import holds_all, whole_reasons
from ropewalk.store.executions import Execution
from ropewalk.store.sqlite import SqliteStore
from ropewalk.store.workers import Worker
from tests.simulator.world import EPOCH, World
from tests.store.conftest import path, sqlite_store

__all__ = ["path", "sqlite_store"]

WORLDS = 200
BATCH = 50
ALIVE = Worker("w1", 1, "host", 7, "", "default", 0, 0, EPOCH, EPOCH)


def histories(seed: int) -> list[tuple[Plan, list[Event]]]:
    """What became of the executions of one simulated world, faults and people included."""
    world = World(seed)
    world.run(until=EPOCH + 30 * SECOND)
    return [(row.plan, row.log) for row in world.store.rows.values()]


def moments(events: list[Event]) -> list[list[Event]]:
    """The history as it was after each of its appends, whose events are all of one time."""
    ends = [here + 1 for here, (event, then) in enumerate(pairwise(events)) if event.at < then.at]
    return [events[:end] for end in (*ends, len(events))]


def known(store: SqliteStore, plan: Plan, events: list[Event], *, is_alive: bool) -> Facts:
    accepted = events[0]
    assert isinstance(accepted, ExecutionAccepted)
    story = Recorded(accepted.execution, plan, events)
    around = Around(store, "w", events[-1].at, [ALIVE], lambda worker: is_alive, None)
    x = story.folded()
    row = Execution(
        story.id, "w", "w", 1, str(x.state), "MANUAL", *(None,) * 5, accepted.at, x.started_at, *(None,) * 3
    )
    return told_by_log(around, row, story, x)


def unexplained(f: Facts) -> list[str]:
    """What has no reason, or one that makes no sense."""
    reasons = whole_reasons(f)
    answers = [node_answer(f, index, holds_all(reasons)) for index in range(len(f.story.plan))]
    said = [*(reason.json() for reason in reasons), *answers]
    wrong = [] if reasons else [f"{f.story.events[-1]}: no reason at all"]
    return wrong + [str(each) for each in said if each["code"] not in set(Cause) or not each["why"].strip()]


@pytest.mark.parametrize("is_alive", [True, False])
@pytest.mark.parametrize("first", range(0, WORLDS, BATCH))
def test_at_every_moment_of_every_history_there_is_a_reason(sqlite_store: SqliteStore, first: int, is_alive: bool):
    found = [
        (seed, problem)
        for seed in range(first, first + BATCH)
        for plan, events in histories(seed)
        for told in moments(events)
        for problem in unexplained(known(sqlite_store, plan, told, is_alive=is_alive))
    ]

    assert found == []

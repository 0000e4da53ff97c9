"""One world from its beginning to its judgement."""

import traceback
from collections import Counter

from msgspec import Struct

from ropewalk.core.duration import SECOND
from tests.simulator.quiet import answer_waits, is_everything_over, stuck
from tests.simulator.verdict import judge, memory_against_log
from tests.simulator.world import EPOCH, Livelock, World

SAFETY_ONLY_EVERY = 4
MOST_ROUNDS = 60


class Outcome(Struct):
    """What one seed gave: nothing wrong, or what is, and which rare things happened on the way."""

    seed: int
    violations: list[str]
    sometimes: Counter[str]
    events: int
    trace: list[str]


def simulate(seed: int, *, is_traced: bool = False) -> Outcome:
    """Run the world of a seed; the same seed gives the same outcome, always."""
    world = World(seed, is_traced=is_traced)
    try:
        violations = _run(world)
    except Exception:  # an error of the core or the checker is a finding, not an accident
        violations = [traceback.format_exc()]
    events = sum(len(row.log) for row in world.store.rows.values())
    return Outcome(seed, violations, world.sometimes, events, world.trace or [])


def _run(world: World) -> list[str]:
    """Faults first. Every fourth seed is judged amid them; the others go on without, until everything is over."""
    world.run(until=EPOCH + world.chance.choice((5, 30, 120)) * SECOND)
    if differing := memory_against_log(world):
        return differing
    if world.seed % SAFETY_ONLY_EVERY == 0:
        return judge(world, {}, is_quiescent=False)
    earlier = {row.id: list(row.log) for row in world.store.rows.values()}
    world.note("world", "the faults stop")
    world.faults.calm()
    return _quiesce(world) or judge(world, earlier, is_quiescent=True)


def _quiesce(world: World) -> list[str]:
    """Everything must come to its end once faults have stopped and all that is waited for answers."""
    for _ in range(MOST_ROUNDS):
        try:
            world.run()
        except Livelock as livelock:
            return [f"I-29 {livelock}"]
        if problems := stuck(world):
            return problems
        if is_everything_over(world):
            return []
        if not answer_waits(world):
            return [f"I-29 nothing will ever happen to {_open(world)}"]
    return [f"I-29 still not over after {MOST_ROUNDS} rounds of answers: {_open(world)}"]


def _open(world: World) -> list[str]:
    return [row.id for row in world.store.rows.values() if row.end is None]

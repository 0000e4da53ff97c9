"""One history from its beginning to its judgement."""

import asyncio
import os
import traceback
from collections import Counter
from tempfile import TemporaryDirectory

from msgspec import Struct

from tests.engines.judging import ask, judge
from tests.engines.simulation.loop import VirtualLoop
from tests.engines.simulation.process import Process
from tests.engines.simulation.world import LENGTHS, World, seeded

ROUND = 90
"""Longer than any pause before a further try (s)."""
MOST_ROUNDS = 300
MOST_QUIET_ROUNDS = 8
"""Within so many, even an attempt that hangs has run into its time limit."""
# Nobody pulls the plug: memory is as good as a disk, where the system has a place in it.
PLACE = "/dev/shm" if os.path.isdir("/dev/shm") else None


class Outcome(Struct):
    """What one seed gave: nothing wrong, or what is, and what happened on the way."""

    seed: int
    violations: list[str]
    sometimes: Counter[str]
    trace: list[str]


def simulate(seed: int) -> Outcome:
    """Tell the history of a seed; the same seed gives the same outcome, always."""
    with TemporaryDirectory(prefix="ropewalk-", dir=PLACE) as place, seeded(seed):
        loop = VirtualLoop()
        world = World(seed, os.path.join(place, "ropewalk.db"))
        loop.set_exception_handler(world.unexpected)
        try:
            violations = loop.run_until_complete(_history(world))
        except Exception:  # whatever is raised is a finding, not an accident
            violations = [traceback.format_exc()]
            _tidy_up(loop, world)
        finally:
            world.people.close()
            loop.close()
    return Outcome(seed, violations + world.wrong, world.sometimes, world.trace)


def _tidy_up(loop: VirtualLoop, world: World) -> None:
    """A history that broke off leaves tasks and an open store behind."""
    loop.turns_left = loop.most_turns
    if world.process is not None:
        loop.run_until_complete(world.process.die())


async def _history(world: World) -> list[str]:
    seconds = world.chance.choice(LENGTHS)
    world.invite(seconds)
    await world.live_through(seconds)
    world.calm()
    if world.chance.random() < 0.5:
        await world.end_process(is_violent=True)
        await world.open()
    assert world.process is not None
    return await _quiesce(world, world.process) or await _judgement(world, world.process)


async def _quiesce(world: World, process: Process) -> list[str]:
    """Everything must come to its end once faults have stopped and whoever is waited for answers."""
    quiet, known = 0, -1
    for _ in range(MOST_ROUNDS):
        await asyncio.sleep(ROUND)
        if not _open(world):
            return []
        entries = world.people.look_up("select count(*) from log")[0]
        quiet, known = (quiet + 1 if entries == known else 0), entries
        if quiet > MOST_QUIET_ROUNDS:
            break
        await world.people.answer_everything(process.service)
    stuck = _open(world)
    await world.end_process(is_violent=True)
    return [f"I-29 {execution} does not come to its end" for execution in stuck]


def _open(world: World) -> list[str]:
    return world.people.look_up("select execution from live union select execution from inbox")


async def _judgement(world: World, process: Process) -> list[str]:
    left = _left_in_memory(process)
    await world.end_process(is_violent=False)
    left += _forgotten(world)
    return left + await judge(world.setup.db, world.outside.effects, world.setup.slots)


def _left_in_memory(process: Process) -> list[str]:
    """Whatever a process that has nothing to do still keeps."""
    engine = process.engine
    kept = {
        "executions": len(engine.memory.lives),
        "attempts": engine.hands.busy,
        "promised hands": engine.hands.promised,
        "requests": process.unanswered(),
    }
    return [f"{number} {name} are left when everything is over" for name, number in kept.items() if number]


def _forgotten(world: World) -> list[str]:
    """Whoever was given an id can ask for it (I-35)."""
    kept = dict.fromkeys(row[0] for row in ask(world.setup.db, "select id from execution"))
    return [
        f"I-35 {execution} was accepted and is gone" for execution in world.people.accepted if execution not in kept
    ]

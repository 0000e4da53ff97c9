"""One history of a fleet from its beginning to its judgement."""

import asyncio
import logging
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from ropewalk.engines import watching
from tests.engines.judging import ask, judge
from tests.engines.simulation import shared
from tests.engines.simulation.fleet import WORKSPACES, Fleet
from tests.engines.simulation.loop import VirtualLoop
from tests.engines.simulation.member import Member
from tests.engines.simulation.shared import LEASE
from tests.engines.simulation.simulation import PLACE, Outcome
from tests.engines.simulation.world import seeded

LENGTHS = (5, 20, 60)
TAKEOVER = 5
"""So long after the lease of a dead worker someone else has what it had (s), on a store that answers."""
PAUSES = 2
"""Before the look at which a worker takes up something else, and before the next (s)."""
ROUND_TRIPS = 16
"""What both looks ask the store one after the other: who is dead, by three signs; their sessions; one transaction for
each of some dead; what the tables say, the waits, versions, logs and offers of what the first look found; two are to
spare."""
ROUND = 30
MOST_ROUNDS = 120
MOST_QUIET_ROUNDS = 14
"""Within so many, even an attempt that hangs has run into its time limit."""
SETTLING = 10
"""Within so long everyone has heard of everything (s)."""
MOST_TURNS = 300_000
FOLLOWED_EVERY = 2.0


def simulate_fleet(seed: int) -> Outcome:
    """Tell the history of a seed; the same seed gives the same outcome, always."""
    with TemporaryDirectory(prefix="ropewalk-", dir=PLACE) as place, seeded(seed), _patient_followers():
        loop = VirtualLoop(MOST_TURNS)
        fleet = Fleet(seed, os.path.join(place, "ropewalk.db"))
        loop.set_exception_handler(fleet.unexpected)
        complaints = Complaints(fleet.wrong)
        logging.getLogger("ropewalk").addHandler(complaints)
        try:
            violations = loop.run_until_complete(_history(fleet))
        except Exception:  # whatever is raised is a finding, not an accident
            violations = [traceback.format_exc()]
        finally:
            logging.getLogger("ropewalk").removeHandler(complaints)
            _tidy_up(loop, fleet)
    return Outcome(seed, violations + fleet.wrong, fleet.sometimes, fleet.trace)


class Complaints(logging.Handler):
    """Hears when the engine says that something of its own has failed; what the store does to it is no such thing."""

    def __init__(self, wrong: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._wrong = wrong

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self._wrong.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


@contextmanager
def _patient_followers() -> Iterator[None]:
    """Looking ten times a second at what nobody writes would take most of a history's time."""
    every, watching.EVERY = watching.EVERY, FOLLOWED_EVERY
    try:
        yield
    finally:
        watching.EVERY = every


def _tidy_up(loop: VirtualLoop, fleet: Fleet) -> None:
    """A history that broke off leaves workers behind."""
    loop.turns_left = loop.most_turns
    loop.run_until_complete(_leave_nobody(fleet))
    fleet.people.close()
    fleet.database.close()
    loop.close()


async def _leave_nobody(fleet: Fleet) -> None:
    for member in fleet.members:
        await member.die()


async def _history(fleet: Fleet) -> list[str]:
    seconds = fleet.chance.choice(LENGTHS)
    fleet.invite(seconds)
    await fleet.live_through(seconds)
    fleet.calm()
    for member in list(fleet.members):
        if member.death.is_set() or fleet.chance.random() < 0.3:
            await fleet.let_go(member, is_violent=True)
    await fleet.staff()
    left = await _taken_over(fleet)
    return left + (await _quiesce(fleet) or await _judgement(fleet)) + fleet.database.watch.wrong


async def _taken_over(fleet: Fleet) -> list[str]:
    """What the dead left behind is in other hands soon after their leases have run out."""
    await asyncio.sleep(LEASE + max(TAKEOVER, PAUSES + ROUND_TRIPS * 2 * max(shared.LATENCIES)))
    alive = [member.store.worker for member in fleet.members]
    owned = fleet.people.look_up("select owner || ' ' || execution from live where owner is not null")
    return [f"nobody has taken over: {each}" for each in owned if each.split()[0] not in alive]


async def _quiesce(fleet: Fleet) -> list[str]:
    """Everything must come to its end once faults have stopped and whoever is waited for answers."""
    quiet, known = 0, -1
    for _ in range(MOST_ROUNDS):
        await asyncio.sleep(ROUND)
        if not _open(fleet):
            return []
        entries = fleet.people.look_up("select count(*) from log")[0]
        quiet, known = (quiet + 1 if entries == known else 0), entries
        if quiet > MOST_QUIET_ROUNDS:
            break
        for workspace in WORKSPACES:
            service = fleet.chance.choice(fleet.members).service_of(workspace)
            await fleet.people.answer_everything(service)
            if quiet > 1:
                await fleet.people.untangle(service)
    return [f"I-29 {each} does not come to its end" for each in _open(fleet)]


OPEN = (
    "select execution from live",
    "select 'letter to ' || execution from inbox where answer is null",
    "select 'offer of ' || execution from offer",
    "select 'queue entry ' || id from queue where state <> 'FAILED'",
)


def _open(fleet: Fleet) -> list[str]:
    return fleet.people.look_up(" union ".join(OPEN))


async def _judgement(fleet: Fleet) -> list[str]:
    await asyncio.sleep(SETTLING)
    left = [each for member in fleet.members for each in _left_in_memory(member)]
    for member in list(fleet.members):
        await fleet.let_go(member, is_violent=False)
    left += _forgotten(fleet) + _doubled(fleet)
    _collect_answers(fleet)
    removed = fleet.database.watch.removed
    seen = [effect for effect in fleet.outside.effects if effect.execution not in removed]
    return left + await judge(fleet.setup.db, seen, fleet.limits)


def _collect_answers(fleet: Fleet) -> None:
    """Whoever died before its answer came never comes for it; the retention sees to those."""
    fleet.database.connection.execute("delete from inbox where answer is not null")


def _left_in_memory(member: Member) -> list[str]:
    """Whatever a worker that has nothing to do still keeps."""
    engine = member.engine
    kept = {
        "executions": len(engine.memory.lives),
        "attempts": engine.hands.busy,
        "promised hands": engine.hands.promised,
        "leased runs": engine.leased.busy,
        "requests": member.unanswered(),
    }
    return [f"{number} {name} are left in {member.name}" for name, number in kept.items() if number]


def _forgotten(fleet: Fleet) -> list[str]:
    """Whoever was given an id can ask for it (I-35)."""
    kept = {row[0] for row in ask(fleet.setup.db, "select id from execution")} | fleet.database.watch.removed
    return [
        f"I-35 {execution} was accepted and is gone" for execution in fleet.people.accepted if execution not in kept
    ]


def _doubled(fleet: Fleet) -> list[str]:
    """Whoever came with the same key was given the same execution."""
    return [f"{key} started {list(given)}" for key, given in fleet.people.by_key.items() if len(given) > 1]

"""Seeded bugs of fleets: deliberate mistakes in engine, SQL and store, each of which must be caught."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from ropewalk.engines.leased import LeasedRuns
from ropewalk.engines.leasing import Leasing
from ropewalk.engines.native.claims import Claims
from ropewalk.engines.native.letters import Letters
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.offers import Offers
from ropewalk.engines.native.recovery import Recovery
from ropewalk.engines.native.takeover import Takeover
from ropewalk.store import queue, workers
from ropewalk.store.sqlite.connection import statements
from tests.engines.simulation.fleet_history import simulate_fleet
from tests.engines.simulation.heartbeat import Heartbeat
from tests.engines.simulation.shared import SharedStore
from tests.simulator.bugs import Bug
from tests.simulator.hunt import Caught

MOST_HISTORIES: Final = 200


class SqlBug(Struct, frozen=True):
    """What is wrong, in which statement, and the text that makes it so."""

    name: str
    statement: str
    right: str
    wrong: str

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The bug is there while the context lasts."""
        sound = statements()[self.statement]
        if sound.count(self.right) != 1:
            raise LookupError(f"{self.name}: {self.right!r} must be there once in {self.statement}")
        statements()[self.statement] = sound.replace(self.right, self.wrong)
        try:
            yield
        finally:
            statements()[self.statement] = sound


OWNERSHIP: Final = (
    Bug("epoch not checked by writes", SharedStore._check_epoch,
        "if not self.database.connection", "if False and self.database.connection"),
    Bug("takeover without raising the epoch", workers.take_over, "await expel(tx, dead)", "pass"),
    Bug("nothing is taken over", Takeover.look, "await self._recovery.take_up(taken, self._step)", "pass"),
    Bug("lease extended by the worker's clock", Heartbeat._renew,
        "row = (now,", "row = (now + 86_400_000_000 * (int(self._worker[1]) % 2),"),
    SqlBug("acquired from whoever has it", "acquire_live", " and owner is null", ""),
    Bug("leaving memory before the commit", Memory._load, "execution in self._leaving", "None"),
    Bug("one that is over kept in memory", Live.may_leave, "self.execution.is_ended or ", ""),
)  # fmt: skip

LETTERS: Final = (
    Bug("letter told that waits no more", Letters._turn,
        "await inbox.waits(store, letter.id)", "True"),
    Bug("letter told again before it was durable", Letters._deliver, "await self._is_durable()", "pass"),
    Bug("a refusal keeps the letter", Letters._answer,
        "except (InvalidTransition, NotFound, Conflict)", "except InvalidTransition"),
    Bug("letter thrown away before its reader comes", Letters._forget, "may_come = _is_verb_of_parent(signal)",
        "may_come = False"),
    Bug("hints taken for the truth about letters", Letters._run, "call_later(EVERY,", "call_later(10**9,"),
    Bug("hints taken for the truth about the queue", Claims._run, "call_later(pause,", "call_later(10**9,"),
)  # fmt: skip

OFFERS: Final = (
    Bug("report of a run that was lost", LeasedRuns._report, "[] if reported is None else [await", "[await"),
    Bug("expired runs not told", Leasing.end_silent, "await offers.expired(tx, now, BATCH)", "[]"),
    Bug("offers repeated after a lost answer", Offers._write,
        "self._give_up(list(lives.values()), error)", "self._rows[:0] = offered"),
    Bug("offers of a dead owner taken for lost", Recovery.find_offers, "if live.found_running", "if False"),
)  # fmt: skip

CLAIMS: Final = (
    Bug("slots not counted by the claim", queue._offer, "slots - await slots_taken(tx, workspace)", "slots"),
    SqlBug("keys of others not seen by the claim", "claimable", "holder.has_key > 0", "holder.has_key > 9"),
)

BUGS: Final[tuple[Bug | SqlBug, ...]] = (*OWNERSHIP, *LETTERS, *OFFERS, *CLAIMS)


SHOWN_BY: Final = {
    "epoch not checked by writes": 10,
    "takeover without raising the epoch": 10,
    "lease extended by the worker's clock": 10,
    "leaving memory before the commit": 108,
    "one that is over kept in memory": 72,
    "offers repeated after a lost answer": 1177,
    "letter thrown away before its reader comes": 605,
}
"""Where those that take many histories were seen last: a hunt that begins there is short."""


def hunt_fleet(bug: Bug | SqlBug, most: int = MOST_HISTORIES, first: int = 0) -> Caught | None:
    """Plant the bug and simulate until a history shows it; None if none does."""
    with bug.planted():
        for seed in range(first, first + most):
            if violations := simulate_fleet(seed).violations:
                return Caught(seed - first + 1, violations[0])
    return None

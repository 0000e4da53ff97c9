"""Seeded bugs: deliberate mistakes in the engine, each of which the simulator must catch."""

from typing import Final

from ropewalk.engines.native import projecting, recovery
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.deciding import Deciding
from ropewalk.engines.native.letters import Letters
from ropewalk.engines.native.setbacks import Setbacks
from ropewalk.engines.native.telling import Telling
from tests.engines.simulation.simulation import simulate
from tests.simulator.bugs import Bug
from tests.simulator.hunt import Caught

MOST_HISTORIES: Final = 100

BUGS: Final = (
    Bug("commands before the commit", GroupCommit._commit,
        "await (part.writing or self._store.write(part.batch))",
        "self._carry_out(part.committed); part.committed = []; await (part.writing or self._store.write(part.batch))"),
    Bug("slot never written as free", projecting._put_live, "int(x.has_slot)", "1"),
    Bug("key never given back", projecting._put_live, 'rows.append(("delete_live", (live.id,)))', "pass"),
    Bug("letter told and kept", Telling.hand_over, 'live.rows.append(("delete_inbox", (letter,)))', "pass"),
    Bug("letters of the last process not read", Letters.catch_up,
        "in await inbox.messages_for(self._store, self._store.worker)", "in ()"),
    Bug("lost attempts not told at the opening", recovery._ends_of_attempts, "in live.found_running", "in ()"),
    Bug("kept in memory after a failed commit", Deciding.drop, "self._memory.forget(live)", "pass"),
    Bug("not taken up after a failed commit", Setbacks.give_up,
        "self._background.spawn(self._recover(live.id, live.setbacks, reports))", "pass"),
    Bug("promised hands leaked", Deciding.drop, "self._hands.promised -= sum(", "_ = sum("),
    Bug("wake-up of the parked not written", projecting._put_live, "None if x.has_slot else x.wake_at", "None"),
    Bug("hungry executions forgotten", Deciding._remember_hungry, "self._hungry.append(live)", "pass"),
)  # fmt: skip


def hunt(bug: Bug, most: int = MOST_HISTORIES, first: int = 0) -> Caught | None:
    """Plant the bug and simulate until a history shows it; None if none does."""
    with bug.planted():
        for seed in range(first, first + most):
            if violations := simulate(seed).violations:
                return Caught(seed - first + 1, violations[0])
    return None

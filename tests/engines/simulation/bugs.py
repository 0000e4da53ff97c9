"""Seeded bugs: deliberate mistakes in the engine, each of which the simulator must catch."""

from typing import Final

from ropewalk.engines.native import projecting
from ropewalk.engines.native.children import Children
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.engine import NativeEngine
from tests.engines.simulation.simulation import simulate
from tests.simulator.bugs import Bug
from tests.simulator.hunt import Caught

MOST_HISTORIES: Final = 100

BUGS: Final = (
    Bug("commands before the commit", GroupCommit._commit,
        "await self._store.write(batch)",
        "self._carry_out(committed); committed = []; await self._store.write(batch)"),
    Bug("slot given back before the commit", NativeEngine.signal,
        "live.events += events",
        "live.events += events; live.has_slot and not x.has_slot and (setattr(live, 'has_slot', False), "
        "self.slots.give_back(live.accepted), self.claims.freed())"),
    Bug("slot never given back", NativeEngine._after_commit, "self.slots.give_back(live.accepted)", "pass"),
    Bug("key never given back", NativeEngine._after_commit, "self.slots.give_back_key(live.accepted)", "pass"),
    Bug("letter told and kept", Children._tell, 'live.rows.append(("delete_inbox", (letter,)))', "pass"),
    Bug("letters of the last process not read", NativeEngine.open, "await self.children.catch_up()", "pass"),
    Bug("lost attempts not told at the opening", NativeEngine._take_up, "if each.phase is Phase.RUNNING", "if False"),
    Bug("kept in memory after a failed commit", NativeEngine.drop, "self.memory.forget(live)", "pass"),
    Bug("not taken up after a failed commit", NativeEngine._lost_the_store,
        "self.children.spawn(self._recover(live))", "pass"),
    Bug("promised hands leaked", NativeEngine.drop, "self.hands.promised -= sum(", "_ = sum("),
    Bug("wake-up of the parked not written", projecting._put_live, "None if x.has_slot else x.wake_at", "None"),
    Bug("hungry executions forgotten", NativeEngine._remember_hungry, "self._hungry.append(live)", "pass"),
)  # fmt: skip


def hunt(bug: Bug, most: int = MOST_HISTORIES) -> Caught | None:
    """Plant the bug and simulate until a history shows it; None if none does."""
    with bug.planted():
        for seed in range(most):
            if violations := simulate(seed).violations:
                return Caught(seed + 1, violations[0])
    return None

"""People: they ask for what is possible and for what is not, at any moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ropewalk.core.duration import SECOND
from ropewalk.core.signals import (
    Abandon,
    Cancel,
    ChildReopened,
    Decide,
    Fix,
    GiveUp,
    Pause,
    Requeue,
    Resume,
    Retry,
    Signal,
)
from tests.simulator.store import RIVAL, Entry, Letter, Row

if TYPE_CHECKING:
    from tests.simulator.world import World

ANN: Final = "ann"
VERBS: Final = (
    *["pause"] * 4, *["resume"] * 3, *["cancel"] * 2, *["retry"] * 2, *["requeue"] * 3, *["requeue twice"] * 2,
    *["fix"] * 3, *["give up"] * 4, *["decide"], *["tell"] * 4, *["abandon"],
)  # fmt: skip
REOPENINGS: Final = ("retry", "retry", "requeue", "requeue twice", "requeue in vain", "fix")
MOST_REOPENINGS: Final = 2


class People:
    """Everyone who may ask something of an execution."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._reopenings: dict[str, int] = {}

    def take_interest(self, row: Row) -> None:
        """Some executions are left alone, some are meddled with."""
        chance = self.world.chance
        for _ in range(chance.choice((0, 0, 0, 1, 2, 4))):
            self.world.after(int(chance.random() ** 2 * 90 * SECOND), self.ask, row, chance.choice(VERBS))

    def notice_failure(self, row: Row) -> None:
        """A failed execution may be reopened, a few times."""
        times = self._reopenings.get(row.id, 0)
        if times < MOST_REOPENINGS and self.world.chance.random() < 0.4:
            self._reopenings[row.id] = times + 1
            self.world.after(self.world.moment(), self.ask, row, self.world.chance.choice(REOPENINGS))

    def notice_letter(self, row: Row) -> None:
        """What a map tolerates and keeps may be mended while the execution goes on, once its followers have begun."""
        chance = self.world.chance
        for _ in range(3):
            self.world.after(int(chance.random() ** 2 * 20 * SECOND), self.ask, row, chance.choice(("requeue", "fix")))

    def notice_child(self, row: Row) -> None:
        """An execution that waits for a child may be paused for a moment or called off: its child is to follow."""
        chance = self.world.chance
        if chance.random() < 0.3:
            first = int(chance.random() ** 2 * 4 * SECOND)
            verbs = chance.choice((("pause", "resume"), ("cancel",)))
            for place, verb in enumerate(verbs):
                self.world.after(first + place * int((1 + chance.random() * 4) * SECOND), self.ask, row, verb)

    def ask(self, row: Row, verb: str) -> None:
        """Put a request into the inbox; a child is reopened through its parent."""
        requests = self._requests(row, verb)
        for request in requests:
            self.world.note(ANN, "asks {}: {}", row, request)
            parent = row.parent
            if parent is not None and row.end is not None and isinstance(request, Retry | Requeue | Fix):
                reopened = ChildReopened(parent.node, parent.attempt, ANN, parent.item)
                self.world.store.post(self.world.store.rows[parent.execution], Entry(reopened, then=(row.id, request)))
            else:
                self.world.store.post(row, Entry(request))

    def _requests(self, row: Row, verb: str) -> list[Signal]:
        node, item = self._letter(row)
        match verb:
            case "pause":
                return [Pause(ANN)]
            case "resume":
                return [Resume(ANN)]
            case "cancel":
                return [Cancel(ANN)]
            case "retry":
                return [Retry(ANN)]
            case "requeue":
                return [Requeue(node, ANN, item, {"read": "overridden"})]
            case "requeue twice":
                return [Requeue(node, ANN, item), Requeue(node, RIVAL, item)]
            case "requeue in vain":
                return [Requeue(node, ANN, item, {"read": "overridden"}), Abandon("no worker is left"), Retry(ANN)]
            case "fix":
                return [Fix(node, ANN, "fixed", item=item)]
            case "give up":
                run, run_item = self._anything(row)
                return [GiveUp(run, ANN, run_item)]
            case "decide":
                return [Decide(node, True, ANN, item=item)]
            case "tell":
                return [self.world.outside.tell("ping") for _ in range(self.world.chance.randint(1, 3))]
            case _:
                return [Abandon("no worker has this node type")]

    def _letter(self, row: Row) -> Letter:
        """Mostly a dead letter, perhaps one that was dealt with long ago; else anything."""
        if row.letters and self.world.chance.random() < 0.9:
            return self.world.chance.choice(row.letters)
        return self._anything(row)

    def _anything(self, row: Row) -> Letter:
        chance = self.world.chance
        index = chance.randrange(len(row.plan))
        is_map = row.plan.for_each[index] is not None
        return row.plan.ids[index], chance.randrange(4) if is_map and chance.random() < 0.7 else None

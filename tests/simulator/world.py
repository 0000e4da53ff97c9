"""The clock, the agenda and all actors of the world. Nothing here is random but what `chance` draws from the seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any, Final

from ropewalk.core.commands import StartChild
from ropewalk.core.duration import SECOND
from ropewalk.core.events import RULES, ExecutionAccepted, Parent
from ropewalk.core.plan import Plan
from tests.simulator.faults import Faults
from tests.simulator.outside import Outside
from tests.simulator.people import People
from tests.simulator.store import WORKSPACE, Row, Store
from tests.simulator.worker import Worker
from tests.simulator.workflows import workflows_of

EPOCH: Final = 1_000_000 * SECOND
MOST_STEPS: Final = 6_000


class Livelock(Exception):
    """The world kept busy far beyond what its work explains."""


class World:
    """One seed's worth of executions, workers, faults and people."""

    def __init__(self, seed: int, *, is_traced: bool = False) -> None:
        self.seed = seed
        self.chance = Random(seed)
        self.now = EPOCH
        self.steps = 0
        self.trace: list[str] | None = [] if is_traced else None
        self.sometimes: Counter[str] = Counter()
        self.faults = Faults(self.chance)
        # Whether the log is written ahead of everything that follows from it.
        self.is_log_first = self.chance.random() < 0.3
        self.workflows = workflows_of(seed)
        self._agenda: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = 0
        self.store = Store(self, slots=self.chance.choice((1, 1, 2, 5)))
        self.outside = Outside(self)
        self.people = People(self)
        self.workers: list[Worker] = []
        self._born = 0
        for _ in range(self.chance.choice((2, 2, 3))):
            self.hire()
        self._accept_executions()

    # Time

    def after(self, delay: int, action: Callable[..., None], *arguments: Any) -> None:
        """Do something `delay` from now."""
        self.at(self.now + delay, action, *arguments)

    def at(self, moment: int, action: Callable[..., None], *arguments: Any) -> None:
        self._order += 1
        heappush(self._agenda, (moment, self._order, action, arguments))

    def moment(self) -> int:
        """The short while that anything takes: mostly milliseconds, now and then nothing at all."""
        return int(self.chance.random() ** 3 * SECOND) if self.chance.random() < 0.8 else 0

    def run(self, until: int | None = None) -> None:
        """Let happen what is on the agenda, to its end or to a moment."""
        agenda = self._agenda
        while agenda and (until is None or agenda[0][0] <= until):
            moment, _, action, arguments = heappop(agenda)
            self.now = max(self.now, moment)
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise Livelock(f"still busy after {MOST_STEPS} steps")
            action(*arguments)

    def note(self, who: object, what: str, *about: object) -> None:
        """One line of the trace, written out only if someone will read it."""
        if self.trace is not None:
            self.trace.append(f"{(self.now - EPOCH) / SECOND:10.3f}  {who!s:<6} {what.format(*about)}")

    # Workers

    def hire(self) -> None:
        self._born += 1
        skew = self.chance.choice((0, 0, 1, -1, 5, -5)) * SECOND // 2
        self.workers.append(Worker(self, f"w{self._born}", skew))

    def poke(self, row: Row) -> None:
        """Someone looks after the row in a moment."""
        self.after(self.moment(), self.attend, row)

    def attend(self, row: Row) -> None:
        """The owner sees to the row; if it has none, any worker that is awake becomes it."""
        if row.owner is not None:
            if row.owner.is_awake:
                row.owner.work(row)
            return
        if not row.inbox and (row.wake_at is None or row.wake_at > self.now):
            return
        self.adopt(row)

    def adopt(self, row: Row) -> None:
        """Another worker takes the row over, as soon as one is awake."""
        awake = [worker for worker in self.workers if worker.is_awake and worker is not row.owner]
        if awake:
            self.chance.choice(awake).take(row)
        else:
            self.after(SECOND, self._adopt_from, row, row.owner)

    def _adopt_from(self, row: Row, owner: Worker | None) -> None:
        if row.owner is owner:
            self.adopt(row)

    def attend_orphan(self, row: Row) -> None:
        self._adopt_from(row, None)

    def steal(self, row: Row) -> None:
        """A heartbeat got lost: the row is taken from an owner that is alive and works on."""
        if row.owner is not None and len(self.workers) > 1:
            self.sometimes["lease expiry with the old worker alive"] += 1
            self.adopt(row)

    # Executions

    def _accept_executions(self) -> None:
        for number in range(self.chance.choice((1, 1, 2, 3))):
            plan = self.chance.choice(self.workflows.tops)
            key = "key" if self.chance.random() < 0.2 else None
            self.after(self.moment(), self._accept, f"x{number}", plan, key)

    def _accept(self, name: str, plan: Plan, key: str | None) -> None:
        row = self.store.accept(self._accepted(name, plan, key, None), plan)
        self.people.take_interest(row)

    def start_child(self, row: Row, command: StartChild) -> None:
        """Accept the child a node waits for, if it is not there yet."""
        child = command.wait.child
        if child not in self.store.rows:
            plan = self.workflows.children[int(command.wait.workflow)]
            parent = Parent(row.id, command.node, command.attempt, command.item, (row.id,))
            key = row.key if self.chance.random() < 0.5 else None
            accepted = self.store.accept(self._accepted(child, plan, key, parent), plan)
            accepted.is_born_paused = row.is_paused
            self.people.take_interest(accepted)

    def _accepted(self, name: str, plan: Plan, key: str | None, parent: Parent | None) -> ExecutionAccepted:
        items: Any = list(range(self.chance.choice((0, 1, 2, 3, 5)))) if self.chance.random() < 0.95 else "no list"
        return ExecutionAccepted(
            self.now,
            execution=name,
            workspace=WORKSPACE,
            workflow=plan.definition.name,
            version=1,
            hash=plan.definition.content_hash,
            input={"items": items},
            parent=parent,
            concurrency_key=key,
            rules=RULES,
        )

"""What nodes do when they are run, what the outside world sees of it, and what answers their waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from ropewalk.checker import Effect
from ropewalk.core.commands import RunNode, StopRun
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import RunWaiting
from ropewalk.core.execution.view import inputs_of, items_of
from ropewalk.core.plan import DEFAULT_ATTEMPT_TIMEOUT
from ropewalk.core.signals import (
    Decide,
    Expanded,
    Failed,
    Lost,
    Matched,
    Released,
    Report,
    Signal,
    Succeeded,
    Suspended,
    Tell,
)
from ropewalk.core.waits import (
    Approval,
    BreakerWait,
    ChildWait,
    EventWait,
    Hold,
    RateLimitWait,
    SignalWait,
    Timer,
    Wait,
)
from tests.simulator.store import Entry, Row, RunKey

if TYPE_CHECKING:
    from tests.simulator.worker import Held, Worker
    from tests.simulator.world import World

RUNNER_LEASE: Final = 120 * SECOND
ERRORS: Final = (
    *[RunError(ErrorType.TRANSIENT, "connection reset")] * 5,
    RunError(ErrorType.PERMANENT, "no such thing"),
    RunError(ErrorType.PERMANENT, "no such thing", "the beginning", status=404, body="the beginning of it"),
    *[RunError(ErrorType.TIMEOUT, "no answer")] * 2,
    RunError(ErrorType.TRANSIENT, "slow down", retry_after=7.0),
    RunError(ErrorType.CIRCUIT_OPEN, "held too long"),
)
STOPPED: Final = RunError(ErrorType.TRANSIENT, "told to stop")
TIMED_OUT: Final = RunError(ErrorType.TIMEOUT, "no answer in time")
TOLD: Final = "told "
NO_LIST: Final = RunError(ErrorType.PERMANENT, "forEach gives no list")


class Attempt(Struct):
    """One attempt that a worker carries out; `inputs` as resolved when it began."""

    key: RunKey
    fence: int
    kind: str
    inputs: Any = None
    items: Any = None
    is_list: bool = False


class Outside:
    """Everything beyond the workers."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.effects: dict[str, list[Effect]] = {}
        self.trouble: float = world.chance.choice((0.05, 0.3, 0.3, 0.6))
        self._told = 0

    # Work

    def begin(self, worker: Worker, held: Held, command: RunNode) -> None:
        """Carry an attempt out, on the worker itself or by lending it to an external runner."""
        attempt = self._attempt(held, command)
        duration = self._duration()
        if self.world.chance.random() < 0.1 and not attempt.is_list:
            held.row.leases[attempt.key] = attempt.fence
            self.world.after(duration, self._finish_leased, held.row, attempt)
            self.world.after(RUNNER_LEASE, self._expire_lease, held.row, attempt)
        else:
            worker.running[held.row.id, attempt.key] = attempt
            self.world.after(duration, self._finish, worker, held.row, attempt)

    def _attempt(self, held: Held, command: RunNode) -> Attempt:
        x = held.execution
        index = x.plan.index[command.node]
        key = (command.node, command.item, command.attempt)
        fence = self.world.store.begin(held.row, key)
        kind = x.plan.types[index]
        if command.item is None and x.plan.for_each[index] is not None:
            return Attempt(key, fence, kind, items=items_of(x, index), is_list=True)
        work = x.work(command.node, command.item)
        assert work is not None, f"{command} is about nothing"
        item = None if command.item is None else items_of(x, index)[command.item]
        return Attempt(key, fence, kind, inputs_of(x, work, item))

    def _duration(self) -> int:
        """Mostly short; now and then longer than any lease."""
        chance = self.world.chance
        return int(chance.random() * SECOND * (40 if chance.random() < 0.1 else 2))

    def _finish(self, worker: Worker, row: Row, attempt: Attempt) -> None:
        """The attempt is done, if its worker still lives; a frozen one does it when it thaws."""
        if worker.running.get((row.id, attempt.key)) is not attempt:
            return
        if not worker.is_awake:
            self.world.at(worker.frozen_until, self._finish, worker, row, attempt)
            return
        faults = self.world.faults
        if faults.strike("deadly work"):
            worker.crash()
            return
        report = self._report(row, attempt, worker.clock)
        if faults.strike("repeated report"):
            self._repeat(row, attempt, report)
        if faults.strike("lost report"):
            timeout = row.plan.timeouts[row.plan.index[attempt.key[0]]] or DEFAULT_ATTEMPT_TIMEOUT
            self.world.after(timeout, self._time_out, worker, row, attempt)
            self._repeat(row, attempt, report)
        else:
            del worker.running[row.id, attempt.key]
            worker.report(row, report)

    def _repeat(self, row: Row, attempt: Attempt, report: Report) -> None:
        """The same report comes once more, perhaps long after."""
        self.world.sometimes["duplicate delivery"] += 1
        delay = int(self.world.chance.random() ** 2 * 400 * SECOND)
        self.world.after(delay, self.world.store.post, row, Entry(report, (attempt.key, attempt.fence)))

    def _time_out(self, worker: Worker, row: Row, attempt: Attempt) -> None:
        """The worker never heard of its attempt again."""
        if worker.running.get((row.id, attempt.key)) is not attempt:
            return
        if not worker.is_awake:
            self.world.at(worker.frozen_until, self._time_out, worker, row, attempt)
        else:
            del worker.running[row.id, attempt.key]
            node, item, number = attempt.key
            worker.report(row, Failed(node, number, TIMED_OUT, item, attempt.inputs))

    def stop(self, worker: Worker, row: Row, command: StopRun) -> None:
        """Most attempts obey soon; some finish first, some do not listen."""
        key = (command.node, command.item, command.attempt)
        if (row.id, key) in worker.running and self.world.chance.random() < 0.6:
            self.world.after(int(self.world.chance.random() * 12 * SECOND), self._obey, worker, row, key)

    def _obey(self, worker: Worker, row: Row, key: RunKey) -> None:
        if worker.is_awake and worker.running.pop((row.id, key), None) is not None:
            worker.report(row, Failed(key[0], key[2], STOPPED, key[1]))

    # External runners

    def _finish_leased(self, row: Row, attempt: Attempt) -> None:
        """A runner reports through the store; a silent one does so after its lease, too late."""
        report = self._report(row, attempt, self.world.now)
        if self.world.faults.strike("lost report"):
            self.world.after(RUNNER_LEASE, self._post_report, row, attempt, report)
        else:
            self._post_report(row, attempt, report)

    def _post_report(self, row: Row, attempt: Attempt, report: Report) -> None:
        self.world.store.post(row, Entry(report, (attempt.key, attempt.fence)))
        if self.world.faults.strike("repeated report"):
            self._repeat(row, attempt, report)

    def _expire_lease(self, row: Row, attempt: Attempt) -> None:
        if row.leases.get(attempt.key) == attempt.fence:
            del row.leases[attempt.key]
            node, item, number = attempt.key
            self.world.store.post(row, Entry(Lost(node, number, item, self.world.chance.random())))

    # Outcomes

    def _report(self, row: Row, attempt: Attempt, clock: int) -> Report:
        node, item, number = attempt.key
        if attempt.is_list:
            if isinstance(attempt.items, list):
                return Expanded(node, number, len(attempt.items))
            return Failed(node, number, NO_LIST)
        report = self._outcome(row, attempt, clock)
        is_held = isinstance(report, Suspended) and isinstance(report.wait, Hold)
        if not is_held and (not isinstance(report, Failed) or self.world.faults.coin()):
            effect = Effect(row.id, node, item, number, f"{row.id}/{node}/{item}")
            self.effects.setdefault(row.id, []).append(effect)
        return report

    def _outcome(self, row: Row, attempt: Attempt, clock: int) -> Report:
        chance = self.world.chance
        node, item, number = attempt.key
        if chance.random() < self.trouble:
            return Failed(node, number, chance.choice(ERRORS), item, attempt.inputs, chance.random())
        if chance.random() < 0.05:
            wait: Wait | None = self._hold(clock)
        else:
            wait = self._wait(row, attempt, clock)
        if wait is not None:
            return Suspended(node, number, wait, item, attempt.inputs)
        ports = chance.choice(((), ("left",), ("right",), ("left", "right"))) if attempt.kind == "branch" else ()
        return Succeeded(node, number, output_of(attempt.key), ports, item, attempt.inputs)

    def _hold(self, clock: int) -> Wait:
        """A breaker or a rate limit keeps the attempt from beginning; of the limit it has a slot, or not."""
        chance = self.world.chance
        due = clock + chance.choice((1, 20)) * SECOND
        if chance.random() < 0.5:
            return BreakerWait("target", due)
        return chance.choice((RateLimitWait("shop", due), RateLimitWait("shop", due, due + SECOND, ("shop",))))

    def _wait(self, row: Row, attempt: Attempt, clock: int) -> Wait | None:
        chance = self.world.chance
        match attempt.kind:
            case "sleep":
                return Timer(clock + chance.choice((1, 8, 30, 120)) * SECOND)
            case "ask":
                return Approval("really?")
            case "listen":
                return EventWait("news", chance.choice((None, "item != input.items")))
            case "hear":
                return SignalWait("ping" if chance.random() < 0.8 else "pong")
            case "call":
                node, item, number = attempt.key
                return ChildWait(f"{row.id}.{node}.{item}.{number}", str(chance.randrange(2)))
            case _:
                return None

    # Answers

    def expect(self, row: Row, event: RunWaiting) -> None:
        """Someone may answer the wait by and by, some more than once."""
        chance = self.world.chance
        if chance.random() < 0.6:
            self.world.after(int(chance.random() ** 2 * 60 * SECOND), self._answer, row, event)
            if chance.random() < 0.3:
                self.world.after(int(chance.random() ** 2 * 60 * SECOND), self._answer, row, event)

    def _answer(self, row: Row, event: RunWaiting) -> None:
        if (signal := self.answer_to(event.wait, event.node, event.attempt, event.item)) is not None:
            self.world.store.post(row, Entry(signal))

    def answer_to(self, wait: Wait | None, node: str, attempt: int, item: int | None) -> Signal | None:
        """What ends such a wait; None for those that end by time or by another execution."""
        match wait:
            case Approval():
                return Decide(node, self.world.faults.coin(), "ann", item=item)
            case EventWait():
                return Matched(node, attempt, output_of((node, item, attempt)), item, "news")
            case SignalWait(name):
                return self.tell(name)
            case BreakerWait() | RateLimitWait():
                return Released(node, attempt, item)
            case _:
                return None

    def tell(self, name: str) -> Tell:
        """A signal whose payload no other signal carries."""
        self._told += 1
        return Tell(name, f"{TOLD}{self._told}")


def output_of(key: RunKey) -> str:
    """An output that says which attempt made it."""
    return f"{key[0]}[{key[1]}]#{key[2]}"


def told_by(output: Any) -> Any:
    """What a node was given by its own attempt, or by the event it waited for."""
    return output["payload"] if isinstance(output, dict) and "payload" in output else output


def is_output(value: object) -> bool:
    """Whether a value was made by `output_of`."""
    return isinstance(value, str) and "]#" in value

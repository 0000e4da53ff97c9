"""The machine alone, told anything at any moment: with all that hypothesis thinks of, the log stays one that may be."""

from collections.abc import Iterator
from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ropewalk.checker import Effect, History, check
from ropewalk.core.definition import Definition
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, InvalidTransition, RunError
from ropewalk.core.events import Event, ExecutionAccepted
from ropewalk.core.execution import Execution
from ropewalk.core.execution.view import items_of
from ropewalk.core.execution.work import Phase, Work
from ropewalk.core.plan import Plan
from ropewalk.core.signals import (
    Cancel,
    ChildEnded,
    ChildReopened,
    Decide,
    Due,
    Expanded,
    Failed,
    Fix,
    GiveUp,
    Lost,
    Matched,
    Pause,
    Released,
    Requeue,
    Resume,
    Retry,
    Returned,
    Signal,
    Start,
    Succeeded,
    Suspended,
    Tell,
)
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import (
    Approval,
    BreakerWait,
    ChildWait,
    EventWait,
    RateLimitWait,
    SignalWait,
    Timer,
    TypeWait,
    Wait,
)
from tests.simulator.laws import broken_laws
from tests.simulator.outside import output_of
from tests.simulator.snapshot import differences, snapshot
from tests.simulator.workflows import KINDS, document

ITEMS = 3
NOON = 1_000_000 * SECOND
PORTS = ((), ("left",), ("right",), ("left", "right"), ("error",))
VERBS = (Retry("ann"), Retry("ann"), Resume("ann"), Resume("ann"), Pause("ann"))
ENDS = (ExecutionState.SUCCESS, ExecutionState.FAILED, ExecutionState.TIMEOUT, ExecutionState.CANCELLED)
picks = st.integers(0, 2**16)


class AnyHistory(RuleBasedStateMachine):
    """One execution of a random workflow, its worker, and everyone who may tell it something."""

    @initialize(seed=picks, is_generous=st.sampled_from((True, True, False)))
    def accept(self, seed: int, is_generous: bool) -> None:
        """With a generous world every slot is granted at once."""
        self.is_generous = is_generous
        self.plan = Plan(Definition(document(Random(seed), KINDS, largest=8, smallest=3)))
        accepted = ExecutionAccepted(
            NOON,
            execution="x",
            workspace="w",
            workflow="random",
            version=1,
            hash=self.plan.definition.content_hash,
            input={"items": list(range(ITEMS))},
        )
        self.now = NOON
        self.log: list[Event] = [accepted]
        self.effects: list[Effect] = []
        self.reports: list[Signal] = []
        self.told = 0
        self.execution = self.fold()

    @precondition(lambda self: self.execution.is_ended and not self.may_go_on())
    @rule(seed=picks)
    def accept_another(self, seed: int) -> None:
        """What is final stays as it is; the steps that are left are for another execution."""
        self.teardown()
        self.accept(seed, is_generous=True)

    def may_go_on(self) -> bool:
        """Whether it may be reopened: it failed, or a failure that it tolerated may be mended."""
        x = self.execution
        is_mendable = any(work.gave_up for work in self.works(Phase.ENDED))
        return x.state.is_reopenable or (x.state is ExecutionState.SUCCESS and is_mendable)

    # What the rules are made of

    def fold(self) -> Execution:
        execution = Execution(self.plan)
        execution.apply(self.log)
        return execution

    def tell(self, signal: Signal) -> list[Event]:
        events = self.execution.handle(signal, self.now)
        self.execution.take_commands()
        self.log += events
        if self.is_generous and self.execution.needs_slot:
            self.grant_a_slot()
        return events

    def ask(self, request: Signal) -> None:
        """A person's request may be refused, but then it leaves no trace."""
        before = snapshot(self.execution)
        try:
            self.tell(request)
        except InvalidTransition:
            assert differences(snapshot(self.execution), before) == []
            assert self.execution.events == []

    def works(self, phase: Phase) -> list[Work]:
        return [work for work in self.execution.active_works() if work.phase is phase]

    def pick(self, phase: Phase, number: int) -> tuple[Work, str]:
        works = self.works(phase)
        work = works[number % len(works)]
        return work, self.plan.ids[work.node]

    def report(self, work: Work, signal: Signal) -> None:
        """An attempt tells how it went; the outside has seen it work."""
        if not isinstance(signal, Expanded):
            self.effects.append(Effect("x", self.plan.ids[work.node], work.item, work.attempt, "key"))
        self.reports.append(signal)
        self.tell(signal)

    def is_list(self, work: Work) -> bool:
        return work.item is None and self.plan.for_each[work.node] is not None

    def is_running(self) -> bool:
        return bool(self.works(Phase.RUNNING))

    def is_waiting(self) -> bool:
        return bool(self.works(Phase.WAITING))

    # Time and slots

    @precondition(lambda self: self.execution.needs_slot)
    @rule()
    def grant_a_slot(self) -> None:
        self.log += self.execution.handle(Start(), self.now)

    @rule(seconds=st.sampled_from((0, 1, 7, 40, -5)))
    def let_time_pass(self, seconds: int) -> None:
        """Also backwards: a worker may have another idea of the time."""
        self.now += seconds * SECOND
        self.tell(Due())

    # Work

    @precondition(is_running)
    @rule(numbers=st.lists(picks, min_size=1, max_size=3), ports=st.sampled_from(PORTS))
    def succeed_through_ports(self, numbers: list[int], ports: tuple[str, ...]) -> None:
        self.succeed(numbers, ports)

    def succeed(self, numbers: list[int], ports: tuple[str, ...]) -> None:
        for number in numbers:
            if self.is_running():
                self.succeed_once(number, ports)

    def succeed_once(self, number: int, ports: tuple[str, ...]) -> None:
        work, node = self.pick(Phase.RUNNING, number)
        if self.is_list(work):
            items = items_of(self.execution, work.node)
            self.report(work, Expanded(node, work.attempt, len(items) if isinstance(items, list) else ITEMS))
        else:
            output = output_of((node, work.item, work.attempt))
            self.report(work, Succeeded(node, work.attempt, output, ports if work.item is None else (), work.item))

    @precondition(is_running)
    @rule(numbers=st.lists(picks, min_size=3, max_size=6))
    def succeed_at_much(self, numbers: list[int]) -> None:
        self.succeed(numbers, ())

    @precondition(is_running)
    @rule(number=picks, error_type=st.sampled_from(ErrorType), jitter=st.sampled_from((0.0, 0.9)))
    def fail(self, number: int, error_type: ErrorType, jitter: float) -> None:
        work, node = self.pick(Phase.RUNNING, number)
        self.report(work, Failed(node, work.attempt, RunError(error_type, "no"), work.item, jitter=jitter))

    @precondition(is_running)
    @rule(number=picks, kind=st.integers(0, 7))
    def suspend(self, number: int, kind: int) -> None:
        work, node = self.pick(Phase.RUNNING, number)
        if not self.is_list(work):
            self.report(work, Suspended(node, work.attempt, self.wait(kind, work), work.item))

    def wait(self, kind: int, work: Work) -> Wait:
        later = self.execution.now + 15 * SECOND
        child = f"x.{work.node}.{work.item}.{work.attempt}"
        waits = (
            Timer(later), Approval("?"), EventWait("news"), SignalWait("ping"), ChildWait(child, "w"),
            BreakerWait("target", later), TypeWait("rare", later), RateLimitWait("shop", later, later, ("shop",)),
        )  # fmt: skip
        return waits[kind]

    @precondition(lambda self: bool(self.reports))
    @rule(number=picks)
    def repeat_a_report(self, number: int) -> None:
        """Late or twice, it decides nothing unless its attempt runs again under the same number."""
        report = self.reports[number % len(self.reports)]
        item = None if isinstance(report, Expanded) else report.item
        work = self.execution.work(report.node, item)
        if work is None or work.phase is not Phase.RUNNING or work.attempt != report.attempt:
            self.now = self.execution.now

            assert [event for event in self.tell(report) if getattr(event, "node", "") == report.node] == []

    # Workers

    @rule(is_orderly=st.booleans())
    def change_the_worker(self, is_orderly: bool) -> None:
        """A worker stops, or dies: the log is folded anew, and what ran is handed back or lost."""
        self.execution = self.fold()
        for work in self.works(Phase.RUNNING):
            signal = Returned if is_orderly else Lost
            self.tell(signal(self.plan.ids[work.node], work.attempt, work.item))

    # Answers and people

    @precondition(is_waiting)
    @rule(number=picks, is_good=st.booleans(), state=st.sampled_from(ENDS))
    def answer(self, number: int, is_good: bool, state: ExecutionState) -> None:
        work, node = self.pick(Phase.WAITING, number)
        match work.wait:
            case Approval():
                self.tell(Decide(node, is_good, "ann", item=work.item))
            case EventWait():
                self.tell(Matched(node, work.attempt, output_of((node, work.item, work.attempt)), work.item))
            case BreakerWait() | TypeWait() | RateLimitWait():
                self.tell(Released(node, work.attempt, work.item))
            case ChildWait():
                self.tell(ChildEnded(node, work.attempt, state, "child", item=work.item))

    @rule(verb=st.sampled_from(VERBS))
    def use_a_verb(self, verb: Signal) -> None:
        self.ask(verb)

    @precondition(lambda self: len(self.log) > 15)
    @rule()
    def cancel(self) -> None:
        self.ask(Cancel("ann"))

    @precondition(lambda self: self.told < 6)
    @rule(count=st.integers(1, 2))
    def tell_signals(self, count: int) -> None:
        for _ in range(count):
            self.told += 1
            self.ask(Tell("ping", f"told {self.told}"))

    @precondition(lambda self: bool(self.execution.running))
    @rule(number=picks, item=st.sampled_from((None, 0, 1, 2)))
    def give_up(self, number: int, item: int | None) -> None:
        self.ask(GiveUp(self.plan.ids[number % len(self.plan)], "ann", item))

    @precondition(lambda self: bool(self.works(Phase.ENDED)))
    @rule(number=picks, kind=st.integers(0, 2))
    def reopen(self, number: int, kind: int) -> None:
        work, node = self.pick(Phase.ENDED, number)
        item, attempt = work.item, work.attempt
        requests = (
            Requeue(node, "ann", item, {"read": "other"}),
            Fix(node, "ann", "fixed", item=item),
            ChildReopened(node, attempt, "ann", item),
        )
        self.ask(requests[kind])

    # What holds after each step

    @invariant()
    def the_counters_are_right(self) -> None:
        x = self.execution
        works = list(x.active_works())

        assert x.running == sum(work.phase is Phase.RUNNING for work in works)
        assert x.ready_count == sum(work.phase is Phase.READY for work in works) or x.is_ended
        assert len(x.waiting) == sum(work.phase is Phase.WAITING for work in works)
        assert x.seq == len(self.log)

    @invariant()
    def the_log_says_the_same(self) -> None:
        assert differences(snapshot(self.execution), snapshot(self.fold())) == []

    @invariant()
    def someone_will_see_to_it(self) -> None:
        """What is not over runs, waits for someone, wakes by itself, or asks for a slot."""
        x = self.execution
        is_paused = x.state is ExecutionState.PAUSED

        assert x.is_ended or is_paused or x.running or x.waiting or x.needs_slot or x.wake_at is not None

    def teardown(self) -> None:
        if hasattr(self, "log"):
            assert list(self.violations()) == []

    def violations(self) -> Iterator[str]:
        history = History(self.plan, self.log, effects=self.effects, is_quiescent=False)
        yield from map(str, check(history))
        yield from broken_laws(self.plan, self.log)


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

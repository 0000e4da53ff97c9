"""The beaten way leads where the rules lead, and an execution that meets something else leaves it."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.core.commands import Command
from ropewalk.core.definition import Definition
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import InvalidTransition
from ropewalk.core.events import DeadlinePassed, Event, ExecutionAccepted, ExecutionFailed, NodesStarted
from ropewalk.core.execution import Execution, trail
from ropewalk.core.execution.work import Phase
from ropewalk.core.plan import Plan
from ropewalk.core.signals import Cancel, Due, Pause, Resume, Retry, Signal, Start, Tell
from ropewalk.core.state import ExecutionState, NodeState
from tests.core.executions import NOON, WRONG, bad, names, ok, runs, states, workflow
from tests.simulator.snapshot import differences, snapshot
from tests.simulator.workflows import document

DIAMOND = ("a b c d e", "a->b", "a->c", "a->d", "b->e", "c->e", "d->e")
KINDS = ("task", "branch")
ACCEPTED = ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash", input={"items": [1, 2]})
Turn = tuple[list[Signal], int, int | None]
"""What is told together, when, and how many hands there are."""


def on_the_way(plan: Plan) -> Execution:
    execution = Execution.on_the_beaten_way(plan)
    execution.apply([ACCEPTED])
    return execution


def beaten(plan: Plan, *turns: list[Signal]) -> Plan:
    """The same plan after so many have gone this way that the next can go all of it."""
    for _ in range(len(turns) + 2):
        execution = on_the_way(plan)
        for signals in ([Start()], *turns):
            execution.handle_all(signals, NOON)
    return plan


def gone(plan: Plan, *turns: list[Signal]) -> Execution:
    """One that goes this way; what it asks for is taken."""
    execution = on_the_way(plan)
    for signals in ([Start()], *turns):
        execution.handle_all(signals, NOON)
        execution.take_commands()
    return execution


# The same as by the rules


class Story:
    """What happens to an execution that goes by the rules, turn by turn."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self.plan = Plan(Definition(document(self._chance, KINDS, largest=6, smallest=1)))
        self.turns: list[Turn] = []
        self.told: list[tuple[list[Event], list[Command]]] = []
        self.execution = Execution(self.plan)
        self.execution.apply([ACCEPTED])
        self._now = NOON
        self._tell([Start()])
        for _ in range(self._chance.randrange(12)):
            self._go_on()

    def _go_on(self) -> None:
        self._now += self._chance.choice((0, 0, 1, SECOND))
        if self._chance.random() < 0.95:
            self._tell(self._reports())
        else:
            self._tell([self._chance.choice((Due(), Pause("ann"), Resume("ann"), Tell("x"), ok("n0"), Cancel("ann")))])

    def _reports(self) -> list[Signal]:
        running = [work for work in self.execution.active_works() if work.phase is Phase.RUNNING]
        chosen = self._chance.sample(running, self._chance.randint(min(1, len(running)), len(running)))
        return [self._report(self.plan.ids[work.node], work.node, work.attempt) for work in chosen]

    def _report(self, node: str, index: int, attempt: int) -> Signal:
        if self._chance.random() < 0.05:
            return bad(node, attempt=attempt)
        ports = [port for port in self.plan.port_names[index] if port != "error" and self._chance.random() < 0.5]
        return ok(node, self._chance.randrange(3), *ports, attempt=attempt)

    def _tell(self, signals: list[Signal]) -> None:
        room = self._chance.choice((None, None, None, None, None, None, 5, 1))
        self.turns.append((signals, self._now, room))
        self.told.append(tell(self.execution, self.turns[-1]))


def tell(execution: Execution, turn: Turn) -> Any:
    signals, now, execution.room = turn
    try:
        events: Any = execution.handle_all(signals, now)
    except InvalidTransition as refusal:
        events = str(refusal)
    return events, execution.take_commands()


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32))
def test_an_execution_on_the_beaten_way_comes_where_the_rules_lead(seed: int):
    story = Story(seed)
    for _ in range(len(story.turns) + 2):
        execution = on_the_way(story.plan)

        assert [tell(execution, turn) for turn in story.turns] == story.told
        assert differences(snapshot(execution), snapshot(story.execution)) == []


def test_the_stories_are_told_on_the_way_and_off_it():
    taken = {"on": 0, "off": 0}
    for seed in range(200):
        story = Story(seed)
        for _ in range(len(story.turns) + 2):
            execution = on_the_way(story.plan)
            for turn in story.turns:
                tell(execution, turn)
                taken["off" if execution.place is None else "on"] += 1

    assert min(taken.values()) > 1_000


# Executions that come after others


def test_the_way_others_have_gone_is_gone_to_the_end():
    turns = ([ok("a", 1)], [ok("c", 3), ok("b", 2), ok("d", 4)], [ok("e", 5)])
    execution = gone(beaten(workflow(*DIAMOND), *turns), *turns)

    assert execution.place is not None
    assert execution.state is ExecutionState.SUCCESS
    assert execution.outputs == {0: 1, 1: 2, 2: 3, 3: 4, 4: 5}
    assert set(states(execution).values()) == {NodeState.SUCCESS}


def test_each_keeps_its_own_outputs():
    plan = beaten(workflow("a b", "a->b", output="{{ nodes.a.output }}"), [ok("a", 1)], [ok("b")])
    first, second = on_the_way(plan), on_the_way(plan)
    for signals, execution in (([Start()], first), ([Start()], second), ([ok("a", 1)], first), ([ok("a", 2)], second)):
        execution.handle_all(signals, NOON)

    ends = [execution.handle(ok("b"), NOON)[-1] for execution in (first, second)]

    assert [end.output for end in ends] == [1, 2]  # type: ignore[union-attr]  # both have succeeded


def test_another_order_of_the_same_reports_is_another_way():
    plan = beaten(workflow("a b c", "a->c"), [ok("a"), ok("b")])
    execution = gone(plan)

    assert execution.handle_all([ok("b"), ok("a")], NOON)[0].node == "b"  # type: ignore[union-attr]  # a success
    assert execution.place is None


def test_a_port_that_was_not_taken_before_leads_off_the_way():
    plan = beaten(workflow("a b c", "a->b:yes", "a->c:no"), [ok("a", None, "yes")])
    execution = gone(plan, [ok("a", None, "no")])

    assert states(execution)["b"] is NodeState.SKIPPED
    assert states(execution)["c"] is NodeState.RUNNING


@pytest.mark.parametrize("report", [ok("b"), ok("a", attempt=2), ok("a", item=1), bad("a", WRONG)])
def test_what_is_no_success_of_what_runs_is_left_to_the_rules(report: Signal):
    plan = beaten(workflow("a b", "a->b"), [ok("a")])
    execution, other = gone(plan), Execution(plan)
    other.apply([ACCEPTED])
    other.handle(Start(), NOON)

    assert execution.handle(report, NOON) == other.handle(report, NOON)
    assert differences(snapshot(execution), snapshot(other)) == []


def test_a_report_that_comes_twice_is_not_remembered_as_one():
    plan = beaten(workflow("a b", "a->b"), [ok("a"), ok("a")])
    execution = gone(plan)

    assert names(execution.handle_all([ok("a"), ok("a")], NOON)) == ["NodeSucceeded", "NodesStarted"]


def test_a_start_that_comes_twice_is_not_remembered_as_one():
    plan = beaten(workflow("a b", "a->b"), [Start()], [ok("a")])
    execution = gone(plan)

    assert execution.handle(Start(), NOON) == []


# What keeps one from it


def test_too_few_hands_lead_off_the_way():
    plan = beaten(workflow(*DIAMOND), [ok("a")])
    execution = gone(plan)
    execution.room = 2

    events = execution.handle(ok("a"), NOON)

    assert [event.nodes for event in events if isinstance(event, NodesStarted)] == [("b", "c")]
    assert execution.has_more


def test_what_was_decided_with_too_few_hands_is_not_remembered():
    plan = workflow(*DIAMOND)
    for _ in range(3):
        short = gone(plan)
        short.room = 1
        short.handle(ok("a"), NOON)
    execution = gone(plan)
    execution.handle(ok("a"), NOON)

    assert runs(execution) == ["b", "c", "d"]


def test_a_time_limit_holds_on_the_way():
    plan = beaten(workflow("a b", "a->b", timeout="10s"), [ok("a")])
    execution = gone(plan)
    assert execution.wake_at == NOON + 10 * SECOND

    events = execution.handle(ok("a"), NOON + 11 * SECOND)

    assert DeadlinePassed in {type(event) for event in events}


def test_an_output_that_cannot_be_told_fails_only_its_own_execution():
    plan = workflow("a", output="{{ 1 / nodes.a.output }}")
    beaten(plan, [ok("a", 1)])
    unlucky, lucky = gone(plan, [ok("a", 0)]), gone(plan, [ok("a", 2)])

    assert (unlucky.state, lucky.state) == (ExecutionState.FAILED, ExecutionState.SUCCESS)


def test_one_that_failed_at_the_end_of_the_way_can_be_retried():
    plan = beaten(workflow("a", output="{{ 1 / nodes.a.output }}"), [ok("a", 1)])
    execution = gone(plan, [ok("a", 0)])
    execution.handle(Retry("ann"), NOON)

    events = execution.handle(Start(), NOON)

    assert isinstance(events[-1], ExecutionFailed)


def test_a_late_report_after_the_end_changes_nothing():
    plan = beaten(workflow("a"), [ok("a")])
    execution = gone(plan, [ok("a")])

    assert execution.handle(ok("a"), NOON) == []
    assert execution.state is ExecutionState.SUCCESS


def test_a_paused_execution_leaves_the_way_and_goes_on():
    plan = beaten(workflow("a b", "a->b"), [ok("a")], [ok("b")])
    execution = gone(plan)
    for signal in (Pause("ann"), ok("a"), Resume("ann"), Start(), ok("b")):
        execution.handle(signal, NOON)

    assert execution.state is ExecutionState.SUCCESS


def test_what_is_outstanding_on_the_way_is_what_runs():
    execution = gone(beaten(workflow(*DIAMOND), [ok("a")]), [ok("a")])

    assert execution.place is not None
    assert [command.node for command in execution.outstanding()] == ["b", "c", "d"]  # type: ignore[union-attr]  # runs


# Where there is none


def test_a_map_has_no_beaten_way():
    plan = workflow([{"id": "m", "forEach": "{{ input.items }}"}])

    assert on_the_way(plan).place is None


def test_a_large_graph_has_no_beaten_way():
    plan = workflow(" ".join(f"n{place}" for place in range(trail.MOST_NODES + 1)))

    assert on_the_way(plan).place is None


def test_only_so_many_places_are_remembered():
    width = 12
    plan = workflow(" ".join(f"n{place}" for place in range(width)))
    for seed in range(trail.MOST_REMEMBERED // width):
        order = Random(seed).sample(range(width), width)
        execution = gone(plan, *([ok(f"n{place}")] for place in order))
        assert execution.state is ExecutionState.SUCCESS

    assert plan.trail is not None
    assert plan.trail.room == 0

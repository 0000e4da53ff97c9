"""Nodes that are repeated, round by round: SPEC §2."""

from typing import Any

import pytest

from ropewalk.core.definition import Definition, parse_definition
from ropewalk.core.duration import MINUTE, SECOND
from ropewalk.core.errors import InvalidDefinition, InvalidTransition
from ropewalk.core.events import (
    RULES,
    Blob,
    ExecutionAccepted,
    NodeFailed,
    NodesCarriedOver,
    NodeSucceeded,
    RoundEnded,
    RunFailed,
    SlotReleased,
)
from ropewalk.core.execution import Execution
from ropewalk.core.execution.view import inputs_of, scope
from ropewalk.core.plan import Plan, compile_plan
from ropewalk.core.rerun import carry_over
from ropewalk.core.rows import rows
from ropewalk.core.signals import (
    Cancel,
    ChildEnded,
    Due,
    Fix,
    GiveUp,
    Lost,
    Pause,
    Requeue,
    Resume,
    Retry,
    Signal,
    Start,
    Succeeded,
    Suspended,
    Tell,
)
from ropewalk.core.state import ExecutionState, NodeState
from ropewalk.core.waits import Approval, ChildWait, SignalWait
from tests.core.executions import NOON, WRONG, accepted, bad, names, ok, refolded, runs, states, tell
from tests.core.node_types import NODE_TYPES

THRICE = {"until": "{{ index == 2 }}"}


def workflow(repeat: dict[str, Any], *others: str, edges: tuple[tuple[str, ...], ...] = (), **fields: Any) -> Plan:
    """A node `a` that is repeated so, and other nodes behind it."""
    node = {"id": "a", "type": "noop", "repeat": repeat, **fields}
    listed = [dict(zip(("from", "to", "on"), ends, strict=False)) for ends in edges]
    nodes = [node, *({"id": each, "type": "noop"} for each in others)]
    return compile_plan(Definition({"name": "test", "nodes": nodes, "edges": listed}))


def after(plan: Plan, *signals: Signal, at: int = NOON, **fields: Any) -> Execution:
    execution = accepted(plan, rules=RULES, **fields)
    tell(execution, Start(), *signals, at=at)
    return execution


def test_a_node_is_run_again_until_its_condition_is_true():
    execution = accepted(workflow(THRICE, "b", edges=(("a", "b"),)), rules=RULES)

    events = tell(execution, Start(), ok("a", "x"), ok("a", "y", attempt=2), ok("a", "z", attempt=3))

    assert names(events) == [
        "ExecutionStarted", "NodesStarted", "RoundEnded", "RunStarted", "RoundEnded", "RunStarted", "NodeSucceeded",
        "NodesStarted",
    ]  # fmt: skip
    assert runs(execution) == ["a", "a#2", "a#3", "b"]
    assert execution.outputs == {0: "z"}


def test_while_is_the_other_way_round():
    execution = after(workflow({"while": "{{ last < 3 }}"}), ok("a", 1), ok("a", 2, attempt=2), ok("a", 3, attempt=3))

    assert (execution.state, execution.outputs) == (ExecutionState.SUCCESS, {0: 3})


def test_a_node_runs_once_if_its_condition_is_met_at_once():
    events = tell(after(workflow({"while": "{{ false }}"})), ok("a"))

    assert names(events) == ["NodeSucceeded", "ExecutionSucceeded"]


def test_each_round_is_given_what_the_last_gave_and_its_number():
    given = {"cursor": "{{ last.next }}", "page": "{{ index }}"}
    execution = after(workflow({"until": "{{ last.next == null }}"}, **{"with": given}))

    first = inputs_of(execution, execution.works[0])
    tell(execution, ok("a", {"next": "p2"}))

    assert first == {"cursor": None, "page": 0}
    assert inputs_of(execution, execution.works[0]) == {"cursor": "p2", "page": 1}


def test_how_many_rounds_there_were_is_known_to_expressions():
    execution = after(workflow(THRICE), ok("a"), ok("a", attempt=2))

    before = scope(execution).nodes["a"]["rounds"]
    tell(execution, ok("a", attempt=3))

    assert (before, scope(execution).nodes["a"]["rounds"]) == (2, 3)


def test_a_round_waits_for_its_delay_and_gives_the_slot_back_if_that_is_long():
    execution = after(workflow({**THRICE, "delay": "5m"}))

    events = tell(execution, ok("a"))

    assert [event.next_at - NOON for event in events if isinstance(event, RoundEnded)] == [5 * MINUTE]
    assert isinstance(events[-1], SlotReleased)
    assert execution.is_parked
    assert execution.wake_at == NOON + 5 * MINUTE
    assert names(tell(execution, Due(), Start(), at=NOON + 5 * MINUTE)) == ["SlotTaken", "RunStarted"]


def test_a_node_that_is_repeated_too_often_fails():
    execution = after(workflow({"until": "{{ false }}", "max": 2}), ok("a"))

    (event, _) = tell(execution, ok("a", attempt=2))

    assert isinstance(event, NodeFailed)
    assert event.error.message == "repeat: `until` is not true after 2 rounds, which are the most"
    assert execution.state is ExecutionState.FAILED


def test_it_takes_the_port_exhausted_if_an_edge_names_that():
    plan = workflow({"while": "{{ true }}", "max": 2}, "b", "c", edges=(("a", "b", "exhausted"), ("a", "c", "error")))
    execution = after(plan, ok("a", 1), ok("a", 2, attempt=2))

    assert states(execution) == {"a": NodeState.SUCCESS, "b": NodeState.RUNNING, "c": NodeState.SKIPPED}
    assert execution.outputs == {0: 2}


def test_a_hundred_rounds_are_the_most_if_nothing_is_said():
    execution = after(workflow({"until": "{{ false }}"}), *(ok("a", attempt=number) for number in range(1, 101)))

    assert execution.errors[0].message.endswith("after 100 rounds, which are the most")


@pytest.mark.parametrize("condition", ["{{ last + 1 > index }}", "{{ length(map(input, x => x + 1)) > index }}"])
def test_a_condition_that_cannot_be_evaluated_fails_the_node(condition: str):
    execution = after(workflow({"until": condition}), ok("a"), input=[1] * 5_000)

    assert execution.errors[0].message.startswith("repeat.until: ")


def test_a_condition_that_looks_at_a_large_value_needs_it_at_hand():
    plan, blob = workflow({"until": "{{ last.done }}"}), Blob("h", 1_000_000)
    with_it, without = after(plan), after(plan)
    with_it.blobs["h"] = {"done": True}

    for execution in (with_it, without):
        tell(execution, Succeeded("a", 1, None, blob=blob))

    assert (states(with_it), with_it.blobs) == ({"a": NodeState.SUCCESS}, {})
    assert without.errors[0].message.startswith("repeat.until: takes more than")


def test_each_round_has_its_own_attempts():
    retry = {"maxAttempts": 2, "delay": 0, "jitter": 0}
    execution = after(workflow(THRICE, retry=retry))

    events = tell(execution, bad("a"), ok("a", attempt=2), bad("a", attempt=3), ok("a", attempt=4), bad("a", attempt=5),
                  Due(), bad("a", attempt=6), at=NOON + SECOND)  # fmt: skip

    assert [event.attempt for event in events if isinstance(event, RunFailed)] == [1, 3, 5]
    assert [event.attempt for event in events if isinstance(event, NodeFailed)] == [6]


def test_a_lost_attempt_repeats_its_round():
    execution = after(workflow(THRICE), ok("a", "x"), Lost("a", 2))

    assert (execution.works[0].round, execution.works[0].last, execution.works[0].attempt) == (1, "x", 3)


def test_a_fold_goes_on_with_the_round_it_was_in():
    execution = accepted(workflow({**THRICE, "delay": "1h"}), rules=RULES)
    log = [execution.accepted, *tell(execution, Start(), ok("a", "x"))]

    folded = refolded(execution, log)

    assert (folded.works[0].round, folded.works[0].last, folded.wake_at) == (1, "x", execution.wake_at)
    assert names(tell(folded, Due(), Start(), at=folded.wake_at))[-1] == "RunStarted"


def test_a_retry_goes_on_with_the_round_that_failed():
    execution = after(workflow(THRICE, retry={"maxAttempts": 1}), ok("a", "x"), bad("a", WRONG, 2))

    tell(execution, Retry("ann"), Start())

    assert (execution.works[0].round, execution.works[0].last, execution.works[0].attempt) == (1, "x", 3)


def test_a_requeued_round_is_given_its_overrides_and_the_next_is_not():
    given = {"page": "{{ index }}"}
    execution = after(workflow(THRICE, retry={"maxAttempts": 1}, **{"with": given}), ok("a"), bad("a", WRONG, 2))

    tell(execution, Requeue("a", "ann", None, {"page": 9}), Start())
    requeued = inputs_of(execution, execution.works[0])
    tell(execution, ok("a", attempt=3))

    assert (requeued, inputs_of(execution, execution.works[0])) == ({"page": 9}, {"page": 2})


def test_a_fixed_round_ends_the_node():
    execution = after(workflow(THRICE, retry={"maxAttempts": 1}), ok("a"), bad("a", WRONG, 2))

    tell(execution, Fix("a", "ann", "mine"), Start())

    assert (execution.state, execution.outputs) == (ExecutionState.SUCCESS, {0: "mine"})


def test_no_round_begins_in_a_pause():
    execution = after(workflow(THRICE), Pause("ann"))

    paused = tell(execution, ok("a"))
    resumed = tell(execution, Resume("ann"), Start())

    assert names(paused) == ["RoundEnded", "SlotReleased"]
    assert names(resumed)[-1] == "RunStarted"


def test_no_round_begins_after_a_cancel():
    execution = after(workflow(THRICE), Cancel("ann"))

    events = tell(execution, ok("a"))

    assert names(events) == ["RoundEnded", "ExecutionCancelled"]
    assert events[0].next_at is None
    assert states(execution) == {"a": NodeState.CANCELLED}


def test_a_node_between_two_rounds_cannot_be_given_up():
    execution = after(workflow({**THRICE, "delay": "1h"}), ok("a"))

    with pytest.raises(InvalidTransition, match="no run of it is under way"):
        tell(execution, GiveUp("a", "ann"))


def test_a_child_is_started_for_each_round():
    plan = workflow({"until": "{{ last == 2 }}"})
    execution = after(plan, Suspended("a", 1, ChildWait("c1", "w")),
                      ChildEnded("a", 1, ExecutionState.SUCCESS, 1), Start())  # fmt: skip

    tell(execution, Suspended("a", 2, ChildWait("c2", "w")), ChildEnded("a", 2, ExecutionState.SUCCESS, 2))

    assert (execution.state, execution.outputs) == (ExecutionState.SUCCESS, {0: 2})


def test_each_round_of_a_wait_uses_a_signal_of_its_own():
    execution = after(workflow({"until": "{{ last == 'stop' }}"}), Tell("go", "on"), Tell("go", "stop"))

    tell(execution, Suspended("a", 1, SignalWait("go")), Suspended("a", 2, SignalWait("go")))

    assert (execution.outputs, execution.signals) == ({0: "stop"}, {})


def test_a_wait_that_expires_ends_the_node():
    plan = workflow(THRICE, "b", edges=(("a", "b", "expired"),), timeout="1m")
    execution = after(plan, Suspended("a", 1, Approval("?")))

    tell(execution, Due(), Start(), at=NOON + MINUTE)

    assert states(execution) == {"a": NodeState.SUCCESS, "b": NodeState.RUNNING}


def test_a_repeated_node_keeps_its_place_between_rounds():
    node = {"id": "a", "type": "noop", "repeat": {**THRICE, "delay": "1s"}}
    document = {"name": "t", "nodes": [node, {"id": "b", "type": "noop"}], "maxParallel": 1}
    execution = after(compile_plan(Definition(document)))

    tell(execution, ok("a"))

    assert states(execution)["b"] is NodeState.READY
    assert names(tell(execution, Due(), at=NOON + SECOND)) == ["RunStarted"]


def test_an_execution_does_not_end_where_another_of_the_same_plan_did():
    plan = workflow({"while": "{{ input[index] != null }}"})
    ends = {}
    # Each that comes to a place where none has been remembers one step more.
    for items in ([], [], [], [1]):
        execution = Execution.on_the_beaten_way(plan)
        accepted = ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash", input=items, rules=RULES)
        execution.apply([accepted])
        ends[len(items)] = names(tell(execution, Start(), ok("a")))[-1]

    assert ends == {0: "ExecutionSucceeded", 1: "RunStarted"}


def test_rows_tell_every_round_as_a_run():
    execution = accepted(workflow(THRICE), rules=RULES)
    log = [execution.accepted, *tell(execution, Start(), ok("a"), bad("a", attempt=2), Due(), at=NOON + SECOND)]
    log += tell(execution, Due(), ok("a", attempt=3), ok("a", attempt=4), at=NOON + 9 * SECOND)

    made = rows(execution.plan, log)

    assert [(run.attempt, str(run.state)) for run in made.runs] == [
        (1, "SUCCESS"), (2, "FAILED"), (3, "SUCCESS"), (4, "SUCCESS"),
    ]  # fmt: skip
    assert (made.nodes[0].attempts, made.nodes[0].rounds) == (4, 3)


def test_a_rerun_takes_over_how_many_rounds_there_were():
    plan = workflow(THRICE, "b", edges=(("a", "b"),))
    source = after(plan, ok("a"), ok("a", attempt=2), ok("a", "z", attempt=3), ok("b"))

    carried = carry_over(source, "b", plan, NOON)
    rerun = accepted(plan, rules=RULES)
    rerun.apply([carried])

    assert isinstance(carried, NodesCarriedOver)
    assert (carried.rounds, scope(rerun).nodes["a"]["rounds"]) == ({"a": 3}, 3)
    assert rows(plan, [rerun.accepted, carried]).nodes[0].rounds == 3


def test_a_thousand_rounds_cost_a_thousand_times_one():
    execution = after(workflow({"until": "{{ last == 1000 }}", "max": 2_000}))

    events = [event for number in range(1, 1_001) for event in tell(execution, ok("a", number, attempt=number))]

    assert len(events) == 2 * 999 + 2
    assert isinstance(events[-2], NodeSucceeded)
    assert (len(execution.timers), execution.rounds) == (0, {0: 999})


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        ({"repeat": {}}, "nodes[0].repeat: needs exactly one of the fields until, while"),
        ({"repeat": {"until": "{{ 1 }}", "while": "{{ 1 }}"}}, "nodes[0].repeat: needs exactly one of the fields"),
        ({"repeat": {"until": "last.done"}}, "nodes[0].repeat.until: must be one {{ expression }}"),
        ({"repeat": {"until": "{{ item }}"}}, "nodes[0].repeat.until: cannot use item here"),
        ({"repeat": {"until": "{{ now }}"}}, "nodes[0].repeat.until: cannot use now here"),
        (
            {"repeat": {"until": "{{ nodes.a.output }}"}},
            "nodes[0].repeat.until: refers to a, which does not come before",
        ),
        ({"repeat": {**THRICE, "max": 0}}, "nodes[0].repeat.max: must be an integer from 1 to 100000"),
        ({"repeat": {**THRICE, "delay": "x"}}, "nodes[0].repeat.delay: "),
        ({"repeat": THRICE, "forEach": [1]}, "nodes[0].repeat: cannot be together with forEach on one node"),
        ({"repeat": THRICE, "cache": {"ttl": "1h"}}, "nodes[0].repeat: cannot be together with cache on one node"),
        ({"repeat": 3}, "nodes[0].repeat: must be an object"),
        ({"type": "set", "with": {"values": {"x": "{{ last }}"}}}, "nodes[0].with.values.x: cannot use last here"),
        ({"type": "set", "with": {"values": {"x": "{{ index }}"}}}, "nodes[0].with.values.x: cannot use index here"),
    ],
)
def test_a_repetition_that_makes_no_sense_is_refused(node: dict[str, Any], problem: str):
    with pytest.raises(InvalidDefinition) as refused:
        parse_definition({"name": "test", "nodes": [{"id": "a", "type": "noop", **node}]}, NODE_TYPES)

    assert any(str(told).startswith(problem) for told in refused.value.problems), str(refused.value)


def test_the_port_exhausted_is_only_of_nodes_that_are_repeated():
    nodes = [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop"}]
    edges = [{"from": "a", "to": "b", "on": "exhausted"}]

    with pytest.raises(InvalidDefinition, match="noop has no port 'exhausted'"):
        parse_definition({"name": "test", "nodes": nodes, "edges": edges}, NODE_TYPES)
    parse_definition({"name": "test", "nodes": [{**nodes[0], "repeat": THRICE}, nodes[1]], "edges": edges}, NODE_TYPES)

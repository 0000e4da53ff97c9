"""Errors by kind: which failures are tried again, and which error edge one takes: SPEC §2."""

from time import perf_counter
from typing import Any

import pytest

from ropewalk.core.definition import Definition, parse_definition
from ropewalk.core.definition.difference import difference
from ropewalk.core.errors import ErrorType, InvalidDefinition, RunError
from ropewalk.core.events import RULES, Blob, ItemsGivenUp, NodeFailed, RunFailed
from ropewalk.core.execution import Execution
from ropewalk.core.plan import Plan, compile_plan
from ropewalk.core.rows import rows
from ropewalk.core.signals import ChildEnded, Due, Expanded, Failed, GiveUp, Lost, Start, Succeeded, Suspended
from ropewalk.core.state import ExecutionState, GaveUp, NodeState
from ropewalk.core.waits import ChildWait
from tests.core.executions import BOOM, NOON, SLOW, WRONG, accepted, bad, each, names, ok, once, refolded, states, tell
from tests.core.node_types import NODE_TYPES

GONE = RunError(ErrorType.PERMANENT, "gone", "the beginning", status=404, body="no such order")
BUSY = RunError(ErrorType.TRANSIENT, "busy", status=503)
IS_GONE, IS_SLOW = "{{ error.status == 404 }}", "{{ error.type == 'TIMEOUT' }}"


def workflow(nodes: list[dict[str, Any]], *edges: tuple[str, ...], **fields: Any) -> Plan:
    """Edges as `(from, to)`, or as error edges with what they ask: `(from, to, when)`; "" asks nothing."""
    listed = [
        {"from": ends[0], "to": ends[1], **({"on": "error"} if ends[2:] else {}), **_when(ends[2:])} for ends in edges
    ]
    document = {"name": "test", "nodes": [{"type": "noop", **node} for node in nodes], "edges": listed, **fields}
    return compile_plan(Definition(document))


def _when(asked: tuple[str, ...]) -> dict[str, str]:
    return {"when": asked[0]} if asked and asked[0] else {}


WAYS = workflow(
    [once("a"), {"id": "gone"}, {"id": "slow"}, {"id": "rest"}, {"id": "fine"}],
    ("a", "gone", IS_GONE), ("a", "slow", IS_SLOW), ("a", "rest", ""), ("a", "fine"),
)  # fmt: skip


def failed(plan: Plan, error: RunError, **fields: Any) -> Execution:
    """An execution whose first node has failed so."""
    execution = accepted(plan, rules=RULES, **fields)
    tell(execution, Start(), Failed("a", 1, error))
    return execution


def failure(execution: Execution, error: RunError) -> NodeFailed:
    (found,) = [event for event in tell(execution, Start(), Failed("a", 1, error)) if isinstance(event, NodeFailed)]
    return found


def taken(execution: Execution) -> list[str]:
    return [node for node, state in states(execution).items() if state is NodeState.RUNNING]


@pytest.mark.parametrize(("error", "way"), [(GONE, "gone"), (SLOW, "slow"), (BOOM, "rest"), (WRONG, "rest")])
def test_a_failure_takes_the_first_edge_that_fits_and_no_other(error: RunError, way: str):
    execution = failed(WAYS, error)

    assert taken(execution) == [way]
    assert [node for node, state in states(execution).items() if state is NodeState.SKIPPED] == [
        each for each in ("gone", "slow", "rest", "fine") if each != way
    ]


def test_edges_are_tried_in_the_order_of_the_document():
    both = workflow([once("a"), {"id": "b"}, {"id": "c"}], ("a", "b", "{{ error.status > 400 }}"), ("a", "c", IS_GONE))

    assert taken(failed(both, GONE)) == ["b"]


def test_edges_that_ask_the_same_are_taken_together():
    plan = workflow(
        [once("a"), {"id": "b"}, {"id": "c"}, {"id": "d"}, {"id": "e"}],
        ("a", "b", IS_GONE), ("a", "c", ""), ("a", "d", IS_GONE), ("a", "e", ""),
    )  # fmt: skip

    assert (taken(failed(plan, GONE)), taken(failed(plan, BOOM))) == (["b", "d"], ["c", "e"])


def test_an_edge_without_a_question_that_comes_first_is_always_taken():
    plan = workflow([once("a"), {"id": "b"}, {"id": "c"}], ("a", "b", ""), ("a", "c", IS_GONE))

    assert taken(failed(plan, GONE)) == ["b"]


def test_a_failure_that_no_edge_is_for_is_not_handled():
    plan = workflow([once("a"), {"id": "b"}], ("a", "b", IS_GONE))

    event = failure(accepted(plan, rules=RULES), BOOM)

    assert (event.handled, event.edge, event.gave_up, event.faults) == (False, None, GaveUp.MAX_RETRIES, ())
    assert states(failed(plan, BOOM)) == {"a": NodeState.FAILED, "b": NodeState.BLOCKED}


def test_the_edge_taken_is_recorded_and_a_fold_asks_nothing_again():
    execution = accepted(WAYS, rules=RULES)
    log = [execution.accepted, *tell(execution, Start(), Failed("a", 1, SLOW))]

    folded = refolded(execution, log)
    projected = {row.node: row.state for row in rows(WAYS, log).nodes}

    assert next(event.edge for event in log if isinstance(event, NodeFailed)) == 1
    assert states(folded) == states(execution) == projected
    assert folded.steps == 0


def test_an_expression_that_cannot_be_evaluated_does_not_fit_and_is_told():
    plan = workflow([once("a"), {"id": "b"}, {"id": "c"}], ("a", "b", "{{ error.status + 1 == 5 }}"), ("a", "c", ""))

    event = failure(accepted(plan, rules=RULES), BOOM)

    assert (event.handled, event.edge) == (True, 1)
    assert event.faults == ("edges[0].when: at 16: cannot add null and a number; give null a default with ??",)


def test_an_expression_never_holds_the_loop():
    long = "{{ length(map(map(input, x => x * 2), x => x + 1)) > "
    edges = [("a", "b", f"{long}{place} }}}}") for place in range(32)]
    plan = workflow([once("a"), {"id": "b"}], *edges)

    begun = perf_counter()
    event = failure(accepted(plan, rules=RULES, input=[1] * 5_000), GONE)

    assert perf_counter() - begun < 0.1
    assert (event.handled, len(event.faults)) == (False, 32)
    assert "takes more than 2,000 steps" in event.faults[0]


def test_what_one_question_takes_too_long_for_another_may_still_answer():
    long = "{{ length(map(input, x => x * 2)) > error.attempts }}"
    plan = workflow([once("a"), {"id": "b"}, {"id": "c"}], ("a", "b", long), ("a", "c", IS_GONE))

    event = failure(accepted(plan, rules=RULES, input=[1] * 5_000), GONE)

    assert (event.edge, len(event.faults)) == (1, 1)


def test_an_expression_over_a_value_that_is_not_in_the_log_does_not_fit():
    plan = workflow(
        [{"id": "big"}, once("a"), {"id": "b"}], ("big", "a"), ("a", "b", "{{ nodes.big.output == error }}")
    )
    execution = accepted(plan, rules=RULES)

    tell(execution, Start(), Succeeded("big", 1, None, blob=Blob("h", 1_000_000)), Failed("a", 1, GONE))

    assert "values that are not in the log" in execution.errors[1].faults[0]


def test_a_question_sees_input_and_the_nodes_before():
    asks = "{{ input.lenient and nodes.first.output == 7 and error.message == 'gone' and error.body != null }}"
    plan = workflow([{"id": "first"}, once("a"), {"id": "b"}], ("first", "a"), ("a", "b", asks))
    execution = accepted(plan, rules=RULES, input={"lenient": True})

    tell(execution, Start(), ok("first", 7), Failed("a", 1, GONE))

    assert taken(execution) == ["b"]


def test_a_run_given_up_by_hand_takes_no_edge():
    execution = accepted(WAYS, rules=RULES)

    events = tell(execution, Start(), GiveUp("a", "ann"))

    assert [(event.handled, event.edge) for event in events if isinstance(event, NodeFailed)] == [(False, None)]


@pytest.mark.parametrize(("ended", "way"), [(ExecutionState.FAILED, "b"), (ExecutionState.CANCELLED, "c")])
def test_an_edge_may_ask_how_the_child_ended(ended: ExecutionState, way: str):
    plan = workflow([once("a"), {"id": "b"}, {"id": "c"}], ("a", "b", "{{ error.child == 'FAILED' }}"),
                    ("a", "c", "{{ error.child == 'CANCELLED' }}"))  # fmt: skip
    execution = accepted(plan, rules=RULES)

    tell(execution, Start(), Suspended("a", 1, ChildWait("c1", "w")), ChildEnded("a", 1, ended), Start())

    assert taken(execution) == [way]


# Maps


def mapped(*edges: tuple[str, ...], **fields: Any) -> Execution:
    plan = workflow([each("a", **fields), {"id": "b"}], *edges)
    execution = accepted(plan, rules=RULES, input=[1, 2])
    tell(execution, Start(), Expanded("a", 1, 2))
    return execution


def test_a_map_whose_failure_an_edge_takes_has_no_dead_letters():
    events = tell(mapped(("a", "b", IS_GONE)), bad("a", GONE, item=0), bad("a", BOOM, item=1))

    assert [event.items for event in events if isinstance(event, ItemsGivenUp)] == [()]
    assert [event.handled for event in events if isinstance(event, NodeFailed)] == [True]


def test_a_map_whose_failure_no_edge_takes_makes_a_dead_letter_of_each_item():
    events = tell(mapped(("a", "b", IS_SLOW)), bad("a", GONE, item=0), bad("a", BOOM, item=1))

    assert [event.items for event in events if isinstance(event, ItemsGivenUp)] == [(), (0, 1)]
    assert [event.handled for event in events if isinstance(event, NodeFailed)] == [False]


# Retries


def retried(error: RunError, child: ExecutionState | None = None, **retry: Any) -> str:
    """What becomes of a first attempt that fails so: "again" or "over"."""
    plan = workflow([{"id": "a", "retry": {"delay": 0, **retry}}])
    execution = accepted(plan, rules=RULES)
    wait = () if child is None else (Suspended("a", 1, ChildWait("c1", "w")), ChildEnded("a", 1, child))
    told = tell(execution, Start(), *wait) if wait else tell(execution, Start(), Failed("a", 1, error))
    return "again" if "RunFailed" in names(told) else "over"


@pytest.mark.parametrize(
    ("on", "error", "then"),
    [
        (["TIMEOUT"], SLOW, "again"),
        (["TIMEOUT"], BOOM, "over"),
        (["PERMANENT"], WRONG, "again"),
        (["TRANSIENT", "status:404"], GONE, "again"),
        (["TRANSIENT", "status:409"], GONE, "over"),
        (["TRANSIENT", "status:404"], WRONG, "over"),
        (["status:5xx"], BUSY, "again"),
        (["status:4xx"], BUSY, "over"),
        ([], BOOM, "over"),
        (["TRANSIENT", "TIMEOUT", "PERMANENT"], RunError(ErrorType.CIRCUIT_OPEN, "held"), "over"),
    ],
)
def test_retry_on_names_the_errors_that_are_tried_again(on: list[str], error: RunError, then: str):
    assert retried(error, on=on) == then


@pytest.mark.parametrize(
    ("retry", "error", "then"),
    [
        ({"when": IS_GONE}, GONE, "again"),
        ({"when": IS_GONE}, BOOM, "over"),
        ({"when": "{{ attempt < 2 }}"}, WRONG, "again"),
        ({"when": "{{ attempt > 1 }}"}, BOOM, "over"),
        ({"on": ["TRANSIENT"], "when": "{{ error.status == 503 }}"}, BUSY, "again"),
        ({"on": ["TRANSIENT"], "when": "{{ error.status == 503 }}"}, BOOM, "over"),
        ({"on": ["TIMEOUT"], "when": "{{ error.status == 503 }}"}, BUSY, "over"),
        ({"when": "{{ true }}"}, RunError(ErrorType.CIRCUIT_OPEN, "held"), "over"),
    ],
)
def test_retry_when_asks_about_the_error_and_the_attempt(retry: dict[str, Any], error: RunError, then: str):
    assert retried(error, **retry) == then


@pytest.mark.parametrize(
    ("retry", "child", "then"),
    [
        ({}, ExecutionState.FAILED, "again"),
        ({"on": ["TRANSIENT"]}, ExecutionState.FAILED, "over"),
        ({"on": ["PERMANENT"]}, ExecutionState.FAILED, "again"),
        ({"when": "{{ error.child == 'TIMEOUT' }}"}, ExecutionState.TIMEOUT, "again"),
        ({"when": "{{ error.child == 'TIMEOUT' }}"}, ExecutionState.FAILED, "over"),
        ({"when": "{{ true }}"}, ExecutionState.CANCELLED, "over"),
    ],
)
def test_a_failed_child_is_replaced_if_its_failure_is_named(retry: dict[str, Any], child: ExecutionState, then: str):
    assert retried(WRONG, child, **retry) == then


def test_a_named_error_that_goes_on_failing_gives_up_after_its_attempts():
    plan = workflow([{"id": "a", "retry": {"maxAttempts": 2, "delay": 0, "on": ["PERMANENT"]}}])
    execution = accepted(plan, rules=RULES)

    events = tell(execution, Start(), bad("a", WRONG), Due(), bad("a", WRONG, 2))

    assert [event.gave_up for event in events if isinstance(event, NodeFailed)] == [GaveUp.PERMANENT_ERROR]


def test_an_attempt_that_was_lost_is_repeated_whatever_retry_names():
    plan = workflow([{"id": "a", "retry": {"on": ["TIMEOUT"], "when": "{{ false }}"}}])
    execution = accepted(plan, rules=RULES)

    events = tell(execution, Start(), Lost("a", 1))

    assert [event.lost for event in events if isinstance(event, RunFailed)] == [True]


def test_a_retry_whose_question_cannot_be_evaluated_is_not_made_and_that_is_told():
    plan = workflow([{"id": "a", "retry": {"when": "{{ error.status + 1 > 0 }}"}}])

    event = failure(accepted(plan, rules=RULES), BOOM)

    assert [fault.partition(":")[0] for fault in event.faults] == ["retry.when"]


def test_an_item_is_asked_about_like_a_node():
    execution = mapped(("a", "b", ""), retry={"when": "{{ error.status + 1 > 0 }}", "delay": 0}, failureTolerance=1)

    events = tell(execution, bad("a", BOOM, item=0), bad("a", GONE, item=1))

    assert names(events)[:2] == ["ItemFailed", "RunFailed"]
    assert events[0].faults[0].startswith("retry.when: ")


# Documents


def problems(**edge: Any) -> list[str]:
    document = {
        "name": "test",
        "nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop"}],
        "edges": [{"from": "a", "to": "b", **edge}],
    }
    with pytest.raises(InvalidDefinition) as refused:
        parse_definition(document, NODE_TYPES)
    return [str(problem) for problem in refused.value.problems]


@pytest.mark.parametrize(
    ("edge", "problem"),
    [
        ({"when": IS_GONE}, "edges[0].when: has an effect only together with 'on', which is missing"),
        ({"on": "error", "when": 5}, "edges[0].when: must be text, not a number"),
        ({"on": "error", "when": "error.status == 4"}, "edges[0].when: must be one {{ expression }}, and nothing else"),
        ({"on": "error", "when": "{{ 1 }} {{"}, "edges[0].when: must be one {{ expression }}, and nothing else"),
        ({"on": "error", "when": "{{ error. }}"}, "edges[0].when: at 10: expected a name behind the dot"),
        ({"on": "error", "when": "{{ nodes.a.output }}"}, "edges[0].when: refers to a, which does not come before"),
        ({"on": "error", "when": "{{ nodes.x.output }}"}, "edges[0].when: there is no node 'x'"),
        ({"on": "error", "when": "{{ item }}"}, "edges[0].when: cannot use item here"),
        ({"on": "error", "when": "{{ attempt }}"}, "edges[0].when: cannot use attempt here"),
        ({"on": "error", "when": "{{ now }}"}, "edges[0].when: cannot use now here"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(edge: dict[str, Any], problem: str):
    assert any(told.startswith(problem) for told in problems(**edge)), problems(**edge)


def test_only_error_edges_ask():
    nodes = [{"id": "a", "type": "if", "with": {"condition": True}}, {"id": "b", "type": "noop"}]
    document = {"name": "test", "nodes": nodes, "edges": [{"from": "a", "to": "b", "on": "true", "when": IS_GONE}]}

    with pytest.raises(InvalidDefinition, match="only an edge with on: error has it"):
        parse_definition(document, NODE_TYPES)


def test_two_edges_between_the_same_nodes_may_ask_different_things():
    nodes = [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop"}]
    edges = [{"from": "a", "to": "b", "on": "error", "when": when} for when in (IS_GONE, IS_SLOW, IS_GONE)]

    with pytest.raises(InvalidDefinition) as refused:
        parse_definition({"name": "test", "nodes": nodes, "edges": edges}, NODE_TYPES)

    assert [str(problem) for problem in refused.value.problems] == ["edges[2]: is the same as edges[0]"]


def test_a_node_may_not_have_any_number_of_questions():
    nodes = [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop"}]
    edges = [{"from": "a", "to": "b", "on": "error", "when": f"{{{{ error.status == {n} }}}}"} for n in range(34)]

    with pytest.raises(InvalidDefinition) as refused:
        parse_definition({"name": "test", "nodes": nodes, "edges": edges}, NODE_TYPES)

    assert [str(each) for each in refused.value.problems] == [
        "edges[32].when: the edges of a node may have 32 different `when` at most"
    ]


@pytest.mark.parametrize(
    ("retry", "problem"),
    [
        ({"on": "TRANSIENT"}, "nodes[0].retry.on: must be a list, not text"),
        (
            {"on": ["CIRCUIT_OPEN"]},
            "nodes[0].retry.on[0]: 'CIRCUIT_OPEN' must be TRANSIENT, TIMEOUT, PERMANENT, or like",
        ),
        ({"on": ["status:600"]}, "nodes[0].retry.on[0]: 'status:600' must be"),
        ({"when": "{{ index }}"}, "nodes[0].retry.when: cannot use index here"),
        ({"when": "yes"}, "nodes[0].retry.when: must be one {{ expression }}, and nothing else"),
    ],
)
def test_a_retry_that_names_no_error_is_refused(retry: dict[str, Any], problem: str):
    with pytest.raises(InvalidDefinition) as refused:
        parse_definition({"name": "test", "nodes": [{"id": "a", "type": "noop", "retry": retry}]}, NODE_TYPES)

    assert str(refused.value).startswith(problem)


@pytest.mark.parametrize("field", ["with", "forEach", "output"])
def test_a_failure_is_known_only_where_it_is_asked_about(field: str):
    node: dict[str, Any] = {"id": "a", "type": "set"}
    document = {"name": "test", "nodes": [node], **({"output": "{{ error }}"} if field == "output" else {})}
    node |= {"with": {"values": {"x": "{{ attempt }}"}}} if field == "with" else {}
    node |= {"forEach": "{{ error }}"} if field == "forEach" else {}

    with pytest.raises(InvalidDefinition, match=r"cannot use (error|attempt) here: only `when`"):
        parse_definition(document, NODE_TYPES)


def test_an_edge_that_asks_something_else_is_another_edge():
    before, after = ({"name": "t", "edges": [{"from": "a", "to": "b", "on": "error", "when": when}]}
                     for when in (IS_GONE, IS_SLOW))  # fmt: skip

    found = difference(before, after)

    assert (len(found.edges_added), len(found.edges_removed)) == (1, 1)


def test_what_is_asked_changes_nothing_for_a_node_that_succeeds():
    execution = accepted(WAYS, rules=RULES)

    tell(execution, Start(), ok("a"))

    assert taken(execution) == ["fine"]
    assert execution.now == NOON

"""How an execution is closed: `compensate` undoes what was done, `finally` comes last."""

import pytest

from ropewalk.core.commands import NeedSlot, StopRun, WakeAt
from ropewalk.core.definition import NodeTypeInfo, parse_definition
from ropewalk.core.duration import HOUR, SECOND
from ropewalk.core.errors import InvalidDefinition, InvalidTransition
from ropewalk.core.events import ExecutionAccepted, ExecutionFailed, ExecutionTimedOut, OutcomeDecided
from ropewalk.core.execution import Execution
from ropewalk.core.execution.view import inputs_of
from ropewalk.core.reach import needs
from ropewalk.core.rerun import carry_over
from ropewalk.core.rows import rows
from ropewalk.core.signals import (
    Abandon,
    Cancel,
    ChildEnded,
    ChildReopened,
    Due,
    Expanded,
    Fix,
    GiveUp,
    Pause,
    Requeue,
    Retry,
    Start,
    Suspended,
)
from ropewalk.core.skeleton import last_words, skeleton
from ropewalk.core.state import NodeState, Resolution
from ropewalk.core.waits import Approval, ChildWait
from tests.core.executions import (
    BOOM,
    CANCELLED,
    FAILED,
    NOON,
    SUCCESS,
    WRONG,
    accepted,
    after,
    bad,
    commands,
    names,
    ok,
    once,
    refolded,
    runs,
    states,
    tell,
    workflow,
)
from tests.core.node_types import NODE_TYPES

UNDO = {"compensate": {"type": "noop", "retry": {"maxAttempts": 1}}}
LAST = {"finally": [once("x", type="noop"), once("y", type="noop")]}


def saga(**fields):
    """`a`, `b` and `c` follow each other; the first two can be undone."""
    return workflow([{"id": "a", **UNDO}, {"id": "b", **UNDO}, once("c")], "a->b", "b->c", **{**LAST, **fields})


def failed(**fields):
    return after(saga(**fields), ok("a"), ok("b"), bad("c"))


def decided(events):
    (found,) = [event for event in events if isinstance(event, OutcomeDecided)]
    return found


def test_a_failure_undoes_in_reverse_order_and_then_comes_finally():
    execution = accepted(saga())

    told = tell(execution, Start(), ok("a"), ok("b"), bad("c"))

    assert decided(told).nodes == ("b.compensate", "a.compensate", "x", "y")
    assert decided(told).undone == ("b", "a")
    assert runs(execution)[-1] == "b.compensate"
    order = ["b.compensate", "a.compensate", "x", "y"]
    for one, following in zip(order, [*order[1:], None], strict=True):
        execution.handle(ok(one), NOON)
        assert runs(execution) == ([] if following is None else [following])
    assert execution.state is FAILED


def test_the_order_is_that_of_success_not_that_of_the_document():
    execution = after(workflow([{"id": "a", **UNDO}, {"id": "b", **UNDO}, once("c")]), ok("b"), ok("a"))

    assert decided(tell(execution, bad("c"))).nodes == ("a.compensate", "b.compensate")


def test_what_did_not_succeed_is_not_undone():
    plan = workflow([{"id": "a", **UNDO}, once("b", **UNDO), {"id": "c", **UNDO}], "a->b", "b->c")

    told = tell(after(plan, ok("a")), bad("b"))

    assert decided(told).undone == ("a",)


def test_success_undoes_nothing_and_the_output_is_decided_before_finally():
    execution = after(saga(output="{{ nodes.c.output }}"), ok("a"), ok("b"))

    told = tell(execution, ok("c", 7), bad("x"), ok("y"))

    assert decided(told).output == 7
    assert names(told)[-1] == "ExecutionSucceeded"
    assert execution.state is SUCCESS
    assert states(execution) == {
        **dict.fromkeys(("a", "b", "c", "y"), NodeState.SUCCESS),
        "x": NodeState.FAILED,
        **dict.fromkeys(("a.compensate", "b.compensate"), NodeState.SKIPPED),
    }


def test_an_output_that_cannot_be_told_is_a_failure_and_undoes():
    execution = after(saga(output="{{ input.no + 1 }}"), ok("a"), ok("b"))

    found = decided(tell(execution, ok("c")))

    assert (found.outcome, found.undone) == (FAILED, ("b", "a"))
    assert found.error.startswith("output: ")


def test_the_failure_of_what_closes_is_a_dead_letter_and_changes_nothing():
    execution = failed()

    told = tell(execution, bad("b.compensate", WRONG), ok("a.compensate"), bad("x", WRONG), ok("y"))

    letters = [event.node for event in told if getattr(event, "gave_up", None) is not None]
    assert letters == ["b.compensate", "x"]
    assert told[-1] == ExecutionFailed(NOON, "c: boom")


def test_what_closes_is_tried_again_before_the_next_one_starts():
    plan = workflow([once("a")], **{"finally": [{"id": "x", "type": "noop"}, {"id": "y", "type": "noop"}]})
    execution = after(plan, bad("a"))

    execution.handle(bad("x"), NOON)
    assert runs(execution) == []
    execution.handle(Due(), NOON + 10 * SECOND)
    assert runs(execution) == ["x#2"]
    execution.handle(ok("x", attempt=2), NOON + 10 * SECOND)
    assert runs(execution) == ["y"]


def test_it_sees_the_outcome_why_and_what_failed():
    plan = workflow([once("a")], **{"finally": [{"id": "x", "type": "noop", "with": {"told": "{{ execution }}"}}]})
    execution = after(plan, bad("a"))

    told = inputs_of(execution, execution.work("x", None))["told"]

    assert (told["outcome"], told["error"]) == ("FAILED", "a: boom")
    assert [(each["node"], each["error"]["message"]) for each in told["failed"]] == [("a", "boom")]


def test_a_cancelled_execution_is_closed_when_it_is_quiet():
    execution = after(saga(), ok("a"))

    assert names(tell(execution, Cancel("ann"))) == ["CancelRequested"]
    told = tell(execution, bad("b"))

    assert names(told) == ["RunFailed", "OutcomeDecided", "NodesStarted"]
    assert (decided(told).outcome, decided(told).undone, decided(told).until) == (CANCELLED, ("a",), NOON + HOUR)
    assert names(tell(execution, ok("a.compensate"), ok("x"), ok("y")))[-1] == "ExecutionCancelled"
    assert states(execution)["b"] is NodeState.CANCELLED


def test_what_does_not_stop_within_the_grace_is_left():
    execution = after(saga(), ok("a"), Cancel("ann"))

    told = tell(execution, Due(), at=NOON + 10 * SECOND)

    assert decided(told).undone == ("a",)
    assert tell(execution, ok("b"), at=NOON + 11 * SECOND) == []


def test_the_time_of_a_hurried_end_is_limited():
    execution = after(saga(timeout="1m"), ok("a"), ok("b"))
    tell(execution, Due(), at=NOON + 60 * SECOND)
    tell(execution, Due(), at=NOON + 70 * SECOND)
    begun = NOON + 70 * SECOND
    assert [each.at for each in commands(execution, WakeAt)][-1] == begun + HOUR

    told = tell(execution, Due(), at=begun + HOUR)

    assert told == [ExecutionTimedOut(begun + HOUR)]
    assert [each.node for each in commands(execution, StopRun)] == ["b.compensate"]
    assert states(execution)["x"] is NodeState.CANCELLED


def test_one_that_was_parked_asks_for_a_slot_to_be_closed():
    execution = after(workflow([{"id": "a", **UNDO}, {"id": "b"}], "a->b"), ok("a"), Suspended("b", 1, Approval("?")))
    assert not execution.has_slot

    assert names(tell(execution, Cancel("ann"))) == ["CancelRequested", "OutcomeDecided"]
    assert execution.needs_slot
    assert commands(execution, NeedSlot)
    assert names(tell(execution, Start(), ok("a.compensate"))) == [
        "SlotTaken", "NodesStarted", "NodeSucceeded", "ExecutionCancelled",
    ]  # fmt: skip


def test_one_that_was_paused_is_closed_when_it_is_cancelled():
    execution = after(saga(), ok("a"), Pause("ann"), ok("b"))

    tell(execution, Cancel("ann"), Start())

    assert runs(execution)[-1] == "b.compensate"


def test_one_that_has_not_begun_is_not_closed():
    assert names(tell(accepted(saga()), Cancel("ann"))) == ["CancelRequested", "ExecutionCancelled"]
    assert names(tell(accepted(saga()), Abandon("no worker"))) == ["ExecutionFailed"]


def test_an_execution_reopened_in_the_queue_and_cancelled_there_is_closed_again():
    execution = after(workflow([once("a")], **LAST), bad("a"), ok("x"), ok("y"), Retry("ann"))

    told = tell(execution, Cancel("ann"), Start(), ok("x", attempt=2), ok("y", attempt=2))

    assert names(told)[-1] == "ExecutionCancelled"


def test_meanwhile_it_is_neither_paused_nor_cancelled_nor_mended():
    execution = failed()

    for request in (Pause("ann"), Cancel("ann"), Retry("ann"), Requeue("c", "ann"), Fix("c", "ann")):
        with pytest.raises(InvalidTransition):
            execution.handle(request, NOON)
    assert tell(after(saga(), Cancel("ann"), bad("a")), Cancel("ben")) == []


def test_a_run_that_closes_can_be_given_up_by_hand():
    execution = failed()

    told = tell(execution, GiveUp("b.compensate", "ann"))

    assert names(told) == ["NodeFailed", "NodesStarted"]


def test_what_has_undone_something_is_over_for_good():
    execution = failed()
    tell(execution, ok("b.compensate"), ok("a.compensate"), ok("x"), ok("y"))

    for request in (Retry("ann"), Requeue("c", "ann"), Fix("c", "ann")):
        with pytest.raises(InvalidTransition, match="has undone b, a"):
            execution.handle(request, NOON)


def test_a_rerun_takes_over_what_was_not_undone():
    execution = failed()
    tell(execution, bad("b.compensate", WRONG), ok("a.compensate"), ok("x"), ok("y"))

    assert carry_over(execution, "c", execution.plan, NOON).outputs == {}

    plan = workflow([{"id": "a"}, {"id": "b", **UNDO}, once("c")])
    other = after(plan, ok("a"), ok("b"), bad("c"), bad("b.compensate", WRONG))
    carried = carry_over(other, "c", plan, NOON)
    assert carried.outputs == {"a": None, "b": None}


def test_what_another_execution_gave_is_not_undone_here():
    plan = workflow([{"id": "a", **UNDO}, once("b")], "a->b")
    source = after(plan, ok("a"), ok("b"))
    execution = Execution(plan)
    first = ExecutionAccepted(NOON, "e2", "default", "test", 1, "hash")
    execution.apply([first, carry_over(source, "b", plan, NOON)])

    told = tell(execution, Start(), bad("b"))

    assert decided(told).nodes == ()


def test_a_map_is_undone_as_a_whole():
    plan = workflow([{"id": "m", "forEach": "{{ input }}", **UNDO}, once("b")], "m->b")
    execution = after(plan, Expanded("m", 1, 2), ok("m", 1, item=0), ok("m", 2, item=1))

    assert decided(tell(execution, bad("b"))).nodes == ("m.compensate",)


def test_a_reopened_execution_is_closed_again_and_attempts_go_on():
    execution = accepted(workflow([once("a")], **LAST))
    log = [ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash")]
    log += tell(execution, Start(), bad("a"), ok("x"), bad("y", WRONG))

    with pytest.raises(InvalidTransition, match="runs again at the end"):
        execution.handle(Requeue("y", "ann"), NOON)
    log += tell(execution, Retry("ann"))
    assert states(execution) == {"a": NodeState.READY, "x": NodeState.WAITING, "y": NodeState.WAITING}
    log += tell(execution, Start(), ok("a", attempt=2))
    log += tell(execution, ok("x", attempt=2), ok("y", attempt=2))

    assert execution.state is SUCCESS
    made = rows(execution.plan, log)
    assert [(run.node, run.attempt) for run in made.runs if run.node != "a"] == [("x", 1), ("y", 1), ("x", 2), ("y", 2)]
    assert [letter.resolution for letter in made.letters] == [Resolution.REQUEUED] * 2
    assert refolded(execution, log).outstanding() == execution.outstanding()


def test_a_fold_in_the_middle_goes_on():
    execution = accepted(saga())
    log = [ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash")]
    log += tell(execution, Start(), ok("a"), ok("b"), bad("c"), ok("b.compensate"))

    again = refolded(execution, log)

    assert again.outstanding() == execution.outstanding()
    assert names(tell(again, ok("a.compensate"), ok("x"), ok("y")))[-1] == "ExecutionFailed"


def test_one_whose_version_is_lost_ends_as_was_decided():
    execution = accepted(saga())
    first = ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash")
    log = [first, *tell(execution, Start(), ok("a"), ok("b"), bad("c"))]
    lost = Execution(skeleton(first, log))
    lost.apply(log)

    told = tell(lost, Cancel("ann"))
    for word in last_words(lost):
        told += tell(lost, word)

    assert told[-1] == ExecutionFailed(NOON, "c: boom")


def test_a_stop_on_failure_closes_too():
    execution = after(saga(onFailure="stop"), ok("a"), ok("b"))

    told = tell(execution, bad("c", BOOM))

    assert decided(told).undone == ("b", "a")
    assert runs(execution)[-1] == "b.compensate"


def test_a_child_that_has_undone_what_it_did_is_not_reopened_but_replaced():
    execution = after(workflow([{"id": "a", "type": "noop"}]), Suspended("a", 1, ChildWait("c1", "child")))
    tell(execution, ChildEnded("a", 1, FAILED, None, "no", undone=True))

    with pytest.raises(InvalidTransition, match="has undone what it did"):
        execution.handle(ChildReopened("a", 1, "ann"), NOON)
    tell(execution, Retry("ann"), Start())

    assert runs(execution) == ["a#2"]


# Documents


def problems_of(**fields):
    document = {"ropewalk": 1, "name": "test", "nodes": [{"id": "a", "type": "noop"}], **fields}
    with pytest.raises(InvalidDefinition) as refused:
        parse_definition(document, NODE_TYPES)
    return {"/".join(map(str, each.path)): each.message for each in refused.value.problems}


def test_all_that_is_wrong_with_what_closes_is_told_at_once():
    nodes = [
        {"id": "a", "type": "noop", "compensate": {"type": "log", "with": {"message": "{{ nodes.b.output }}"}}},
        {"id": "b", "type": "noop", "compensate": {"type": "none", "forEach": [1]}},
        {"id": "c", "type": "noop", "with": {"v": "{{ nodes.x.output }}"}},
    ]
    last = [
        {"id": "x", "type": "log", "with": {"message": "{{ nodes.y.output }}"}},
        {"id": "y", "type": "log", "forEach": [1], "with": {"message": "{{ item }}"}},
        {"id": "a", "type": "noop"},
        {"type": "noop"},
        7,
    ]

    found = problems_of(
        nodes=nodes, edges=[{"from": "a", "to": "b"}, {"from": "b", "to": "x"}], **{"finally": last},
        output="{{ nodes.x.output }}",
    )  # fmt: skip

    assert found["nodes/1/compensate/forEach"].startswith("unknown field")
    assert found["nodes/1/compensate/type"] == "unknown node type 'none'"
    assert found["finally/1/forEach"].startswith("unknown field")
    assert found["finally/2/id"] == "duplicate id 'a'"
    assert found["finally/3"] == "needs the field 'id'"
    assert "finally/4" in found
    assert found["edges/1/to"] == "'x' is a node of finally, which has no edges"
    assert found["output"].startswith("cannot use 'x' here")


def test_what_is_referred_to_has_run_before():
    nodes = [
        {"id": "a", "type": "noop", "compensate": {"type": "log", "with": {"message": "{{ nodes.b.output }}"}}},
        {"id": "b", "type": "noop", "with": {"v": "{{ nodes.x.output }}"}},
    ]
    last = [{"id": "x", "type": "log", "with": {"message": "{{ nodes.y.output }}"}}, {"id": "y", "type": "noop"}]

    found = problems_of(nodes=nodes, edges=[{"from": "a", "to": "b"}], **{"finally": last})

    behind = "which does not come before this node"
    assert found == {
        "nodes/0/compensate/with/message": f"refers to b, {behind}",
        "nodes/1/with/v": f"refers to x, {behind}",
        "finally/0/with/message": f"refers to y, {behind}",
    }


def test_what_undoes_sees_its_node_and_what_that_saw_and_finally_sees_all():
    read = {"message": "{{ nodes.a.output }} {{ nodes.b.output }}"}
    document = {
        "ropewalk": 1,
        "name": "test",
        "nodes": [
            {"id": "a", "type": "noop"},
            {"id": "b", "type": "noop", "compensate": {"type": "log", "with": read}},
        ],
        "edges": [{"from": "a", "to": "b"}],
        "finally": [
            {"id": "x", "type": "log", "with": read},
            {"id": "y", "type": "log", "with": {"message": "{{ nodes.x.output }}"}},
        ],
    }  # fmt: skip

    definition = parse_definition(document, NODE_TYPES)

    assert list(definition.index) == ["a", "b", "x", "y", "b.compensate"]


def test_what_closes_has_the_retry_of_its_type_written_down_with_it():
    types = {**NODE_TYPES, "paid": NodeTypeInfo("paid", retry={"maxAttempts": 1})}
    nodes = [{"id": "a", "type": "noop", "compensate": {"type": "paid"}}, {"id": "b", "type": "noop"}]
    document = {"ropewalk": 1, "name": "test", "nodes": nodes, "finally": [{"id": "x", "type": "paid"}]}

    kept = parse_definition(document, types).document

    once_only = {"type": "paid", "retry": {"maxAttempts": 1}}
    assert kept["nodes"] == [{**nodes[0], "compensate": once_only}, nodes[1]]
    assert kept["finally"] == [{"id": "x", **once_only}]


def test_what_closes_reaches_what_it_names():
    limited = {"type": "noop", "rateLimit": "shop"}
    document = {"nodes": [{"id": "a", "type": "noop", "compensate": limited}], "finally": [{"id": "x", **limited}]}

    assert [need.path for need in needs(document, {})] == [
        ("finally", 0, "rateLimit"), ("nodes", 0, "compensate", "rateLimit"),
    ]  # fmt: skip


@pytest.mark.parametrize("document", [7, {"nodes": 7, "finally": 7}, {"nodes": [7], "finally": [7]}])
def test_what_is_no_document_is_refused_as_ever(document):
    with pytest.raises(InvalidDefinition):
        parse_definition(document, NODE_TYPES)

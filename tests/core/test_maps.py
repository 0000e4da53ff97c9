"""Maps: SPEC §3.8."""

from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import ItemFailed, ItemsGivenUp, ItemsStarted, ItemSucceeded, NodeSucceeded
from ropewalk.core.signals import Cancel, Due, Expanded, Fix, Requeue, Retry, Start, Succeeded
from ropewalk.core.state import GaveUp, NodeState
from tests.core.executions import (
    BOOM,
    FAILED,
    NOON,
    SUCCESS,
    accepted,
    after,
    bad,
    each,
    mapped,
    names,
    ok,
    runs,
    states,
    tell,
    workflow,
)


def test_a_map_is_evaluated_first_and_then_starts_its_items():
    execution = accepted(workflow([each("m")]))

    tell(execution, Start())
    assert runs(execution) == ["m"]
    tell(execution, Expanded("m", 1, 2))

    assert runs(execution) == ["m[0]", "m[1]"]


def test_an_empty_list_gives_an_empty_list():
    execution = mapped(workflow([each("m")], output="{{ nodes.m.output }}"), 0)

    assert execution.state is SUCCESS
    assert execution.outputs[0] == []


def test_the_output_is_in_order_with_any_order_of_the_ends():
    execution = mapped(workflow([each("m")]), 3)

    tell(execution, ok("m", "c", item=2), ok("m", "a", item=0), ok("m", "b", item=1))

    assert execution.outputs[0] == ["a", "b", "c"]


def test_the_tokens_of_a_node_and_of_each_item_are_recorded():
    execution = mapped(workflow([each("m"), {"id": "a"}]), 2)

    events = tell(
        execution,
        Succeeded("m", 1, item=0, tokens=3),
        Succeeded("m", 1, item=1),
        Succeeded("a", 1, tokens=4),
    )

    kinds = (ItemSucceeded, NodeSucceeded)
    assert [(each.node, each.tokens) for each in events if isinstance(each, kinds)] == [
        ("m", 3), ("m", None), ("m", None), ("a", 4),
    ]  # fmt: skip


def test_concurrency_limits_the_items_under_way():
    execution = after(workflow([each("m", concurrency=2)]))

    events = tell(execution, Expanded("m", 1, 4))
    assert [event.items for event in events if isinstance(event, ItemsStarted)] == [(0, 1)]
    execution.take_commands()
    tell(execution, ok("m", item=1))

    assert runs(execution) == ["m[2]"]


def test_a_list_that_is_none_fails_for_good():
    error = RunError(ErrorType.PERMANENT, "forEach gives no list")

    event = tell(after(workflow([each("m")])), bad("m", error))[0]

    assert event.gave_up is GaveUp.PERMANENT_ERROR


def test_too_many_items_fail_for_good():
    event = tell(after(workflow([each("m")])), Expanded("m", 1, 100_001))[0]

    assert "100000" in event.error.message


def test_an_item_is_retried_by_itself():
    execution = mapped(workflow([{**each("m"), "retry": {"maxAttempts": 2, "jitter": 0}}]), 2)

    tell(execution, bad("m", item=1))
    tell(execution, Due(), at=NOON + 1_000_000)

    assert runs(execution) == ["m[1]#2"]


def test_a_failure_too_many_stops_the_map_and_makes_dead_letters():
    execution = mapped(workflow([each("m", concurrency=2)]), 4)

    events = tell(execution, bad("m", item=0))
    assert events == [ItemFailed(NOON, "m", 0, 1, BOOM, GaveUp.MAX_RETRIES), ItemsGivenUp(NOON, "m", ())]
    assert runs(execution) == []

    events = tell(execution, ok("m", item=1))

    assert names(events) == ["ItemSucceeded", "NodeFailed", "ExecutionFailed"]
    assert events[1].error.message == "1 of 4 items failed, 0 tolerated; the first: boom"


def test_tolerated_failures_become_dead_letters_only_when_one_is_too_many():
    execution = mapped(workflow([each("m", failureTolerance=1)]), 3)

    assert tell(execution, bad("m", item=2))[0].gave_up is None
    events = tell(execution, bad("m", item=0))

    assert events[0].gave_up is GaveUp.MAX_RETRIES
    assert events[1] == ItemsGivenUp(NOON, "m", (2,))


def test_a_tolerant_map_succeeds_with_null_for_what_failed():
    plan = workflow([each("m", failureTolerance="50%")], output="{{ nodes.m.errors }}")
    execution = mapped(plan, 2)

    events = tell(execution, bad("m", item=0), ok("m", "b", item=1))

    assert execution.outputs[0] == [None, "b"]
    assert events[-1].output == [{"type": "TRANSIENT", "message": "boom", "attempts": 1, "index": 0}]


def test_an_error_edge_handles_a_failed_map_without_dead_letters():
    execution = mapped(workflow([each("m"), {"id": "alert"}], "m->alert:error"), 1)

    events = tell(execution, bad("m", item=0))

    assert events[0].gave_up is None
    assert runs(execution) == ["alert"]


def test_requeue_of_an_item_also_starts_the_cancelled_ones():
    execution = mapped(workflow([each("m", concurrency=1)]), 3)
    tell(execution, bad("m", item=0))
    assert execution.state is FAILED

    tell(execution, Requeue("m", "ann", 0, {"x": 1}), Start())
    assert runs(execution) == ["m[0]#2"]
    tell(execution, ok("m", item=0, attempt=2), ok("m", item=1), ok("m", item=2))

    assert execution.state is SUCCESS


def test_fix_of_an_item_also_starts_the_cancelled_ones():
    execution = mapped(workflow([each("m", concurrency=1)]), 2)
    tell(execution, bad("m", item=0))

    tell(execution, Fix("m", "ann", "fixed", item=0), Start())
    assert runs(execution) == ["m[1]"]
    tell(execution, ok("m", "b", item=1))

    assert (execution.state, execution.outputs[0]) == (SUCCESS, ["fixed", "b"])


def test_the_fix_of_the_last_failed_item_completes_the_map():
    execution = mapped(workflow([each("m")]), 1)
    tell(execution, bad("m", item=0))

    tell(execution, Fix("m", "ann", "fixed", item=0), Start())

    assert (execution.state, execution.outputs[0]) == (SUCCESS, ["fixed"])


def test_an_item_requeued_while_the_map_still_runs_goes_on_in_place():
    execution = mapped(workflow([each("m")]), 2)
    tell(execution, bad("m", item=0))

    tell(execution, Requeue("m", "ann", 0))
    assert runs(execution) == ["m[0]#2"]
    tell(execution, ok("m", item=0, attempt=2), ok("m", item=1))

    assert execution.state is SUCCESS


def test_retry_of_an_execution_repeats_every_failed_item():
    execution = mapped(workflow([each("m")]), 3)
    tell(execution, bad("m", item=0), bad("m", item=2), ok("m", item=1))

    tell(execution, Retry("ann"), Start())

    assert runs(execution) == ["m[0]#2", "m[2]#2"]


def test_a_map_cancelled_in_the_middle_is_cancelled_as_a_whole():
    execution = mapped(workflow([each("m")]), 2)

    tell(execution, ok("m", item=0), Cancel("ann"))
    tell(execution, Due(), at=NOON + 10_000_000)

    assert states(execution)["m"] is NodeState.CANCELLED


def test_map_items_count_for_max_parallel():
    execution = after(workflow([each("m")], maxParallel=3))

    tell(execution, Expanded("m", 1, 5))

    assert len(runs(execution)) == 3

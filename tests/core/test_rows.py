"""The rows a log stands for: SPEC §1 and §5."""

from uuid import UUID

import pytest

from ropewalk.core.duration import SECOND
from ropewalk.core.events import Event
from ropewalk.core.execution import Execution
from ropewalk.core.plan import Plan
from ropewalk.core.rows import NodeRow, Projection, Rows, letter_id, rows, run_id
from ropewalk.core.rows.tables import first_run_id
from ropewalk.core.signals import (
    Cancel,
    ChildEnded,
    ChildReopened,
    Due,
    Expanded,
    Fix,
    GiveUp,
    Lost,
    Pause,
    Requeue,
    Resume,
    Retry,
    Returned,
    Signal,
    Start,
    Suspended,
)
from ropewalk.core.state import ExecutionState, GaveUp, NodeState, Resolution, RunState
from ropewalk.core.waits import Approval, BreakerWait, ChildWait
from tests.core.executions import BOOM, NOON, WRONG, accepted, bad, each, ok, once, workflow

LONG = 60 * SECOND


def log(plan: Plan, *told: Signal | int) -> list[Event]:
    """What the machine records when it is told these; a number lets so much time pass first."""
    execution = accepted(plan)
    assert execution.accepted is not None
    events: list[Event] = [execution.accepted]
    now = NOON
    for signal in told:
        if isinstance(signal, int):
            now += signal
        else:
            events += execution.handle(signal, now)
    return events


def table(plan: Plan, *told: Signal | int) -> Rows:
    return rows(plan, log(plan, *told))


def runs(found: Rows) -> list[str]:
    """Every run as `node[item]#attempt STATE`."""
    return [f"{row.node}{'' if row.item is None else f'[{row.item}]'}#{row.attempt} {row.state}" for row in found.runs]


def nodes(found: Rows) -> dict[str, NodeState]:
    return {row.node: row.state for row in found.nodes}


# Ids


def test_a_run_is_named_by_a_uuid_of_its_start():
    name = UUID(run_id("e1", "a", 3, 2, NOON))

    assert (name.version, name.variant) == (7, UUID(int=1 << 63).variant)
    assert name.int >> 80 == NOON // 1000


def test_every_fold_of_the_log_names_a_run_the_same():
    assert run_id("e1", "a", None, 1, NOON) == run_id("e1", "a", None, 1, NOON) == first_run_id("e1", "a", NOON)


def test_different_runs_and_letters_have_different_names():
    names = [
        *[run_id(*key, NOON) for key in (("e1", "a", None, 1), ("e1", "a", 0, 1), ("e1", "a", None, 2))],
        *[run_id(*key, NOON) for key in (("e2", "a", None, 1), ("e1", "b", None, 1))],
        letter_id("e1", "a", None, 1, NOON),
    ]

    assert len(set(names)) == len(names)


# The execution


def test_the_execution_row_has_what_was_accepted():
    row = table(workflow("a")).execution

    assert row is not None
    assert (row.id, row.workspace, row.workflow, row.version) == ("e1", "default", "test", 1)
    assert (row.state, row.started, row.finished) == (ExecutionState.PENDING, None, None)


def test_a_finished_execution_has_its_output_and_times():
    row = table(workflow("a"), SECOND, Start(), SECOND, ok("a", 7)).execution

    assert row is not None
    assert (row.state, row.output) == (ExecutionState.SUCCESS, {"a": 7})
    assert (row.accepted, row.started, row.finished) == (NOON, NOON + SECOND, NOON + 2 * SECOND)


def test_a_reopened_execution_keeps_its_start_and_nothing_of_its_end():
    row = table(workflow([once("a")]), Start(), bad("a"), LONG, Retry("ann")).execution

    assert row is not None
    assert (row.state, row.started, row.finished, row.error) == (ExecutionState.PENDING, NOON, None, None)


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ([Pause("ann")], ExecutionState.PAUSED),
        ([Pause("ann"), Resume("ann")], ExecutionState.PENDING),
        ([Start(), Pause("ann"), Resume("ann")], ExecutionState.RUNNING),
        ([Cancel("ann")], ExecutionState.CANCELLED),
        ([Start(), LONG, Due(), LONG, Due()], ExecutionState.TIMEOUT),
    ],
)
def test_the_execution_row_follows_the_verbs(told: list[Signal | int], state: ExecutionState):
    row = table(workflow("a", timeout="1m"), *told).execution

    assert row is not None
    assert row.state is state


# Nodes


def test_every_node_has_a_row_from_the_beginning():
    assert table(workflow("a b", "a->b")).nodes == [NodeRow("a", NodeState.READY), NodeRow("b")]


def test_nodes_show_what_became_of_them():
    plan = workflow([{"id": "a"}, {"id": "b"}, {"id": "c"}, once("d"), {"id": "e"}], "a->b:x", "a->c:y", "d->e")

    found = table(plan, Start(), ok("a", None, "x"), ok("b"), bad("d"))

    assert list(nodes(found).values()) == [
        NodeState.SUCCESS, NodeState.SUCCESS, NodeState.SKIPPED, NodeState.FAILED, NodeState.BLOCKED
    ]  # fmt: skip
    assert found.nodes[3].error == BOOM


def test_what_had_no_turn_when_it_was_cancelled_is_cancelled():
    found = table(workflow("a b", "a->b"), Start(), Cancel("ann"), 10 * SECOND, Due())

    assert nodes(found) == {"a": NodeState.CANCELLED, "b": NodeState.CANCELLED}
    assert runs(found) == ["a#1 CANCELLED"]


def test_what_was_cancelled_or_blocked_has_its_turn_after_a_reopening():
    plan = workflow([once("a"), {"id": "b"}, {"id": "c"}, {"id": "d"}], "a->b", "c->d", onFailure="stop")

    found = table(plan, Start(), bad("a"), ok("c"), Retry("ann"))

    assert nodes(found) == {
        "a": NodeState.READY, "b": NodeState.WAITING, "c": NodeState.SUCCESS, "d": NodeState.READY
    }  # fmt: skip


# Runs


def test_every_attempt_is_a_row():
    found = table(workflow("a"), Start(), bad("a"), LONG, Due(), ok("a", attempt=2))

    assert runs(found) == ["a#1 FAILED", "a#2 SUCCESS"]
    assert [(row.started, row.finished) for row in found.runs] == [(NOON, NOON), (NOON + LONG, NOON + LONG)]
    assert found.runs[0].retry_after == NOON + SECOND
    assert found.nodes[0].attempts == 2


def test_an_attempt_that_goes_on_stays_one_row():
    plan = workflow("a")

    returned = table(plan, Start(), Returned("a", 1), SECOND, Start())
    held = table(plan, Start(), Suspended("a", 1, BreakerWait("shop", NOON + SECOND)), SECOND, Due())

    assert runs(returned) == runs(held) == ["a#1 RUNNING"]
    assert returned.runs[0].started == NOON


def test_an_attempt_that_waits_shows_it():
    assert runs(table(workflow("a"), Start(), Suspended("a", 1, Approval("ok?")))) == ["a#1 WAITING"]


def test_waits_are_cancelled_as_soon_as_the_execution_is_to_end():
    found = table(workflow("a b"), Start(), Suspended("a", 1, Approval("ok?")), Cancel("ann"))

    assert runs(found) == ["a#1 CANCELLED", "b#1 RUNNING"]


def test_a_lost_attempt_is_a_failed_run():
    found = table(workflow("a"), Start(), Lost("a", 1), Due())

    assert runs(found) == ["a#1 FAILED", "a#2 RUNNING"]


# Dead letters


def test_a_run_that_gave_up_is_a_dead_letter_with_its_inputs():
    plan = workflow([once("a")])

    found = table(plan, Start(), SECOND, bad("a", WRONG))

    (letter,) = found.letters
    assert runs(found) == ["a#1 DLQ"]
    assert (letter.run, letter.type, letter.reason) == (found.runs[0].id, GaveUp.PERMANENT_ERROR, "wrong")
    assert (letter.created, letter.resolution) == (NOON + SECOND, Resolution.PENDING)


def test_a_handled_failure_makes_no_dead_letter():
    found = table(workflow([once("a"), {"id": "b"}], "a->b:error"), Start(), bad("a"))

    assert (runs(found), found.letters) == (["a#1 FAILED", "b#1 RUNNING"], [])


def test_a_run_between_attempts_can_be_given_up():
    found = table(workflow("a"), Start(), bad("a"), GiveUp("a", "ann"))

    assert runs(found) == ["a#1 DLQ"]
    assert [letter.type for letter in found.letters] == [GaveUp.MANUAL]


@pytest.mark.parametrize(
    ("verb", "resolution", "state"),
    [
        (Requeue("a", "bob"), Resolution.REQUEUED, NodeState.READY),
        (Retry("bob"), Resolution.REQUEUED, NodeState.READY),
        (Fix("a", "bob", 7), Resolution.FIXED, NodeState.SUCCESS),
    ],
)
def test_a_dead_letter_tells_who_dealt_with_it(verb: Signal, resolution: Resolution, state: NodeState):
    found = table(workflow([once("a"), {"id": "b"}], "a->b"), Start(), bad("a"), SECOND, verb)

    (letter,) = found.letters
    assert (letter.resolution, letter.resolved, letter.by) == (resolution, NOON + SECOND, "bob")
    assert nodes(found)["a"] is state


def test_the_next_run_of_a_requeued_node_has_the_next_number():
    found = table(workflow([once("a")]), Start(), bad("a"), Requeue("a", "bob"), Start(), ok("a", attempt=2))

    assert runs(found) == ["a#1 DLQ", "a#2 SUCCESS"]


# Maps


def test_a_map_has_a_run_for_its_list_and_one_per_item():
    found = table(workflow([each("m")]), Start(), Expanded("m", 1, 2), ok("m", item=1), ok("m", item=0))

    assert runs(found) == ["m#1 SUCCESS", "m[0]#1 SUCCESS", "m[1]#1 SUCCESS"]
    assert nodes(found) == {"m": NodeState.SUCCESS}


def test_a_failure_too_many_makes_the_earlier_ones_dead_letters_too():
    plan = workflow([each("m", failureTolerance=1)])

    found = table(plan, Start(), Expanded("m", 1, 2), bad("m", WRONG, item=1), bad("m", item=0))

    assert runs(found) == ["m#1 SUCCESS", "m[0]#1 DLQ", "m[1]#1 DLQ"]
    assert {letter.item: letter.type for letter in found.letters} == {
        0: GaveUp.MAX_RETRIES, 1: GaveUp.PERMANENT_ERROR
    }  # fmt: skip


def test_a_requeued_item_puts_its_map_back_in_line():
    plan = workflow([each("m")])

    found = table(plan, Start(), Expanded("m", 1, 1), bad("m", item=0), Requeue("m", "ann", 0))

    assert nodes(found) == {"m": NodeState.READY}
    assert [letter.resolution for letter in found.letters] == [Resolution.REQUEUED]


def test_a_fixed_item_may_be_all_its_map_needed():
    plan = workflow([each("m")])

    found = table(plan, Start(), Expanded("m", 1, 1), bad("m", item=0), Fix("m", "ann", 7, item=0), Start())

    assert nodes(found) == {"m": NodeState.SUCCESS}
    assert [letter.resolution for letter in found.letters] == [Resolution.FIXED]


def test_a_retry_resolves_the_dead_letters_of_every_item():
    plan = workflow([each("m")])

    found = table(plan, Start(), Expanded("m", 1, 2), bad("m", item=0), bad("m", item=1), Retry("ann"))

    assert [letter.by for letter in found.letters] == ["ann", "ann"]


# Children


CHILD = [Start(), Suspended("a", 1, ChildWait("c1", "other")), ChildEnded("a", 1, ExecutionState.FAILED)]


def test_a_failed_child_fails_the_run_without_a_dead_letter():
    found = table(workflow("a"), *CHILD)

    assert (runs(found), found.letters) == (["a#1 FAILED"], [])


@pytest.mark.parametrize("verb", [Retry("ann"), ChildReopened("a", 1, "ann")])
def test_the_run_waits_again_for_a_reopened_child(verb: Signal):
    found = table(workflow("a"), *CHILD, verb)

    assert runs(found) == ["a#1 WAITING"]
    assert nodes(found) == {"a": NodeState.RUNNING}


def test_an_item_waits_again_for_its_reopened_child():
    plan = workflow([each("m")])

    found = table(
        plan,
        Start(),
        Expanded("m", 1, 1),
        Suspended("m", 1, ChildWait("c1", "other"), 0),
        ChildEnded("m", 1, ExecutionState.FAILED, item=0),
        ChildReopened("m", 1, "ann", 0),
    )

    assert runs(found) == ["m#1 SUCCESS", "m[0]#1 WAITING"]
    assert nodes(found) == {"m": NodeState.READY}


# Keeping up


def test_changes_are_the_rows_that_changed_and_no_others():
    plan = workflow("a b c", "a->b")
    events = log(plan, Start(), ok("a"))
    projection = Projection(plan)
    projection.add(events[:3])
    projection.take_changes()

    projection.add(events[3:])
    changes = projection.take_changes()

    assert changes.execution is None
    assert [row.node for row in changes.nodes] == ["a", "b"]
    assert [(row.node, row.state) for row in changes.runs] == [("a", RunState.SUCCESS), ("b", RunState.RUNNING)]


def test_taken_rows_do_not_change_any_more():
    plan = workflow("a")
    events = log(plan, Start(), ok("a"))
    projection = Projection(plan)
    projection.add(events[:3])
    before = projection.take_changes()

    projection.add(events[3:])

    assert before.runs[0].state is RunState.RUNNING


def test_rows_written_change_by_change_are_the_rows_of_the_whole_log():
    plan = workflow([once("a"), each("m", failureTolerance=1)], "a->m")
    events = log(
        plan, Start(), bad("a"), Requeue("a", "ann"), Start(), ok("a", attempt=2), Expanded("m", 1, 2),
        bad("m", item=0), bad("m", item=1), Retry("ann"), Start(), ok("m", attempt=2, item=0),
    )  # fmt: skip
    projection = Projection(plan)
    written: dict[str, object] = {}
    for event in events:
        projection.add([event])
        changes = projection.take_changes()
        written |= {row.id: row for row in (*changes.runs, *changes.letters)}
        written |= {row.node: row for row in changes.nodes}

    whole = rows(plan, events)

    assert written == {row.id: row for row in (*whole.runs, *whole.letters)} | {row.node: row for row in whole.nodes}


def test_the_machine_and_the_rows_agree_on_the_nodes():
    plan = workflow([once("a"), {"id": "b"}, {"id": "c"}], "a->b")
    events = log(plan, Start(), bad("a"), ok("c"), Retry("ann"), Start())
    execution = Execution(plan)
    execution.apply(events)

    assert list(nodes(rows(plan, events)).values()) == [execution.node_state(index) for index in range(len(plan))]

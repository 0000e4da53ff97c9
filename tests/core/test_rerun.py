"""Rerun from a node: SPEC §3.13."""

import pytest

from ropewalk.core import log
from ropewalk.core.errors import InvalidTransition, NotFound
from ropewalk.core.events import Blob
from ropewalk.core.execution.view import NodesView
from ropewalk.core.rerun import carry_over
from ropewalk.core.signals import Start, Succeeded, Tell
from ropewalk.core.state import NodeState
from ropewalk.core.waits import SignalWait
from tests.core.executions import NOON, accepted, after, each, mapped, ok, runs, states, tell, waiting, workflow

CHAIN = workflow("a b", "a->b")
LARGE = Blob("x" * 64, 100_000)


def test_a_rerun_carries_over_everything_but_the_node_and_what_is_behind_it():
    plan = workflow("a b c d", "a->b", "b->c", "a->d:no")
    old = after(plan, ok("a", 1, "yes"), ok("b", 2), ok("c", 3))

    new = accepted(plan)
    new.apply([carry_over(old, "b", plan, NOON)])
    tell(new, Start())

    assert runs(new) == ["b"]
    assert (new.outputs, states(new)["d"]) == ({0: 1}, NodeState.SKIPPED)


def test_a_rerun_on_another_version_keeps_only_what_is_the_same():
    old_plan = workflow([{"id": "a"}, {"id": "b", "with": {"x": 1}}, {"id": "c"}, {"id": "d"}], "a->b", "b->c")
    new_plan = workflow([{"id": "a"}, {"id": "b", "with": {"x": 2}}, {"id": "c"}, {"id": "d"}], "a->b", "b->c")
    old = after(old_plan, ok("a"), ok("b"), ok("c"), ok("d"))

    new = accepted(new_plan)
    new.apply([carry_over(old, "d", new_plan, NOON)])
    tell(new, Start())

    assert sorted(runs(new)) == ["b", "d"]


def test_large_results_are_carried_over_as_such_also_by_a_log():
    plan = workflow([each("m"), {"id": "a"}, {"id": "b"}], "a->b", "m->b")
    looks_large = {"hash": "h", "size": 1}
    old = mapped(plan, 3)
    tell(old, Succeeded("a", 1, blob=LARGE), Succeeded("m", 1, item=0, blob=LARGE), ok("m", looks_large, item=1))
    tell(old, ok("m", 3, item=2), ok("b"))

    _, events = log.decode(log.encode(1, [carry_over(old, "b", plan, NOON)]))
    new = accepted(plan)
    new.apply(events)
    new.blobs["x" * 64] = "large"

    assert (new.outputs[0], new.outputs[1]) == ([LARGE, looks_large, 3], LARGE)
    assert NodesView(new)["a"]["output"] == "large"
    assert NodesView(new)["m"]["output"] == ["large", looks_large, 3]


def test_a_rerun_waits_for_the_end():
    with pytest.raises(InvalidTransition):
        carry_over(after(CHAIN), "a", CHAIN, NOON)


def test_a_rerun_from_an_unknown_node_is_not_found():
    with pytest.raises(NotFound):
        carry_over(after(workflow("a"), ok("a")), "z", workflow("a"), NOON)


def test_a_wait_that_was_answered_leads_on_by_a_port_that_only_the_new_version_names():
    old_plan = workflow("a b", "a->b")
    new_plan = workflow("a b c", "a->b", "a->c:arrived")
    old = waiting(old_plan, SignalWait("go"))
    tell(old, Tell("go"), Start(), ok("b"))

    new = accepted(new_plan)
    new.apply([carry_over(old, "b", new_plan, NOON)])
    tell(new, Start())

    assert sorted(runs(new)) == ["b", "c"]

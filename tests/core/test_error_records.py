"""What expressions see of a failure: SPEC §2."""

from typing import Any

from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import RULES
from ropewalk.core.execution import Execution
from ropewalk.core.execution.view import inputs_of
from ropewalk.core.signals import Expanded, Failed, Start
from tests.core.executions import NOON, accepted, bad, each, once, tell, workflow

TOLD = RunError(ErrorType.PERMANENT, "no", "Traceback …", status=404, body='{"why": "gone"}')
NAMES = ("type", "message", "attempts", "status", "detail", "body")


def alerted(rules: int, error: RunError = TOLD) -> Execution:
    """An execution whose node `a` has failed, and whose node `alert` is given everything the error tells."""
    told = {name: f"{{{{ nodes.a.error.{name} }}}}" for name in NAMES}
    plan = workflow([once("a"), {"id": "alert", "with": told}], "a->alert:error")
    execution = accepted(plan, rules=rules)
    tell(execution, Start(), Failed("a", 1, error))
    return execution


def given(execution: Execution) -> Any:
    return inputs_of(execution, execution.works[1])


def test_an_error_edge_reads_type_message_attempts_status_detail_and_body():
    assert given(alerted(RULES)) == {
        "type": "PERMANENT", "message": "no", "attempts": 1, "status": 404, "detail": "Traceback …",
        "body": '{"why": "gone"}',
    }  # fmt: skip


def test_what_an_error_does_not_tell_is_null():
    told = given(alerted(RULES, RunError(ErrorType.PERMANENT, "no")))

    assert [told[name] for name in ("status", "detail", "body")] == [None, None, None]


def test_an_execution_that_was_accepted_under_earlier_rules_sees_what_it_saw_then():
    told = given(alerted(1))

    assert told == {"type": "PERMANENT", "message": "no", "attempts": 1, "status": None, "detail": None, "body": None}


def test_the_failures_of_a_map_are_listed_with_their_status_and_without_what_is_long():
    execution = accepted(workflow([each("m", failureTolerance=1)], output="{{ nodes.m.errors }}"), rules=RULES)

    events = tell(execution, Start(), Expanded("m", 1, 1), bad("m", TOLD, item=0))

    assert events[-1].output == [{"type": "PERMANENT", "message": "no", "attempts": 1, "status": 404, "index": 0}]


def test_the_detail_of_a_failure_that_no_edge_handles_is_not_kept_in_memory():
    execution = accepted(workflow([once("a")]), rules=RULES)

    execution.handle(Start(), NOON)
    execution.handle(Failed("a", 1, TOLD), NOON)

    assert (execution.errors[0].status, execution.errors[0].detail, execution.errors[0].body) == (404, None, None)

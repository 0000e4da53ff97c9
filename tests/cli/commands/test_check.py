"""`ropewalk check`: an honest store passes, and each kind of lie is told."""

import json
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Invoke, Start, code_of, open_gate, told


@pytest.fixture
def store(invoke: Invoke) -> str:
    """A store with a success, a retry, a failure with its dead letter, one requeued, and something discarded."""
    for file in ("hello.yaml", "flaky.yaml", "paid.yaml", "paid.yaml", "paid.yaml", "late.yaml"):
        invoke("run", file)
    letters = json.loads(invoke("dlq", "ls", "--json").stdout)
    invoke("dlq", "requeue", letters[0]["id"], "--set", 'card="4242"')
    invoke("dlq", "discard", letters[1]["id"])
    return "ropewalk.db"


def test_an_honest_store_has_no_violations(store: str, invoke: Invoke):
    result = invoke("check")

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("6 executions checked against ")


LAST = "(execution, seq) in (select execution, seq from log order by execution desc, seq desc limit 1)"

LIES = {
    "an execution's state": "update execution set state = 'FAILED' where state = 'SUCCESS'",
    "an execution's end": "update execution set finished_at = finished_at + 1 where state = 'SUCCESS'",
    "an execution's error": "update execution set error = 'other' where state = 'FAILED'",
    "a run that was never made": "update run set id = 'x' where id = (select min(id) from run)",
    "a run that is missing": "delete from run where id = (select min(id) from run)",
    "a run's state": "update run set state = 'SUCCESS' where state = 'FAILED'",
    "a dead letter that is missing": "delete from dead_letter where resolution = 'PENDING'",
    "a dead letter's inputs": """update dead_letter set inputs = '{"card":"other"}' where resolution = 'PENDING'""",
    "a dead letter that was requeued": "update dead_letter set resolution = 'PENDING' where resolution = 'REQUEUED'",
    "an end that is kept as under way": (
        "insert into live (execution, workspace, fence, last_seq, has_slot, has_key, priority) "
        "select id, workspace, 1, 1, 0, 0, 5 from execution where state = 'SUCCESS' limit 1"
    ),
    "an event that is missing": f"delete from log where seq > 1 and {LAST}",
    "an entry under another number": f"update log set seq = seq + 1 where {LAST}",
    "a version that is missing": "delete from workflow_version where version = 1",
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_told(lie: str, store: str, invoke: Invoke):
    with sqlite3.connect(store) as connection:
        changed = connection.execute(LIES[lie]).rowcount
    connection.close()

    result = invoke("check", "--json")

    assert changed > 0
    assert (result.exit_code, bool(json.loads(result.stdout)["violations"])) == (1, True)


def test_a_store_that_is_executed_on_can_be_checked(start: Start, invoke: Invoke, answer: Callable[..., Any]):
    owner = start("run", "held.yaml")
    told(owner, "first │ holding")

    checked = answer("check")

    assert checked == {"executions": 1, "violations": [], "rewinds": []}
    open_gate("first.gate")
    open_gate("second.gate")
    assert code_of(owner) == 0

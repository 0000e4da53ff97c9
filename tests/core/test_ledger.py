"""The ledger: the rows of the full projection, at less cost."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from ropewalk.core import log
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import Event, ExecutionAccepted, NodeFailed, NodesStarted
from ropewalk.core.plan import Plan, load_plan
from ropewalk.core.rows import RunLedger, rows
from ropewalk.core.rows.ledger import _row
from ropewalk.core.rows.tables import RunRow
from ropewalk.core.signals import Lost, Retry, Returned, Start
from tests.core.executions import NOON, accepted, bad, ok, once, tell, workflow

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))


def ledger_rows(plan: Plan, events: list[Event], at_once: int) -> tuple[dict, dict]:
    """What a store would hold after taking the events in portions of this size."""
    first = events[0]
    assert isinstance(first, ExecutionAccepted)
    ledger = RunLedger(plan, first)
    runs, letters = {}, {}
    for start in range(0, len(events), at_once):
        first = ledger.add(events[start : start + at_once])
        new_runs, new_letters = ledger.take()
        runs |= {run.id: str(run) for run in [_row(run) for run in first or ()] + new_runs}
        letters |= {letter.id: str(letter) for letter in new_letters}
    return runs, letters


def projected_rows(plan: Plan, events: list[Event]) -> tuple[dict, dict]:
    projected = rows(plan, events)
    return {run.id: _as_booked(run) for run in projected.runs}, {each.id: str(each) for each in projected.letters}


def _as_booked(run: RunRow) -> str:
    """Without what no row tells of an error."""
    error = None if run.error is None else RunError(run.error.type, run.error.message)
    return str(replace(run, error=error))


def story(plan: Plan, *signals) -> list[Event]:
    execution = accepted(plan)
    return [execution.accepted, *tell(execution, Start(), *signals)]


DIAMOND = workflow([{"id": "a"}, once("b"), {"id": "c"}, {"id": "d"}], "a->b", "a->c", "b->d", "c->d")
STORIES = {
    "all goes well": (DIAMOND, [ok("a"), ok("b"), ok("c"), ok("d")]),
    "one gives up, and is tried again": (
        DIAMOND, [ok("a"), ok("c"), bad("b"), Retry("ann"), Start(), ok("b", attempt=2), ok("d")],
    ),
    "a worker is lost, another stops": (
        DIAMOND, [Returned("a", 1), ok("a"), Lost("b", 1), ok("c"), Retry("ann"), Start(), ok("b", attempt=2), ok("d")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("at_once", [1, 3, 100])
@pytest.mark.parametrize("name", STORIES)
def test_the_ledger_books_what_the_projection_shows(name, at_once):
    plan, signals = STORIES[name]
    events = story(plan, *signals)

    booked, letters = ledger_rows(plan, events, at_once)

    shown = projected_rows(plan, events)
    assert booked == shown[0]
    assert letters == shown[1]


def test_while_all_goes_well_nothing_changes_but_first_runs():
    plan, signals = STORIES["all goes well"]
    events = story(plan, *signals)
    ledger = RunLedger(plan, events[0])

    told = ledger.add(events)

    shown = [(run.id, events[0].execution, run.node, run.started, run.finished) for run in rows(plan, events).runs]
    assert told == shown
    assert ledger.take() == ([], [])


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_the_ledger_books_recorded_histories(path):
    history = json.loads(path.read_text())
    plan = load_plan(json.dumps(history["definition"]).encode())
    events = list(log.decode_all(json.dumps(entry).encode() for entry in history["log"]))

    assert ledger_rows(plan, events, 2) == projected_rows(plan, events)


def test_what_no_row_tells_of_an_error_is_not_kept_with_a_failed_run():
    plan = workflow("a")
    ledger = RunLedger(plan, ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash"))
    error = RunError(ErrorType.PERMANENT, "no", "a traceback", status=404, body="a body")

    ledger.add([NodesStarted(NOON, ("a",)), NodeFailed(NOON, "a", error, 1)])
    (run,), _ = ledger.take()

    assert run.error == RunError(ErrorType.PERMANENT, "no")

"""The trace of a start over HTTP: continued, kept with the execution and its runs, and shown wherever they are."""

from typing import Any

import pytest

from ropewalk.core import log
from ropewalk.core.events import RunWaiting
from ropewalk.store import log as stored_log
from ropewalk.store import runs
from tests.api.house import House
from tests.api.stories import ASK, Town
from tests.store.samples import meddle

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"
LISTS = [
    "/api/v1/workflow/executions",
    "/api/v1/workflow/executions/{execution}/runs",
    "/api/v1/workflow/runs?executionId={execution}",
    "/v1/WorkflowExecution",
    "/v1/Run?executionId={execution}",
]
SINGLE = [
    "/api/v1/workflow/executions/{execution}",
    "/api/v1/workflow/runs/{run}",
    "/v1/WorkflowExecution/{execution}",
    "/v1/Run/{run}",
]
ONE: dict[str, Any] = {"ropewalk": 1, "name": "one", "nodes": [{"id": "a", "type": "noop"}]}


async def started(house: House, document: Any, **headers: str) -> str:
    body = {"workflowDefinitionId": await house.save(document)}
    answer = await house.ask("POST", "/workflow/executions/start", json=body, headers=headers)
    assert answer.status_code == 202
    execution = str(answer.json()["executionId"])
    await house.service.ended(execution)
    return execution


async def shown(house: House, execution: str) -> str:
    return str((await house.ask("GET", f"/workflow/executions/{execution}")).json()["traceId"])


async def traces(house: House, paths: list[str], execution: str) -> dict[str, list[str | None]]:
    """By path, the trace of what is shown there: of the one, or of each in a list."""
    [run] = await runs.listed(house.backend.store, execution)
    shown = {}
    async with house.client(house.root) as client:
        for path in paths:
            found = (await client.get(path.format(execution=execution, run=run.id))).json()
            items = found if isinstance(found, list) else found.get("items", [found])
            shown[path] = [each["traceId"] for each in items]
    return shown


async def test_a_traceparent_is_continued_and_shown_wherever_an_execution_or_a_run_is(house: House):
    execution = await started(house, ONE, traceparent=TRACEPARENT)

    assert await traces(house, [*LISTS, *SINGLE], execution) == {path: [TRACE] for path in (*LISTS, *SINGLE)}


async def test_what_is_not_over_is_shown_with_its_trace(town: Town):
    execution = await town.service.start(await town.service.save(ASK), trace=TRACEPARENT)
    await town.until(execution, RunWaiting)

    assert await traces(town, [*LISTS, *SINGLE], execution) == {path: [TRACE] for path in (*LISTS, *SINGLE)}


@pytest.mark.parametrize("header", ["", "nonsense", f"00-{'0' * 32}-{SPAN}-01", "00-" + "x" * 5_000])
async def test_a_hostile_traceparent_is_ignored(house: House, header: str):
    execution = await started(house, ONE, traceparent=header)

    assert await shown(house, execution) == execution.replace("-", "")


async def test_a_child_stays_in_the_trace_of_the_start(house: House):
    await house.save(ONE)
    above = {"name": "above", "nodes": [{"id": "a", "type": "subworkflow", "with": {"workflow": "one"}}]}

    parent = await started(house, above, traceparent=TRACEPARENT)

    found = (await house.ask("GET", "/workflow/executions")).json()["items"]
    [child] = [each["id"] for each in found if each["parentExecutionId"] == parent]
    assert await shown(house, child) == TRACE


async def test_what_an_earlier_version_kept_without_its_trace_has_none_in_lists_only(house: House):
    execution = await started(house, ONE, traceparent=TRACEPARENT)
    for table in ("execution", "run"):
        await meddle(house.backend.store, f"update {table} set trace_id = null")

    assert await traces(house, LISTS, execution) == {path: [None] for path in LISTS}
    assert await traces(house, SINGLE, execution) == {path: [TRACE] for path in SINGLE}


async def test_a_log_without_a_trace_says_nothing_of_one(house: House):
    execution = await started(house, ONE)

    [(_, entry), *_] = await stored_log.entries(house.backend.store, execution)
    assert b"trace" not in entry
    assert log.decode(entry)[1][0].trace is None

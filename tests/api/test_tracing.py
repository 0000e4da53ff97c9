"""The trace of a start over HTTP: continued, kept in the log, and shown."""

from typing import Any

import pytest

from ropewalk.core import log
from ropewalk.store import log as stored_log
from tests.api.house import House

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
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


async def test_a_traceparent_is_continued_and_shown_on_executions_and_runs(house: House):
    execution = await started(house, ONE, traceparent=f"00-{TRACE}-{SPAN}-01")

    [run] = (await house.ask("GET", f"/workflow/executions/{execution}/runs")).json()["items"]
    details = (await house.ask("GET", f"/workflow/runs/{run['id']}")).json()
    assert await shown(house, execution) == TRACE
    assert details["traceId"] == TRACE


@pytest.mark.parametrize("header", ["", "nonsense", f"00-{'0' * 32}-{SPAN}-01", "00-" + "x" * 5_000])
async def test_a_hostile_traceparent_is_ignored(house: House, header: str):
    execution = await started(house, ONE, traceparent=header)

    assert await shown(house, execution) == execution.replace("-", "")


async def test_a_child_stays_in_the_trace_of_the_start(house: House):
    await house.save(ONE)
    above = {"name": "above", "nodes": [{"id": "a", "type": "subworkflow", "with": {"workflow": "one"}}]}

    parent = await started(house, above, traceparent=f"00-{TRACE}-{SPAN}-01")

    found = (await house.ask("GET", "/workflow/executions")).json()["items"]
    [child] = [each["id"] for each in found if each["parentExecutionId"] == parent]
    assert await shown(house, child) == TRACE


async def test_a_log_without_a_trace_says_nothing_of_one(house: House):
    execution = await started(house, ONE)

    [(_, entry), *_] = await stored_log.entries(house.office.store, execution)
    assert b"trace" not in entry
    assert log.decode(entry)[1][0].trace is None

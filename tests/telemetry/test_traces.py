"""Spans as a receiver gets them: an execution, and under it every attempt."""

import builtins
from typing import Any

import pytest

from ropewalk.core.errors import InvalidInput
from ropewalk.engines.base import StartRequest
from ropewalk.service import Service
from ropewalk.store.rows import ROWS
from ropewalk.telemetry.facts import RunFact
from ropewalk.telemetry.metrics import Metrics
from ropewalk.telemetry.traces import open_spans
from ropewalk.telemetry.watch import Watch
from tests.telemetry.receiver import Receiver, attributes, receiving

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
FAILING = {
    "name": "failing",
    "nodes": [
        {"id": "a", "type": "noop"},
        {"id": "b", "type": "fail", "with": {"message": "no"}},
        {"id": "c", "type": "noop", "forEach": [1, 2]},
    ],
    "edges": [{"from": "a", "to": "b"}, {"from": "a", "to": "c"}],
}
ONE = {"name": "one", "nodes": [{"id": "a", "type": "noop"}]}


async def told(service: Service, document: Any, trace: str | None = None) -> tuple[str, Receiver]:
    """An execution that came to its end, and what the receiver got of it."""
    with receiving() as receiver:
        watch = Watch(Metrics(), open_spans(receiver.endpoint, "ropes"))
        service.engine.observe(watch)
        version = await service.save(document)
        execution = await service.engine.start(StartRequest(version=version, trace=trace))
        await service.ended(execution)
        watch.close()
    return execution, receiver


async def test_an_execution_is_a_span_with_its_runs_below(service: Service):
    execution, receiver = await told(service, FAILING)

    [whole] = receiver.named("execution")
    runs = receiver.named("run.execute")
    assert receiver.paths == {"/v1/traces"}
    assert receiver.services == {"ropes"}
    assert {run.parent_span_id for run in runs} == {whole.span_id}
    assert {span.trace_id.hex() for span in receiver.spans} == {execution.replace("-", "")}
    assert attributes(whole)["ropewalk.state"] == "FAILED"
    assert whole.parent_span_id == b""


async def test_a_run_says_which_attempt_at_what_it_was_and_how_it_ended(service: Service):
    execution, receiver = await told(service, FAILING)

    found = [attributes(run) for run in receiver.named("run.execute")]
    known = {run["ropewalk.run"] for run in found}
    places = {(run["ropewalk.node"], run.get("ropewalk.item"), run["ropewalk.state"]) for run in found}
    assert {("a", None, "SUCCESS"), ("b", None, "DLQ"), ("c", 0, "SUCCESS"), ("c", 1, "SUCCESS")} <= places
    assert all(run["ropewalk.execution"] == execution and run["ropewalk.attempt"] == 1 for run in found)
    assert [run["error.type"] for run in found if run["ropewalk.node"] == "b"] == ["PERMANENT"]
    rows = await service.store.fetch("list_runs", execution, "", None, None, 100)
    assert {row[0] for row in rows} <= known


async def test_a_run_lies_within_its_execution(service: Service):
    _, receiver = await told(service, FAILING)

    [whole] = receiver.named("execution")
    for run in receiver.named("run.execute"):
        assert (
            whole.start_time_unix_nano <= run.start_time_unix_nano <= run.end_time_unix_nano <= whole.end_time_unix_nano
        )


async def test_the_trace_of_the_start_is_continued(service: Service):
    _, receiver = await told(service, ONE, f"00-{TRACE}-{SPAN}-01")

    [whole] = receiver.named("execution")
    assert {span.trace_id.hex() for span in receiver.spans} == {TRACE}
    assert whole.parent_span_id.hex() == SPAN


async def test_what_the_caller_does_not_sample_is_not_told(service: Service):
    _, receiver = await told(service, ONE, f"00-{TRACE}-{SPAN}-00")

    assert receiver.spans == []


def test_without_the_packages_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch):
    load = builtins.__import__

    def without_sdk(name: str, *more: Any) -> Any:
        if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter")):
            raise ImportError(name)
        return load(name, *more)

    monkeypatch.setattr(builtins, "__import__", without_sdk)

    with pytest.raises(InvalidInput, match=r"ropewalk\[otel\]"):
        open_spans("http://127.0.0.1:1", "ropes")


def test_a_run_is_told_as_its_row_has_it():
    assert RunFact._fields == ROWS["upsert_run"]

"""What the settings say about telemetry, and what comes of it."""

import asyncio
import io
import logging
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ropewalk.cli.views.logs import logging_as
from ropewalk.cli.views.progress import LogView
from ropewalk.configuration import resolve
from ropewalk.core.errors import InvalidInput
from ropewalk.service.metrics import Sampler
from ropewalk.telemetry.metrics import Sample
from ropewalk.wiring import LogForm, Settings, TelemetrySettings, open_service
from ropewalk.wiring import telemetry as wired
from tests.telemetry.receiver import receiving

ONE = {"name": "one", "nodes": [{"id": "a", "type": "noop"}]}


async def test_an_engine_without_telemetry_has_no_observer(tmp_path: Path):
    async with open_service(Settings(db=str(tmp_path / "ropewalk.db"))) as service:
        assert service.engine.observer is None


async def test_a_receiver_gets_spans_and_figures_before_the_end(tmp_path: Path):
    with receiving() as receiver:
        telemetry = TelemetrySettings(otlp_endpoint=receiver.endpoint, service_name="ropes")
        async with open_service(Settings(db=str(tmp_path / "ropewalk.db"), telemetry=telemetry)) as service:
            for _ in range(3):
                await service.ended(await service.start(await service.save(ONE)))

    assert receiver.paths == {"/v1/traces", "/v1/metrics"}
    assert len(receiver.named("execution")) == len(receiver.named("run.execute")) == 3
    [started] = receiver.metrics["ropewalk_executions_started"].sum.data_points
    [attempts] = receiver.metrics["ropewalk_node_attempts"].histogram.data_points
    assert started.as_double == 3
    assert (attempts.count, attempts.sum, attempts.bucket_counts[0]) == (3, 3, 3)
    assert len(attempts.bucket_counts) == len(attempts.explicit_bounds) + 1
    assert sum(attempts.bucket_counts) == 3


async def test_figures_are_sent_after_those_of_one_moment_could_not_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    sample, left = Sampler.sample, [1]

    async def faulty(sampler: Sampler) -> Sample | None:
        if left:
            left.pop()
            raise ZeroDivisionError
        asked.set()
        return await sample(sampler)

    asked = asyncio.Event()
    monkeypatch.setattr(wired, "METRICS_EVERY", 0.01)
    monkeypatch.setattr(Sampler, "sample", faulty)
    with receiving() as receiver:
        telemetry = TelemetrySettings(otlp_endpoint=receiver.endpoint)
        async with open_service(Settings(db=str(tmp_path / "ropewalk.db"), telemetry=telemetry)), asyncio.timeout(20):
            await asked.wait()

    assert [each.getMessage() for each in caplog.records if each.exc_info] == [
        "the metrics cannot be sent now; it is tried again"
    ]


async def test_a_receiver_whose_name_has_no_answer_keeps_no_worker_from_leaving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    may_answer, known = threading.Event(), socket.getaddrinfo

    def silent(host: Any, *arguments: Any, **more: Any) -> Any:
        if host == "collector.silent":
            may_answer.wait(60)
        return known(host, *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    monkeypatch.setattr(wired, "SENDING", 0.1)
    telemetry = TelemetrySettings(otlp_endpoint="http://collector.silent:4318")
    try:
        async with asyncio.timeout(20), open_service(Settings(db=str(tmp_path / "ropewalk.db"), telemetry=telemetry)):
            pass
    finally:
        may_answer.set()

    assert "telemetry could not be sent within 0.1 s: is the receiver there?" in caplog.text


@pytest.mark.parametrize(
    ("environment", "endpoint"),
    [
        ({}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318"}, "http://a:4318"),
        ({"ROPEWALK_TELEMETRY_OTLP_ENDPOINT": "http://b:4318"}, "http://b:4318"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318", "ROPEWALK_TELEMETRY_OTLP_ENDPOINT": "http://b:4318"},
            "http://b:4318",
        ),
    ],
)
def test_where_traces_go_is_said_by_the_environment(environment: dict[str, str], endpoint: str | None):
    settings = Settings.of(resolve(environment=environment, folder=None))

    assert settings.telemetry.otlp_endpoint == endpoint


def test_a_log_form_that_is_none_is_refused():
    with pytest.raises(InvalidInput, match=r"telemetry\.log"):
        Settings.of(resolve(environment={"ROPEWALK_TELEMETRY_LOG": "xml"}, folder=None))


@pytest.mark.parametrize(("form", "start"), [(LogForm.JSON, "{"), (LogForm.CONSOLE, "20"), (LogForm.PLAIN, "")])
def test_logs_are_written_in_the_form_that_is_set(form: LogForm, start: str, capsys: pytest.CaptureFixture[str]):
    view = LogView(Console(file=io.StringIO()), is_json=False)
    with logging_as(form, view):
        logging.getLogger("ropewalk.engine").warning("slow")

    written = capsys.readouterr().err
    assert written.startswith(start)
    assert ("slow" in written) == (form is not LogForm.PLAIN)

"""The log: a line a time, with the ids it is about."""

import io
import json
import logging
from typing import Any

import pytest

from ropewalk.service import Service
from ropewalk.telemetry.facts import Undispatched
from ropewalk.telemetry.logs import Format, logger, logs_to
from ropewalk.telemetry.metrics import Metrics
from ropewalk.telemetry.watch import Watch

SAYS = {"name": "says", "nodes": [{"id": "a", "type": "log", "with": {"message": "hello"}}]}


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def test_the_life_of_an_execution_is_told_with_its_ids(service: Service):
    stream, watch = io.StringIO(), Watch(Metrics())
    service.engine.observe(watch)

    with logs_to(stream, Format.JSON, watch.identify):
        execution = await service.start(await service.save(SAYS))
        await service.ended(execution)

    told = [line for line in lines(stream) if line.get("executionId") == execution]
    assert [line["event"] for line in told] == ["execution.dispatched", "hello", "execution.ended"]
    assert {line["traceId"] for line in told} == {execution.replace("-", "")}
    assert {line["level"] for line in told} == {"info"}


async def test_what_a_node_writes_names_the_very_run(service: Service):
    stream, watch = io.StringIO(), Watch(Metrics())
    service.engine.observe(watch)

    with logs_to(stream, Format.JSON, watch.identify):
        execution = await service.start(await service.save(SAYS))
        await service.ended(execution)

    [said] = [line for line in lines(stream) if line["event"] == "hello"]
    [run] = await service.store.fetch("list_runs", execution, "", None, None, 10)
    assert (said["node"], said["attempt"], said["runId"]) == ("a", 1, run[0])


@pytest.mark.parametrize(
    ("is_given_up", "event"), [(False, "execution.dispatch_failed"), (True, "execution.abandoned")]
)
def test_a_failed_dispatch_is_an_error_with_its_reason(is_given_up: bool, event: str):
    stream = io.StringIO()

    with logs_to(stream, Format.JSON):
        Watch(Metrics()).undispatched(Undispatched("e1", "acme", 2, "gone", is_given_up))

    [line] = lines(stream)
    assert (line["event"], line["level"], line["reason"]) == (event, "error", "gone")
    assert (line["executionId"], line["workspaceId"], line["attempts"]) == ("e1", "acme", 2)


def test_what_is_full_is_said_once_in_a_while():
    stream, watch = io.StringIO(), Watch(Metrics())

    with logs_to(stream, Format.JSON):
        for _ in range(100):
            watch.at_capacity()

    assert [line["event"] for line in lines(stream)] == ["queue.at_capacity"]


def test_plain_records_are_lines_too_with_their_tracebacks():
    stream = io.StringIO()

    with logs_to(stream, Format.JSON):
        try:
            raise ValueError("bad\nthing")
        except ValueError:
            logging.getLogger("ropewalk.api").exception("it failed (%s)", 7)

    [line] = lines(stream)
    assert (line["event"], line["logger"]) == ("it failed (7)", "ropewalk.api")
    assert "ValueError" in line["exception"]


def test_people_get_text():
    stream = io.StringIO()

    with logs_to(stream, Format.CONSOLE):
        logging.getLogger("ropewalk.engine").warning("slow")

    assert "slow" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_logging_is_as_before_afterwards():
    root = logging.getLogger("ropewalk")
    before = (list(root.handlers), root.level, root.propagate)

    with logs_to(io.StringIO(), Format.JSON):
        pass

    assert (list(root.handlers), root.level, root.propagate) == before


HOSTILE = "paid\n2026-11-18T00:00:00Z  engine │ all is well\r\x1b[2J\x85\u2028end"


@pytest.mark.parametrize("form", list(Format))
def test_one_event_is_one_line_with_any_payload(form: Format):
    stream = io.StringIO()
    about = {"execution": HOSTILE, "workspace": HOSTILE, "node": HOSTILE, "attempt": 1, "item": None}

    with logs_to(stream, form):
        logging.getLogger("ropewalk.node").warning(
            "%s", HOSTILE, extra={"about": about, "fields": {HOSTILE: [HOSTILE]}}
        )
        try:
            raise ValueError(HOSTILE)
        except ValueError:
            logging.getLogger(f"ropewalk.{HOSTILE}").exception(HOSTILE)
        logger(HOSTILE).error(HOSTILE, **{HOSTILE: HOSTILE})

    written = stream.getvalue()
    assert len(written.splitlines()) == written.count("\n") == 3
    assert all(sign == "\n" or sign.isprintable() for sign in written)

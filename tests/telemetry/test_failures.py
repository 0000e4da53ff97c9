"""Every failure is a line in the log: what failed, where, how often, and why."""

import io
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from rich.console import Console

from ropewalk.cli.views.progress import LogView
from ropewalk.cli.views.progress import logs_to as told_by
from ropewalk.nodes.base import NodeContext, NodeFailure, Registry
from ropewalk.nodes.function import node
from ropewalk.service import Service
from ropewalk.store import dlq
from ropewalk.telemetry.logs import Format, logs_to
from ropewalk.wiring import Settings, open_service

SOON = {"maxAttempts": 2, "delay": "1ms", "jitter": 0}
FORGED = "no\n2026-11-18 00:00:00  ERROR    engine │ forged\r\x1b[2J\x85\u2028" + "x" * 2**20
SECRET = "tok-4f9a77e1c0de55aa"
NAMES = ("run.failed", "run.retried", "run.dead_letter", "node.failed", "execution.failed", "execution.timed_out")


@node
async def charge(order: str) -> None:
    raise KeyError(order)


@node
async def refuse(order: str) -> None:
    raise NodeFailure.permanent(order)


@node
async def leak(order: str, context: NodeContext) -> None:
    context.conceal(SECRET)
    raise ValueError(f"{order} {SECRET}")


@node
async def fall(order: str) -> None:
    await fall.function(order)


@pytest.fixture
async def shop(tmp_path: Any) -> AsyncIterator[Service]:
    types = Registry.builtin()
    for each in (charge, refuse, leak, fall):
        types.register(each)
    async with open_service(Settings(db=str(tmp_path / "shop.db")), types) as service:
        yield service


def flow(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "shop", "nodes": list(nodes), **more}


async def written(shop: Service, document: dict[str, Any], form: Format = Format.JSON, given: Any = "a7") -> str:
    """What is logged of one execution, from its start to its end."""
    stream = io.StringIO()
    with logs_to(stream, form):
        await shop.ended(await shop.start(await shop.save(document), given))
    return stream.getvalue()


def told(text: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, text.splitlines()) if line["event"] in NAMES]


PAY = {"id": "pay", "type": "charge", "with": {"order": "{{ input }}"}, "retry": SOON}


async def test_a_failed_attempt_a_retry_a_dead_letter_and_a_failed_execution_are_a_line_each(shop: Service):
    lines = told(await written(shop, flow(PAY)))

    assert [(line["event"], line["level"], line.get("attempt")) for line in lines] == [
        ("run.failed", "warning", 1),
        ("run.retried", "info", 2),
        ("run.failed", "warning", 2),
        ("run.dead_letter", "error", 2),
        ("execution.failed", "error", None),
    ]


async def test_each_line_says_what_failed_where_and_why(shop: Service):
    lines = told(await written(shop, flow(PAY)))

    (execution,) = {line["executionId"] for line in lines}
    assert {line["workflow"] for line in lines} == {"shop"}
    assert {line["workspaceId"] for line in lines} == {"default"}
    assert {line["traceId"] for line in lines} == {execution.replace("-", "")}
    assert {line["node"] for line in lines[:4]} == {"pay"}
    assert [line["error"] for line in lines if "error" in line] == ["KeyError: 'a7'"] * 3 + ["pay: KeyError: 'a7'"]
    assert {line["errorType"] for line in lines if line["event"] == "run.failed"} == {"TRANSIENT"}
    assert lines[3]["failureType"] == "MAX_RETRIES"
    assert [each.id for each in await dlq.of_execution(shop.store, execution)] == [lines[3]["deadLetterId"]]


async def test_programs_get_the_traceback_and_people_who_read_lines_do_not(shop: Service):
    lines = told(await written(shop, flow(PAY)))
    text = await written(shop, flow(PAY), Format.CONSOLE)

    assert [line["errorDetail"].splitlines()[-1] for line in lines if line["event"] == "run.failed"] == [
        "KeyError: 'a7'"
    ] * 2
    assert "Traceback" not in text
    assert "run.failed" in text


async def test_an_execution_that_ends_in_timeout_is_an_error(shop: Service):
    lines = told(await written(shop, flow({"id": "ask", "type": "approval", "with": {"title": "?"}}, timeout="5ms")))

    assert [(line["event"], line["level"]) for line in lines] == [("execution.timed_out", "error")]


async def test_each_failed_item_is_told_and_each_dead_letter_once(shop: Service):
    each = {**PAY, "type": "refuse", "forEach": [1, 2, 3], "with": {"order": "no {{ item }}"}, "failureTolerance": 1}

    lines = told(await written(shop, flow(each)))

    assert sorted(line["item"] for line in lines if line["event"] == "run.failed") == [0, 1, 2]
    assert sorted(line["item"] for line in lines if line["event"] == "run.dead_letter") == [0, 1, 2]
    assert [line["event"] for line in lines if line["event"].startswith(("node", "execution"))] == [
        "node.failed", "execution.failed",
    ]  # fmt: skip


async def test_a_failure_that_an_error_edge_handles_is_told_and_makes_no_error(shop: Service):
    handled = flow(
        {**PAY, "type": "refuse"},
        {"id": "alert", "type": "noop"},
        edges=[{"from": "pay", "to": "alert", "on": "error"}],
    )

    lines = told(await written(shop, handled))

    assert [(line["event"], line["level"]) for line in lines] == [("run.failed", "warning")]


async def test_what_succeeds_is_no_failure(shop: Service):
    assert told(await written(shop, flow({"id": "a", "type": "noop"}))) == []


async def test_no_message_forges_a_line_and_each_is_bounded(shop: Service):
    for form in Format:
        text = await written(shop, flow({**PAY, "type": "refuse"}), form, FORGED)

        assert [line for line in text.splitlines() if line.startswith(("2026-11-18 00:00:00", "\x1b"))] == []
        assert all(sign == "\n" or sign.isprintable() for sign in text)
        assert max(map(len, text.splitlines())) < 40_000


async def test_the_plain_log_shows_levels_and_where_it_failed(shop: Service):
    stream = io.StringIO()
    view = LogView(Console(file=stream, width=2_000), is_json=False)

    with told_by(view):
        execution = await shop.start(await shop.save(flow(PAY)), "a7")
        await shop.ended(execution)

    lines = [line[21:] for line in stream.getvalue().splitlines()]
    assert [line.split()[0] for line in lines] == ["WARNING", "INFO", "WARNING", "ERROR", "ERROR"]
    assert lines[0].startswith(f"WARNING  failure │ shop {execution}: pay: attempt 1 failed (TRANSIENT), retry in ")
    assert lines[0].endswith(": KeyError: 'a7'")
    assert lines[-1] == f"ERROR    failure │ shop {execution}: FAILED: pay: KeyError: 'a7'"


async def test_a_message_of_a_megabyte_is_one_short_plain_line(shop: Service):
    stream = io.StringIO()

    with told_by(LogView(Console(file=stream, width=5_000), is_json=False)):
        await shop.ended(await shop.start(await shop.save(flow({**PAY, "type": "refuse"})), FORGED))

    lines = stream.getvalue().splitlines()
    assert [line[21:].split()[0] for line in lines] == ["WARNING", "ERROR", "ERROR"]
    assert max(map(len, lines)) < 600
    assert all(sign == "\n" or sign.isprintable() for sign in stream.getvalue())


def test_what_other_libraries_log_follows_the_form_too():
    stream = io.StringIO()

    with logs_to(stream, Format.JSON):
        logging.getLogger("asyncio").error("Task exception was never retrieved\nTraceback")

    (line,) = map(json.loads, stream.getvalue().splitlines())
    assert (line["event"], line["logger"]) == ("Task exception was never retrieved\nTraceback", "asyncio")


async def test_a_secret_is_in_no_line(shop: Service):
    for form in Format:
        text = await written(shop, flow({**PAY, "type": "leak"}), form)

        assert "***" in text
        assert SECRET not in text


async def test_a_stack_without_end_is_a_bounded_line(shop: Service):
    lines = told(await written(shop, flow({**PAY, "type": "fall"})))

    assert [len(line["errorDetail"]) <= 8_000 for line in lines if line["event"] == "run.failed"] == [True, True]
    assert "frames left out" in lines[0]["errorDetail"]


async def test_in_a_program_of_its_own_the_line_is_one_line_too(shop: Service, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, "ropewalk.failure"):
        await shop.ended(await shop.start(await shop.save(flow({**PAY, "type": "refuse"})), FORGED))

    messages = [record.getMessage() for record in caplog.records if record.name == "ropewalk.failure"]
    assert len(messages) == 3
    assert all(message.isprintable() for message in messages)

"""Triggers on the command line: listed, switched and fired, on a store of one's own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke

Answer = Callable[..., Any]
HOURLY = {
    "name": "hourly",
    "nodes": [{"id": "a", "type": "noop"}],
    "triggers": [{"cron": "0 3 * * *", "zone": "Europe/Berlin", "name": "clock"}],
}


@pytest.fixture(autouse=True)
def hourly(project: Path, invoke: Invoke) -> None:
    (project / "hourly.json").write_text(json.dumps(HOURLY), encoding="utf-8")
    invoke("run", "hourly.json")


def test_a_trigger_is_listed_shown_and_explained(invoke: Invoke, answer: Answer):
    (found,) = answer("triggers", "ls")

    assert (found["name"], found["words"]) == ("clock", "at 03:00 every day, Europe/Berlin")
    assert "clock" in invoke("triggers", "ls").stdout
    assert "part of   the definition" in invoke("triggers", "show", "clock").stdout
    assert invoke("triggers", "explain", "clock").stdout.splitlines()[1].startswith("  next at ")
    assert len(invoke("triggers", "next", "clock", "--count", "3").stdout.splitlines()) == 4
    assert invoke("triggers", "fires", "clock").stdout == "it has not fired yet\n"


def test_a_trigger_is_switched_fired_and_tried_out(invoke: Invoke, answer: Answer):
    assert invoke("triggers", "disable", "clock").stdout == "off\n"
    assert invoke("triggers", "disable", "clock").stdout == "off already\n"
    assert "starts" in answer("triggers", "test", "clock")

    fired = answer("triggers", "fire", "clock")

    assert [each["executionId"] for each in answer("triggers", "fires", "clock")] == [fired["executionId"]]


def test_a_trigger_is_made_and_removed_by_hand(invoke: Invoke, answer: Answer):
    made = answer("triggers", "create", "hourly", '{"every": "15m", "name": "mine"}')
    bad = invoke("triggers", "create", "hourly", '{"every": "0s"}')

    assert made["words"] == "every 15m"
    assert bad.exit_code == 2
    assert "must be from 1s" in bad.stderr
    assert invoke("triggers", "remove", "mine").stdout == "removed\n"
    assert invoke("triggers", "show", "mine").exit_code == 2


def test_a_range_is_tried_without_starting_anything(answer: Answer):
    span = ("--since", "2026-11-10T00:00:00Z", "--until", "2026-11-13T00:00:00Z")

    assert answer("triggers", "backfill", "clock", *span, "--dry-run")["count"] == 3

"""Breakers on the command line: listed with the rate they saw, and closed by hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import NODES, Invoke
from tests.client.servers import Served

Answer = Callable[..., Any]
TARGET = "http.request http://127.0.0.1:1"
DOWN = {
    "name": "down",
    "nodes": [
        {
            "id": "get",
            "type": "http.request",
            "with": {"url": "http://127.0.0.1:1/{{ item }}"},
            "forEach": list(range(10)),
            "failureTolerance": "100%",
            "retry": {"maxAttempts": 1},
        }
    ],
}


@pytest.fixture(autouse=True)
def down(project: Path) -> None:
    """A workflow whose ten calls all fail."""
    settings = f"nodes = [{json.dumps(NODES)}]\nallow_hosts = ['127.0.0.1']\n"
    (project / "ropewalk.toml").write_text(settings, encoding="utf-8")
    (project / "down.json").write_text(json.dumps(DOWN), encoding="utf-8")


def test_a_store_whose_calls_all_succeed_has_no_breakers(invoke: Invoke, answer: Answer):
    invoke("run", "hello.yaml")

    assert answer("breakers", "ls") == []
    assert invoke("breakers", "ls").stdout == "no breakers: no target has failed\n"


def test_an_open_breaker_is_listed_with_its_rate_and_closed_by_hand(invoke: Invoke, answer: Answer):
    invoke("run", "down.json")

    (found,) = answer("breakers", "ls")
    text = invoke("breakers", "ls").stdout
    first, second = invoke("breakers", "reset", *TARGET.split()), invoke("breakers", "reset", TARGET)

    assert (found["target"], found["state"], found["callCount"], found["failureCount"]) == (TARGET, "OPEN", 10, 10)
    assert "OPEN" in text
    assert "10 of 10 (100 %)" in text
    assert TARGET in text
    assert (first.stdout, second.stdout) == (f"{TARGET}: closed\n", f"{TARGET}: closed already\n")
    assert answer("breakers", "ls")[0]["state"] == "CLOSED"


def test_a_breaker_that_is_not_there_cannot_be_closed(invoke: Invoke):
    invoke("run", "hello.yaml")

    result = invoke("breakers", "reset", "http.request", "https://nowhere.example")

    assert result.exit_code == 2
    assert (
        "there is no breaker of 'http.request https://nowhere.example'; `ropewalk breakers ls` lists them"
        in result.stderr
    )


def test_a_server_shows_and_closes_its_breakers(server: Served, invoke: Invoke, answer: Answer):
    assert answer("breakers", "ls", "--server", server.url) == []
    result = invoke("breakers", "reset", "call nothing", "--server", server.url)

    assert result.exit_code == 2

"""The health port of a worker, on a real server, as a process of its own."""

import json
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.conftest import Invoke, Start, code_of, open_gate, told

PATHS = ("/healthz", "/readyz", "/metrics")


@pytest.fixture(autouse=True)
def url(database: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ROPEWALK_DB", database)
    return database


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def status(port: int, path: str, token: str | None = None) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx2.get(f"http://127.0.0.1:{port}{path}", headers=headers, timeout=20).status_code


def joined(start: Start, port: int, *options: str) -> subprocess.Popen[str]:
    worker = start("worker", "--lease", "2", "--health-port", str(port), *options)
    told(worker, f"health and figures at http://127.0.0.1:{port}")
    return worker


def admin_token(start: Start) -> str:
    """The token of a server on the same store, which is gone again."""
    server = start("up", "--port", "0", "--no-dispatch", "--json")
    assert server.stdout is not None
    token: str = json.loads(server.stdout.readline())["token"]
    server.send_signal(signal.SIGTERM)
    assert code_of(server) == 0
    return token


def test_a_worker_tells_that_it_lives_and_is_ready_and_its_figures_to_those_who_may_see_them(
    start: Start, answer: Callable[..., Any]
):
    token, port = admin_token(start), free_port()
    worker = joined(start, port)
    answer("run", "hello.yaml", "--detach")
    answer("executions", "show", "last")

    assert [status(port, path) for path in PATHS] == [200, 200, 401]
    figures = httpx2.get(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {token}"}, timeout=20)
    assert figures.status_code == 200
    assert "ropewalk_store_up 1.0" in figures.text
    assert "ropewalk_runs_ended_total" in figures.text
    assert status(port, "/api/v1/workflow/executions", token) == 404
    worker.send_signal(signal.SIGTERM)
    assert code_of(worker) == 0


def test_a_worker_that_drains_lives_and_is_not_ready(start: Start, answer: Callable[..., Any]):
    port = free_port()
    worker = joined(start, port, "--drain", "20")
    answer("run", "held.yaml", "--detach")
    told(worker, "first │ holding")

    worker.send_signal(signal.SIGTERM)
    told(worker, "draining")
    while_draining = [status(port, path) for path in ("/healthz", "/readyz")]
    open_gate("first.gate")

    assert while_draining == [200, 503]
    assert code_of(worker) == 0


def test_a_port_that_is_taken_is_said_before_the_worker_joins(start: Start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        worker = start("worker", "--health-port", str(taken.getsockname()[1]))
        _, said = worker.communicate(timeout=20)

    assert worker.returncode == 2
    assert "is taken: end what listens there, or choose another with --health-port" in said
    assert "has joined" not in said


@pytest.mark.parametrize(("value", "code"), [("70000", 2), ("-1", 2), ("x", 2)])
def test_a_port_that_is_none_is_refused(invoke: Invoke, value: str, code: int):
    assert invoke("worker", "--health-port", value).exit_code == code


def test_other_machines_are_let_in_only_by_explicit_word(invoke: Invoke):
    result = invoke("worker", "--health-port", "9", "--host", "0.0.0.0")

    assert result.exit_code == 2
    assert "say --allow-remote if that is meant" in result.stderr

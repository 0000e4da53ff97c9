"""examples/runner.py, with any answer of a server: it goes on, or it ends with words and not with a traceback."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

PROGRAM = str(Path(__file__).parents[2] / "examples" / "runner.py")
LEASE = "/api/v1/workflow/runs/lease"
RUN = {"runId": "r1", "leaseToken": "t1", "inputs": {}}
PATIENCE = 30.0


def carried_out(*arguments: str, token: str | None = "rw_token") -> tuple[int, str]:
    """How it ended, and what it said."""
    environment = {name: value for name, value in os.environ.items() if name != "ROPEWALK_TOKEN"}
    done = subprocess.run(
        [sys.executable, PROGRAM, *arguments], check=False, capture_output=True, text=True, timeout=PATIENCE,
        env=environment if token is None else {**environment, "ROPEWALK_TOKEN": token},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def answers(server: HTTPServer, path: str, status: int, body: Any, **headers: str) -> None:
    server.expect_ordered_request(path).respond_with_json(body, status, headers)


def gives_no_more(server: HTTPServer) -> str:
    """From here on there is nothing for it; its last words are given back."""
    answers(server, LEASE, 404, {"detail": "there is nothing at this address"})
    return f"{server.url_for('')} gives no runs of pool paint: there is nothing at this address\n"


def test_a_server_that_refuses_is_quoted(httpserver: HTTPServer):
    words = gives_no_more(httpserver)

    assert carried_out(httpserver.url_for(""), "paint") == (1, words)


def test_an_answer_that_is_no_problem_document_is_told_too(httpserver: HTTPServer):
    httpserver.expect_request(LEASE).respond_with_data("<html>", 400)

    code, said = carried_out(httpserver.url_for(""), "paint")

    assert (code, "HTTP Error 400" in said, "Traceback" in said) == (1, True, False)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_server_that_is_busy_is_asked_again(httpserver: HTTPServer, status: int):
    answers(httpserver, LEASE, status, {"detail": "try again"}, **{"Retry-After": "0"})
    words = gives_no_more(httpserver)

    code, said = carried_out(httpserver.url_for(""), "paint")

    assert (code, said.endswith(words), "asking again in 0 s" in said) == (1, True, True)


def test_a_run_that_is_anothers_by_now_is_let_go_of(httpserver: HTTPServer):
    answers(httpserver, LEASE, 200, {"runs": [RUN]})
    answers(httpserver, "/api/v1/workflow/runs/r1/complete", 409, {"detail": "the lease has ended"})
    words = gives_no_more(httpserver)

    code, said = carried_out(httpserver.url_for(""), "paint")

    assert (code, said) == (1, f"r1: complete was refused: the lease has ended\n{words}")


@pytest.mark.parametrize(("arguments", "token"), [((), "t"), (("http://127.0.0.1:1", "paint"), None)])
def test_without_what_it_needs_it_says_how_it_is_called(arguments: tuple[str, ...], token: str | None):
    assert carried_out(*arguments, token=token) == (1, "usage: ROPEWALK_TOKEN=… runner.py URL POOL\n")

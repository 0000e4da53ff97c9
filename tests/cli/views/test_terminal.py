"""What a terminal shows can be typed again; an output that is not read any more stops nothing."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Invoke, Start, code_of, in_terminal, open_gate, told

Answer = Callable[..., Any]
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def shown_by(*arguments: str, columns: int) -> list[str]:
    """The lines of a terminal, without colours."""
    return _COLOUR.sub("", in_terminal(list(arguments), columns=columns)[1]).splitlines()


@pytest.mark.parametrize("columns", [40, 80, 100, 160])
def test_every_id_a_terminal_shows_is_understood(columns: int, invoke: Invoke, answer: Answer):
    failed = json.loads(invoke("run", "paid.yaml", "--json").stdout)["id"]
    (letter,), (group,) = answer("dlq", "ls"), answer("dlq", "groups")

    execution = shown_by("executions", "ls", columns=columns)[-1 if columns > 40 else 1].split()[0]
    found = next(line for line in shown_by("dlq", "ls", columns=columns) if "pay" in line).split()[0]
    alike = next(line for line in shown_by("dlq", "groups", columns=columns) if "paid" in line).split()[1]

    assert answer("executions", "show", execution)["id"] == failed
    assert answer("dlq", "show", found)["id"] == letter["id"]
    assert [each["id"] for each in answer("dlq", "ls", "--fingerprint", alike)] == [letter["id"]]
    assert group["fingerprint"].startswith(alike)


@pytest.mark.parametrize("columns", [40, 80])
def test_every_command_a_terminal_advises_is_on_one_line_and_works(columns: int, invoke: Invoke):
    lines = shown_by("run", "paid.yaml", columns=columns)

    advised = [shlex.split(line[line.index("ropewalk ") :])[1:] for line in lines if "ropewalk " in line]

    assert any(line.startswith("✗ pay") and "FAILED" in line for line in lines)
    show, requeue, retry = advised
    assert (show[:2], requeue[:2], requeue[-2:], retry[0]) == (
        ["dlq", "show"], ["dlq", "requeue"], ["--set", "KEY=JSON"], "retry",
    )  # fmt: skip
    assert invoke(*show).exit_code == 0
    assert invoke("explain", *retry[1:]).exit_code == 0
    assert invoke(*requeue[:-1], 'card="4242"').exit_code == 0


def test_an_id_a_terminal_shows_is_understood_by_a_server(server: Any, invoke: Invoke):
    there = ("--server", server.url)
    failed = json.loads(invoke("run", "paid.yaml", "--json", *there).stdout)["id"]
    invoke("run", "hello.yaml", *there)

    assert json.loads(invoke("executions", "show", failed[-8:], "--json", *there).stdout)["id"] == failed
    assert json.loads(invoke("dlq", "show", "last", "--json", *there).stdout)["executionId"] == failed
    several = invoke("executions", "show", failed[:3], *there)
    assert (several.exit_code, failed in several.stderr) == (2, True)


# The output is not read any more


def unread(*arguments: str, stdout: bool = False, stderr: bool = False) -> subprocess.CompletedProcess[str]:
    """Carries a command out whose output goes into pipes that have been closed at the other end."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run(
            [sys.executable, "-m", "ropewalk", *arguments],
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdin=subprocess.DEVNULL,
            stdout=writing if stdout else subprocess.PIPE,
            stderr=writing if stderr else subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(writing)


@pytest.mark.parametrize(
    "arguments",
    [
        ("executions", "ls"),
        ("executions", "ls", "--json"),
        ("executions", "show", "last"),
        ("executions", "events", "last"),
        ("explain", "last"),
        ("dlq", "groups"),
        ("--help",),
    ],
)
def test_a_reader_that_is_gone_ends_a_command_without_a_word(arguments: tuple[str, ...], invoke: Invoke):
    invoke("run", "paid.yaml")

    ended = unread(*arguments, stdout=True)

    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("workflow", "options", "code"),
    [("flaky.yaml", (), 0), ("paid.yaml", (), 1), ("paid.yaml", ("--json",), 1)],
)
@pytest.mark.parametrize("streams", [{"stderr": True}, {"stdout": True}, {"stdout": True, "stderr": True}])
def test_an_execution_ends_as_it_would_though_its_output_is_not_read(
    streams: dict[str, bool], workflow: str, options: tuple[str, ...], code: int, answer: Answer
):
    ended = unread("run", workflow, *options, **streams)

    assert ended.returncode == code
    # The traceback of the user's node is shown on purpose; Ropewalk itself shows none.
    assert "BrokenPipeError" not in (ended.stderr or "")
    assert str(ROOT / "src" / "ropewalk") not in (ended.stderr or "")
    assert answer("executions", "show", "last")["state"] == ("FAILED" if code else "SUCCESS")


def test_a_reader_of_a_followed_execution_may_stop_reading(start: Start, answer: Answer):
    owner = start("run", "held.yaml")
    told(owner, "first │ holding")
    follower = start("executions", "events", "last", "--follow")
    assert follower.stdout is not None
    follower.stdout.readline()

    follower.stdout.close()
    open_gate("first.gate")

    assert code_of(follower) == 0
    assert answer("executions", "show", "last")["state"] == "RUNNING"
    open_gate("second.gate")
    assert code_of(owner) == 0


def test_a_mistake_is_its_exit_code_though_its_message_is_not_read():
    assert unread("executions", "show", "last", stdout=True, stderr=True).returncode == 2

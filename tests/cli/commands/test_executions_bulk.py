"""Many executions from the command line: searched, counted, confirmed, told; what waits for a person; and workflows."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke
from tests.client.servers import Served

Answer = Callable[..., Any]


@pytest.fixture(params=["idle file", "server"])
def asked(request: pytest.FixtureRequest, invoke: Invoke, answer: Answer, monkeypatch: pytest.MonkeyPatch
          ) -> list[str]:  # fmt: skip
    """Three executions that wait for a person, on a file that no process owns or on a server; the oldest first."""
    if request.param == "server":
        server: Served = request.getfixturevalue("server")
        monkeypatch.setenv("ROPEWALK_SERVER", server.url)
    ids = [answer("run", "asked.yaml", "--detach") for _ in range(3)]
    while len(answer("approvals")) < 3:
        pass
    if request.param != "server":
        invoke("run", "hello.yaml")
        os.kill(ids[0]["pid"], 9)
        os.waitpid(ids[0]["pid"], 0)
    else:
        invoke("run", "hello.yaml")
    return [each["executionId"] for each in ids]


def test_a_list_can_be_searched_narrowed_to_what_waits_and_says_how_many_more_there_are(
    asked: list[str], invoke: Invoke, answer: Answer
):
    waiting = answer("executions", "ls", "--waiting")
    found = answer("executions", "ls", "--search", "HELLO")
    page = invoke("executions", "ls", "--waiting", "--limit", "1")
    last = invoke("executions", "ls", "--waiting", "--limit", "2", "--before", asked[2])

    assert [(each["id"], each["waitingFor"]) for each in waiting] == [(each, "approval") for each in asked[::-1]]
    assert [each["workflow"] for each in found] == ["hello"]
    assert f"… 2 more: ropewalk executions ls --waiting --before {asked[2]}" in page.stderr
    assert ("more" in last.stderr, asked[0] in last.stdout, asked[1] in last.stdout) == (False, True, True)
    assert answer("executions", "ls", "--search", "no such text") == []


def test_approvals_say_what_is_asked_who_may_answer_and_how(asked: list[str], invoke: Invoke, answer: Answer):
    text = invoke("approvals", "--limit", "1")
    found = answer("approvals")

    assert [(each["executionId"], each["title"]) for each in found] == [(each, "Really?") for each in asked[::-1]]
    assert f"ropewalk approve {asked[2]} ask" in text.stdout
    assert "may answer: operator, editor, admin" in text.stdout
    assert "… 2 more:" in text.stderr
    assert all(len(line) <= 80 for line in text.stdout.splitlines())


def test_many_are_cancelled_once_that_is_confirmed(asked: list[str], invoke: Invoke, answer: Answer):
    unsure = invoke("cancel", "--workflow", "asked")
    counted = answer("cancel", "--workflow", "asked", "--dry-run")
    before = [each["state"] for each in answer("executions", "ls", "--workflow", "asked")]
    told = invoke("cancel", "--waiting", "--yes", "--limit", "2", "--reason", "closed")
    rest = invoke("cancel", "--search", asked[2], "--yes", "--json")
    nothing = invoke("cancel", "--workflow", "asked")

    assert (unsure.exit_code, counted["count"], before) == (2, 3, ["RUNNING"] * 3)
    assert "would cancel 3 executions, and there is no terminal to ask: say --yes, or --dry-run" in unsure.stderr
    assert told.stdout.splitlines() == [f"{each}  told to stop" for each in asked[:2]] + ["2 told to stop"]
    assert json.loads(rest.stdout) == {"executionId": asked[2], "outcome": "DONE", "reason": None}
    assert (nothing.exit_code, nothing.stdout) == (0, "no executions to cancel\n")
    assert {each["state"] for each in answer("executions", "ls", "--workflow", "asked")} == {"CANCELLED"}


def test_many_that_failed_are_retried(invoke: Invoke, answer: Answer):
    for _ in range(2):
        invoke("run", "paid.yaml")

    result = invoke("retry", "--search", "card has expired", "--yes")

    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "2 retried")
    assert answer("executions", "show", "last")["nodes"][0]["attempts"] == 2


@pytest.mark.parametrize(("said", "changed"), [("y\n", "CANCELLED"), ("n\n", "RUNNING")])
def test_a_person_is_asked_on_a_terminal(said: str, changed: str, asked: list[str], answer: Answer):
    outside, terminal = pty.openpty()
    command = [sys.executable, "-m", "ropewalk", "cancel", "--workflow", "asked"]
    with subprocess.Popen(
        command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        os.close(terminal)
        os.write(outside, said.encode())
        _, stderr = process.communicate(timeout=60)
    os.close(outside)

    assert (process.returncode, "cancel 3 executions? [y/N]" in stderr) == (0, True)
    assert {each["state"] for each in answer("executions", "ls", "--workflow", "asked")} == {changed}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cancel",), "name one EXECUTION, or say which ones"),
        (("cancel", "last", "--all"), "name one EXECUTION, or say which ones"),
        (("cancel", "--state", "failed"), "is not one of"),
        (("retry", "--state", "running"), "is not one of"),
        (("cancel", "--workflow", "nosuch"), "there is no workflow 'nosuch'"),
        (("retry", "--all", "--detach"), "--detach is for one EXECUTION"),
        (("keys", "ls"), "keys are for a server"),
        (("workflows", "show", "nosuch"), "there is no workflow 'nosuch'"),
        (("workflows", "show", "hello", "--version", "7"), "has no version 7"),
        (("workflows", "diff", "hello"), "has one version"),
        (("workflows", "publish", "hello", "--version", "7"), "has no version 7"),
        (("workflows", "publish", "hello.yaml", "--version", "1"), "--version is for a NAME"),
        (("workflows", "publish", "wrong.yaml"), "wrong.yaml:5: nodes[1].id"),
    ],
    ids=str,
)
def test_what_is_not_clear_is_refused(arguments: tuple[str, ...], words: str, invoke: Invoke):
    invoke("run", "hello.yaml")

    result = invoke(*arguments)

    assert (result.exit_code, words in result.stderr) == (2, True), result.output


@pytest.fixture(params=["file", "server"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where commands work: on a file, or through a server."""
    if request.param == "server":
        server: Served = request.getfixturevalue("server")
        monkeypatch.setenv("ROPEWALK_SERVER", server.url)
    return str(request.param)


def test_workflows_are_published_listed_shown_and_compared(place: str, invoke: Invoke, answer: Answer, project: Path):
    first = answer("workflows", "publish", "hello.yaml")
    (project / "hello.yaml").write_text((project / "hello.yaml").read_text().replace("Hello", "Good day"))
    second = invoke("workflows", "publish", "hello.yaml")
    again = answer("workflows", "publish", "hello.yaml")
    changes = answer("workflows", "diff", "hello")
    drawn = invoke("workflows", "diff", "hello").stdout
    back = invoke("workflows", "publish", "hello", "--version", "1")
    shown = invoke("workflows", "show", "hello", "--version", "2").stdout
    (listed,) = answer("workflows", "ls", "--name", "hel")
    (project / "shown.yaml").write_text(shown, encoding="utf-8")

    assert first == {"name": "hello", "version": 1, "changed": True}
    assert second.stdout == "hello: version 2 is published\n"
    assert again == {"name": "hello", "version": 2, "changed": False}
    assert (changes["from"], changes["to"], changes["changes"][0]["after"]) == (1, 2, {"word": "Good day"})
    assert '~ vars: {"word":"Hello"} → {"word":"Good day"}' in drawn
    assert back.stdout == "hello: version 1 is published\n"
    assert (listed["name"], listed["published"], listed["latest"]) == ("hello", 1, 2)
    assert shown.startswith("# hello v2 of v2, published: v1\n")
    assert answer("workflows", "publish", "shown.yaml") == {"name": "hello", "version": 2, "changed": True}


def test_a_version_is_published_by_the_process_that_owns_the_file(invoke: Invoke, answer: Answer):
    answer("run", "asked.yaml", "--detach")

    assert answer("workflows", "publish", "hello.yaml")["changed"] is True
    assert answer("workflows", "publish", "hello")["changed"] is False


def test_keys_of_a_server_are_made_listed_and_revoked(server: Served, invoke: Invoke, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROPEWALK_SERVER", server.url)

    made = invoke("keys", "create", "deploy", "--role", "operator", "--scope", "read", "--expires-in", "90d")
    (key, *_) = json.loads(invoke("keys", "ls", "--json").stdout)
    revoked = invoke("keys", "revoke", key["id"])
    listed = invoke("keys", "ls").stdout
    wrong = invoke("keys", "create", "x", "--role", "operator", "--expires-in", "soon")

    assert made.stdout.startswith(f"rw_{key['id']}_")
    assert (key["name"], key["role"], key["scopes"]) == ("deploy", "operator", ["read"])
    assert revoked.stdout == f"{key['id']}: revoked\n"
    assert (f"{key['id']}  operator" in listed, "revoked" in listed) == (True, True)
    assert (wrong.exit_code, "--expires-in" in wrong.stderr) == (2, True)

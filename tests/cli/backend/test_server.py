"""The command line with a server in place of a store: the same commands, the same answers."""

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.conftest import Invoke, Start, code_of, open_gate, told
from tests.client.servers import Served

Answer = Callable[..., Any]

_NORMAL = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\b([0-9a-f]{16}){1,2}\b"), "<hash>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+Z)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\dZ?\b"), "<time>"),
    (re.compile(r"\b\d+(\.\d)?m?s\b"), "<lapse>"),
    (re.compile(r" --server http://127\.0\.0\.1:\d+"), ""),
    (re.compile(r"(process \d+|http://127\.0\.0\.1:\d+) goes on"), "<owner> goes on"),
    (re.compile(r"[ ━]*━[ ━]*"), " <bar> "),
    (re.compile(r'"(by|reviewedBy|createdBy)": ?"[^"]*"'), r'"\1": "<someone>"'),
    (re.compile(r"\bby [a-z]+(:<hash>)?"), "by <someone>"),
    (re.compile(r"<time> [a-z]+(:<hash>)?: "), "<time> <someone>: "),
    (re.compile(r'"(durationMs|queueDelayMs)": ?[0-9.]+'), r'"\1": 0'),
    (re.compile(r'"(pid|server|db|workers)": ?("[^"]*"|null|\d+)(, )?'), ""),
    (re.compile(r" +"), " "),
)


def normal(text: str) -> list[str]:
    """What is said, without what is never the same twice."""
    lines = [_in_order(line) for line in text.splitlines()]
    for pattern, word in _NORMAL:
        lines = [pattern.sub(word, line) for line in lines]
    return [line.rstrip() for line in lines]


def _in_order(line: str) -> str:
    """An object with its keys sorted: their order says nothing."""
    return json.dumps(json.loads(line), sort_keys=True) if line.startswith(('{"', "[{")) else line


@pytest.fixture
def there(server: Served, invoke: Invoke) -> Invoke:
    """Carries a command out through the server."""
    return lambda *arguments, **more: invoke(*arguments, "--server", server.url, **more)


@pytest.fixture
def answer_there(there: Invoke) -> Answer:
    def ask(*arguments: str) -> Any:
        result = there(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return ask


STORIES = {
    "a workflow is run": [
        ("run", "hello.yaml"),
        ("run", "hello.yaml", "--input", '{"name": "you"}', "--var", "word=Bye"),
        ("run", "hello.yaml", "--json"),
        ("executions", "ls"),
        ("executions", "ls", "--json"),
        ("executions", "ls", "--workflow", "hello", "--state", "SUCCESS", "--limit", "2"),
        ("executions", "ls", "--workflow", "nosuch"),
        ("executions", "show", "last"),
        ("executions", "show", "last", "--json"),
        ("executions", "events", "last"),
        ("executions", "events", "last", "--json", "--after", "2"),
        ("executions", "events", "last", "--follow"),
        ("explain", "last"),
        ("explain", "last", "line"),
        ("explain", "last", "--json"),
    ],
    "a workflow fails": [
        ("run", "paid.yaml"),
        ("dlq", "ls"),
        ("dlq", "groups"),
        ("dlq", "show", "last"),
        ("dlq", "show", "last", "--json"),
        ("dlq", "note", "last", "asked the bank"),
        ("explain", "last"),
        ("executions", "show", "last"),
        ("dlq", "discard", "last", "--notes", "paid by hand"),
        ("dlq", "discard", "last"),
        ("dlq", "ls", "--resolution", "DISCARDED", "--json"),
    ],
    "many fail": [
        ("run", "paid.yaml"),
        ("run", "paid.yaml"),
        ("dlq", "groups", "--json"),
        ("dlq", "discard", "--workflow", "paid", "--notes", "void"),
        ("dlq", "discard", "--workflow", "paid"),
        ("dlq", "discard", "--workflow", "nosuch"),
    ],
    "nothing can be done": [
        ("run", "hello.yaml"),
        ("pause", "last"),
        ("cancel", "last", "--json"),
        ("retry", "last"),
        ("approve", "last"),
        ("signal", "last", "word", "{"),
        ("rerun", "last", "--from", "nosuch"),
        ("executions", "show", "zzzz"),
        ("executions", "show", "00000000-0000-7000-8000-000000000000"),
        ("dlq", "show", "00000000-0000-7000-8000-000000000000"),
        ("publish", "order.paid"),
        ("run", "hello.yaml", "--var", "nosuch=1"),
    ],
    "a file is wrong": [
        ("validate", "hello.yaml", "wrong.yaml"),
        ("validate", "wrong.yaml", "--json"),
        ("run", "wrong.yaml"),
        ("run", "wrong.yaml", "--json"),
        ("run", "nosuch.yaml"),
    ],
    "it is over in time or not": [("run", "late.yaml"), ("run", "flaky.yaml"), ("executions", "ls")],
}


@pytest.mark.parametrize("story", STORIES)
def test_through_a_server_every_command_says_the_same(story: str, invoke: Invoke, there: Invoke):
    for command in STORIES[story]:
        here, away = invoke(*command), there(*command)

        assert (away.exit_code, normal(away.stdout)) == (here.exit_code, normal(here.stdout)), command
        assert normal(away.stderr) == normal(here.stderr), command


VERBS = [
    ("asked.yaml", [("pause", "last", "--reason", "lunch"), ("pause", "last"), ("explain", "last"),
                    ("executions", "show", "last"), ("cancel", "last"), ("cancel", "last")]),
    ("asked.yaml", [("explain", "last", "--json"), ("approve", "last"), ("reject", "last", "ask")]),
    ("told.yaml", [("explain", "last"), ("signal", "last", "word", '{"n": 1}'), ("signal", "last", "word")]),
]  # fmt: skip


@pytest.mark.parametrize(("file", "commands"), VERBS)
def test_a_server_is_told_in_the_same_words_as_the_owner_of_a_store(
    file: str, commands: list[tuple[str, ...]], start: Start, invoke: Invoke, there: Invoke, answer_there: Answer
):
    owner = start("run", file)
    told(owner, "waits for")
    there("run", file, "--detach")
    _until_it_waits(answer_there)

    for command in commands:
        here, away = invoke(*command), there(*command)

        assert (away.exit_code, normal(away.stdout)) == (here.exit_code, normal(here.stdout)), command
        assert normal(away.stderr) == normal(here.stderr), command


def _until_it_waits(answer_there: Answer) -> None:
    # The verb is refused as long as the node has not begun to wait, and so is a pause in between.
    for _ in range(1000):
        if answer_there("explain", "last")["waitingFor"]:
            return
    raise AssertionError("it never waits")


def test_a_file_is_a_new_version_there_only_if_it_says_something_new(
    there: Invoke, answer_there: Answer, project: Path
):
    for _ in range(2):
        assert there("run", "hello.yaml").stdout == '"Hello, world!"\n'
    hello = project / "hello.yaml"
    hello.write_text(hello.read_text().replace("Hello }", "Salut }"))

    assert there("run", "hello.yaml").stdout == '"Salut, world!"\n'
    assert [each["version"] for each in answer_there("executions", "ls")] == [2, 1, 1]


def test_a_requeued_letter_goes_on_there(there: Invoke, answer_there: Answer):
    failed = json.loads(there("run", "paid.yaml", "--json").stdout)["id"]

    requeued = answer_there("dlq", "requeue", "last", "--set", "card=new")

    assert requeued["executionId"] == failed
    events = there("executions", "events", failed, "--follow").stdout
    assert "ExecutionSucceeded" in events.splitlines()[-1]
    assert answer_there("executions", "show", failed)["output"] == "charged new"


def test_many_letters_are_tried_again_there(there: Invoke, answer_there: Answer):
    for _ in range(3):
        there("run", "paid.yaml")
    (group,) = answer_there("dlq", "groups")

    lines = there("dlq", "requeue", "--fingerprint", group["fingerprint"], "--limit", "2").stdout.splitlines()
    # The command does not wait for their ends; the next command stops only if a letter is left when one has failed.
    _until_they_failed_again(answer_there, 3)
    stopped = there("dlq", "requeue", "--workflow", "paid", "--stop-after-failures", "1")

    assert lines[-1] == "2 requeued"
    assert stopped.exit_code == 1
    assert "stopped: " in stopped.stdout


def _until_they_failed_again(answer_there: Answer, count: int) -> None:
    for _ in range(1000):
        if len(answer_there("dlq", "ls")) == count:
            return
    raise AssertionError("they never fail again")


def test_a_fixed_letter_a_retry_a_rerun_and_a_replay_go_on_there(there: Invoke, answer_there: Answer):
    failed = json.loads(there("run", "paid.yaml", "--json").stdout)["id"]
    answer_there("retry", failed)
    there("executions", "events", failed, "--follow")
    answer_there("dlq", "fix", "last", "--output", '"by hand"')
    there("executions", "events", failed, "--follow")
    ended = answer_there("executions", "show", failed)
    rerun = answer_there("rerun", failed, "--from", "send")
    replay = there("replay", failed)
    left = answer_there("replay", failed, "--detach")

    assert (ended["state"], ended["output"]) == ("SUCCESS", "by hand")
    assert (rerun["state"], rerun["output"]) == ("SUCCESS", "by hand")
    assert (replay.exit_code, f"FAILED, where {failed} was SUCCESS" in replay.stderr) == (1, True)
    assert "executionId" in left


def test_a_caller_who_may_not_read_payloads_sees_how_it_goes(
    server: Served, there: Invoke, answer_there: Answer, monkeypatch: pytest.MonkeyPatch
):
    there("run", "asked.yaml", "--detach")
    _until_it_waits(answer_there)
    there("run", "hello.yaml")
    there("rerun", "last", "--from", "line")
    monkeypatch.setenv("ROPEWALK_TOKEN", _key(server, "viewer"))
    rerun, _, asked = answer_there("executions", "ls")

    shown = [there("executions", "show", each["id"]) for each in (rerun, asked)]
    refused = there("pause", asked["id"])

    assert [each.exit_code for each in shown] == [0, 0]
    assert "Hello" not in shown[0].stdout
    assert "waits for approval: withheld" in shown[1].stdout
    assert (refused.exit_code, "needs the right to execute" in refused.stderr) == (2, True)


def _key(server: Served, role: str) -> str:
    """The token of a new key."""
    with httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}) as http:
        return str(http.post("/api/v1/keys", json={"name": role, "role": role}).raise_for_status().json()["token"])


def test_workers_of_the_server_are_listed(there: Invoke, answer_there: Answer):
    (worker,) = answer_there("workers")

    assert (worker["pid"], worker["isAlive"]) == (os.getpid(), True)
    assert worker["id"] in there("workers").stdout


def test_ctrl_c_pauses_there_and_resume_goes_on(server: Served, start: Start, there: Invoke, answer_there: Answer):
    process = start("run", "held.yaml", "--server", server.url)
    told(process, "first: started")
    process.send_signal(signal.SIGINT)
    hint = told(process, "go on with: ropewalk resume")
    code = code_of(process)
    for gate in ("first.gate", "second.gate"):
        open_gate(gate)

    resumed = there(*hint.split("ropewalk ")[1].split()[:2])

    assert code == 130
    assert f"--server {server.url}" in hint
    assert resumed.exit_code == 0
    assert answer_there("executions", "show", "last")["state"] == "SUCCESS"


def test_resume_without_an_id_wakes_what_is_paused_there(there: Invoke, answer_there: Answer):
    there("run", "asked.yaml", "--detach")
    answer_there("pause", "last")

    resumed = there("resume")

    assert "1 unfinished execution" in resumed.stdout
    assert answer_there("executions", "show", "last")["state"] != "PAUSED"


@pytest.mark.parametrize("command", ["check", "sweep", "doctor", "worker"])
def test_what_needs_the_store_itself_says_so(command: str, there: Invoke):
    result = there(command)

    assert result.exit_code == 2
    assert f"`ropewalk {command}` needs the store itself, and not a server: name it with --db" in result.stderr


def test_a_server_that_is_not_there_is_unavailable(invoke: Invoke, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROPEWALK_TOKEN", "rw_some_token")
    monkeypatch.setattr("ropewalk.cli.backend.server.PATIENCE", 0.2)

    result = invoke("executions", "ls", "--server", "http://127.0.0.1:1")

    assert result.exit_code == 4
    assert "the server cannot be reached" in result.stderr

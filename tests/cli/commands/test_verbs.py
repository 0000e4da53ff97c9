"""Telling executions things: on an idle store, and on one that another process executes on."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ropewalk.store.sqlite import owner_info
from tests.cli.conftest import NODES, Invoke, Start, code_of, open_gate, told

Answer = Callable[..., Any]


def state(answer: Answer) -> str:
    return str(answer("executions", "show", "last")["state"])


@pytest.fixture(params=["idle", "owned"])
def waiting(request: pytest.FixtureRequest, start: Start) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts a workflow that waits, and leaves it with its owner or without one."""

    def begin(file: str) -> subprocess.Popen[str]:
        process = start("run", file)
        told(process, "waits for")
        if request.param == "idle":
            process.kill()
            code_of(process)
        return process

    return begin


def ended(process: subprocess.Popen[str]) -> int:
    """How the owner left, if it had not been killed before."""
    return 0 if code_of(process) < 0 else process.returncode


def test_an_approval_lets_the_execution_go_on(waiting: Any, invoke: Invoke, answer: Answer):
    owner = waiting("asked.yaml")

    result = invoke("approve", "last", "ask")

    assert (result.exit_code, ended(owner)) == (0, 0), result.output
    assert answer("executions", "show", "last")["output"] is True


def test_a_rejection_is_an_answer_too(waiting: Any, invoke: Invoke, answer: Answer):
    owner = waiting("asked.yaml")

    result = invoke("reject", "last")

    assert (result.exit_code, ended(owner)) == (0, 0), result.output
    assert answer("executions", "show", "last")["output"] is False


def test_a_signal_is_handed_to_the_node_that_waits_for_it(waiting: Any, invoke: Invoke, answer: Answer):
    owner = waiting("told.yaml")

    result = invoke("signal", "last", "word", '{"a": 1}')

    assert (result.exit_code, ended(owner)) == (0, 0), result.output
    assert answer("executions", "show", "last")["output"] == {"a": 1}


def test_a_cancelled_execution_is_over_when_the_command_returns(waiting: Any, invoke: Invoke, answer: Answer):
    owner = waiting("asked.yaml")

    result = invoke("cancel", "last")

    assert result.exit_code == 0, result.output
    assert state(answer) == "CANCELLED"
    assert code_of(owner) in (3, -9)


def test_a_pause_holds_until_the_execution_is_resumed(waiting: Any, invoke: Invoke, answer: Answer):
    owner = waiting("told.yaml")

    invoke("pause", "last")
    paused = state(answer)
    invoke("signal", "last", "word", "--detach")
    resumed = invoke("resume", "last")

    assert paused == "PAUSED"
    assert (resumed.exit_code, ended(owner), state(answer)) == (0, 0, "SUCCESS")


@pytest.mark.parametrize(
    ("file", "verb"), [("told.yaml", ("signal", "last", "word", "7")), ("asked.yaml", ("approve", "last"))], ids=str
)
def test_a_paused_execution_is_told_and_not_waited_for(
    file: str, verb: tuple[str, ...], start: Start, invoke: Invoke, answer: Answer
):
    process = start("run", file)
    told(process, "waits for")
    process.kill()
    code_of(process)
    invoke("pause", "last")

    result = invoke(*verb)

    assert (result.exit_code, state(answer)) == (0, "PAUSED"), result.output
    assert "go on with: ropewalk resume" in result.stderr
    assert (invoke("resume", "last").exit_code, state(answer)) == (0, "SUCCESS")


def test_a_verb_whose_effect_holds_already_says_so(waiting: Any, invoke: Invoke):
    waiting("asked.yaml")
    first = invoke("pause", "last")
    second = invoke("pause", "last")

    assert (first.stdout.strip().endswith(": paused"), second.stdout.strip().endswith("paused already")) == (True, True)


@pytest.mark.parametrize("verb", [("retry",), ("resume",), ("cancel",), ("pause",), ("approve",)])
def test_a_verb_that_comes_too_late_is_refused(verb: tuple[str, ...], invoke: Invoke):
    invoke("run", "hello.yaml")

    result = invoke(*verb, "last")

    assert result.exit_code == 2, result.output
    assert "ropewalk: " in result.stderr


def test_a_refusal_by_the_owner_is_raised_as_what_it_was(start: Start, invoke: Invoke):
    told(start("run", "asked.yaml"), "waits for")

    result = invoke("retry", "last", "--json")

    assert (result.exit_code, json.loads(result.stdout)["error"]["type"]) == (2, "InvalidTransition")


def test_a_rerun_keeps_what_came_before_and_a_replay_keeps_nothing(invoke: Invoke, answer: Answer):
    open_gate("first.gate")
    open_gate("second.gate")
    invoke("run", "held.yaml")
    first = answer("executions", "show", "last")["id"]

    rerun = answer("rerun", first, "--from", "second")
    replay = answer("replay", first)

    with open("ledger.txt", encoding="utf-8") as ledger:
        assert ledger.read().split() == ["first", "second", "second", "first", "second"]
    assert len({first, rerun["id"], replay["id"]}) == 3
    assert replay["sameOutput"] is True
    assert (rerun["output"], replay["output"]) == ({"second": "second"}, {"second": "second"})


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("set, with: { values: { id: hers } }", "the same output as {}\n"),
        ("set, with: { values: { id: '{{ execution.id }}' } }", "another output than {}\n"),
        ("fail, with: { message: no }", "FAILED, as {} was, and in the same way\n"),
        (
            "fail, with: { message: 'not {{ execution.id }}' }",
            "FAILED, as {0} was, but in another way; only there: a: not {0}\n",
        ),
    ],
)
def test_a_replay_says_how_it_compares(node: str, words: str, project: Path, invoke: Invoke, answer: Answer):
    document = f"ropewalk: 1\nname: again\nnodes: [{{ id: a, type: {node} }}]\n"
    (project / "again.yaml").write_text(document, encoding="utf-8")
    invoke("run", "again.yaml")
    first = answer("executions", "show", "last")["id"]

    assert words.format(first) in invoke("replay", first).stderr


def test_a_replay_that_ends_otherwise_says_so(start: Start, invoke: Invoke, answer: Answer):
    told(start("run", "held.yaml"), "first │ holding")
    first = answer("executions", "show", "last")["id"]
    invoke("cancel", first)
    open_gate("first.gate")
    open_gate("second.gate")

    assert f"SUCCESS, where {first} was CANCELLED\n" in invoke("replay", first).stderr


def test_an_idle_store_is_not_executed_on_by_a_verb_that_lets_nothing_go_on(
    start: Start, invoke: Invoke, answer: Answer
):
    """Another execution that a crash left behind must not begin because a person cancels this one."""
    left = start("run", "held.yaml")
    told(left, "first │ holding")
    left.kill()
    code_of(left)
    invoke("run", "hello.yaml", "--detach", "--db", "other.db")

    invoke("pause", "last")

    with open("ledger.txt", encoding="utf-8") as ledger:
        assert ledger.read().split() == ["first"]
    assert owner_info("ropewalk.db") is None
    assert state(answer) == "PAUSED"


def test_a_workflow_run_on_an_owned_store_is_executed_by_the_owner(start: Start, invoke: Invoke, answer: Answer):
    owner = start("run", "asked.yaml")
    told(owner, "waits for")

    result = invoke("run", "hello.yaml")

    assert (result.exit_code, result.stdout) == (0, '"Hello, world!"\n')
    assert owner.poll() is None
    assert [each["state"] for each in answer("executions", "ls")] == ["SUCCESS", "RUNNING"]


def test_what_others_handed_in_goes_on_when_the_owner_has_finished(start: Start, invoke: Invoke, answer: Answer):
    owner = start("run", "told.yaml")
    told(owner, "waits for")
    first = answer("executions", "show", "last")["id"]
    second = answer("run", "asked.yaml", "--detach")

    invoke("signal", first, "word")
    successor = int(told(owner, "goes on with 1 executions").split()[1])

    assert (second["pid"], code_of(owner)) == (owner.pid, 0)
    info = owner_info("ropewalk.db")
    assert info is not None
    assert info.pid == successor
    invoke("approve", second["executionId"])
    last = invoke("executions", "events", second["executionId"], "--follow").stdout.splitlines()[-1]
    assert "ExecutionSucceeded" in last


def test_a_command_that_watches_an_owner_takes_its_place_when_it_is_killed(
    start: Start, invoke: Invoke, answer: Answer
):
    owner = start("run", "told.yaml")
    told(owner, "waits for")
    watcher = start("run", "asked.yaml")
    told(watcher, "waits for approval")

    owner.kill()
    code_of(owner)
    told(watcher, "went away; going on here")
    result = invoke("approve", "last")

    assert result.exit_code == 0, result.output
    assert code_of(watcher) == 0


@pytest.fixture
def without_types(project: Path) -> None:
    """A project whose configuration names no node types: commands say them, or do without."""
    (project / "ropewalk.toml").write_text("", encoding="utf-8")


def test_an_owner_learns_the_node_types_of_a_command_that_brings_them(
    without_types: None, invoke: Invoke, answer: Answer
):
    owner = answer("run", "asked.yaml", "--detach")["pid"]

    failed = invoke("run", "paid.yaml", "--nodes", NODES)
    again = answer("dlq", "requeue", "last", "--set", 'card="good"', "--nodes", NODES)
    last = invoke("executions", "events", again["executionId"], "--follow").stdout.splitlines()[-1]

    assert (failed.exit_code, again["pid"]) == (1, owner), failed.output
    assert "ExecutionSucceeded" in last


def test_a_run_that_waits_for_its_node_type_goes_on_when_a_command_brings_it(
    without_types: None, start: Start, invoke: Invoke, answer: Answer
):
    failed = json.loads(invoke("run", "paid.yaml", "--nodes", NODES, "--json").stdout)["id"]
    answer("run", "asked.yaml", "--detach")
    answer("retry", failed)
    following = start("executions", "events", failed, "--follow")
    assert following.stdout is not None
    assert any("RunWaiting" in line for line in following.stdout)

    invoke("run", "hello.yaml", "--nodes", NODES)

    assert "ExecutionFailed" in following.stdout.read().splitlines()[-1]


def test_the_process_that_goes_on_after_an_owner_knows_what_that_had_learnt(
    without_types: None, start: Start, invoke: Invoke, answer: Answer
):
    owner = start("run", "told.yaml")
    told(owner, "waits for")
    first = answer("executions", "show", "last")["id"]
    second = answer("run", "held.yaml", "--detach", "--nodes", NODES)

    told(owner, "first │ holding")
    invoke("signal", first, "word")
    told(owner, "goes on with 1 executions")
    open_gate("first.gate")
    open_gate("second.gate")
    last = invoke("executions", "events", second["executionId"], "--follow").stdout.splitlines()[-1]

    assert "ExecutionSucceeded" in last


def test_a_server_on_the_file_takes_no_node_types_and_the_command_says_what_to_do(
    without_types: None, start: Start, invoke: Invoke
):
    server = start("up", "--port", "0")
    assert server.stdout is not None
    assert server.stdout.readline()

    Path("nothing.py").touch()
    result = invoke("run", "paid.yaml", "--nodes", NODES)
    known = invoke("run", "hello.yaml", "--nodes", "nothing.py")

    assert result.exit_code == 2
    assert f"process {server.pid} executes on ropewalk.db and does not know" in result.stderr
    assert f"start that process again with --nodes {NODES}, or name another file with --db" in result.stderr
    assert known.exit_code == 0, known.output

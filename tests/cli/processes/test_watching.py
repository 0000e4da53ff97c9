"""Ctrl-C, kill -9, background processes, and a real terminal."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ropewalk.store.sqlite import owner_info
from tests.cli.conftest import Invoke, Start, code_of, in_terminal, open_gate, told

Answer = Callable[..., Any]


def effects() -> list[str]:
    return Path("ledger.txt").read_text(encoding="utf-8").split()


def test_ctrl_c_pauses_lets_the_running_node_finish_and_says_how_to_go_on(start: Start, invoke: Invoke, answer: Answer):
    process = start("run", "held.yaml")
    told(process, "first │ holding")

    process.send_signal(signal.SIGINT)
    told(process, "pausing: 1 running nodes finish first")
    open_gate("first.gate")
    hint = told(process, "PAUSED, durably; go on with: ropewalk resume")

    assert code_of(process) == 130
    assert [node["state"] for node in answer("executions", "show", "last")["nodes"]] == ["SUCCESS", "READY"]
    open_gate("second.gate")
    assert invoke(*hint.split("ropewalk ")[1].split()).exit_code == 0
    assert effects() == ["first", "second"]


def test_a_second_ctrl_c_leaves_at_once_and_nothing_recorded_is_lost(start: Start, invoke: Invoke, answer: Answer):
    process = start("run", "held.yaml")
    told(process, "first │ holding")

    process.send_signal(signal.SIGINT)
    told(process, "pausing")
    process.send_signal(signal.SIGINT)

    assert code_of(process) == 130
    assert answer("executions", "show", "last")["state"] == "PAUSED"


def test_sigterm_hands_everything_back_without_a_pause(start: Start, invoke: Invoke, answer: Answer):
    process = start("run", "asked.yaml")
    told(process, "waits for")

    process.send_signal(signal.SIGTERM)

    assert code_of(process) == 130
    assert answer("executions", "show", "last")["state"] == "RUNNING"


def test_ctrl_c_at_a_watcher_leaves_the_owner_alone(start: Start, invoke: Invoke, answer: Answer):
    owner = start("run", "asked.yaml")
    told(owner, "waits for")
    watcher = start("run", "asked.yaml")
    told(watcher, "waits for")

    watcher.send_signal(signal.SIGINT)

    told(watcher, f"process {owner.pid} goes on with it")
    assert (code_of(watcher), owner.poll()) == (130, None)
    assert [each["state"] for each in answer("executions", "ls")] == ["RUNNING", "RUNNING"]


def test_what_kill_9_left_behind_is_taken_up_and_recorded_once(start: Start, invoke: Invoke, answer: Answer):
    open_gate("first.gate")
    process = start("run", "held.yaml")
    told(process, "second │ holding")
    process.kill()
    code_of(process)
    open_gate("second.gate")

    result = invoke("resume")

    assert result.exit_code == 0, result.output
    assert result.stderr.endswith(": SUCCESS\n")
    runs = answer("executions", "show", "last")["runs"]
    assert [(run["node"], run["attempt"], run["state"]) for run in runs] == [
        ("first", 1, "SUCCESS"),
        ("second", 1, "FAILED"),
        ("second", 2, "SUCCESS"),
    ]
    assert effects() == ["first", "second", "second"]
    assert invoke("check").exit_code == 0


def test_resume_without_an_id_wakes_what_is_paused_too(start: Start, invoke: Invoke, answer: Answer):
    process = start("run", "held.yaml")
    told(process, "first │ holding")
    process.send_signal(signal.SIGINT)
    told(process, "pausing")
    open_gate("first.gate")
    code_of(process)
    open_gate("second.gate")

    ended = answer("resume")

    assert [each["state"] for each in ended] == ["SUCCESS"]


def test_a_detached_execution_goes_on_without_the_command_that_started_it(invoke: Invoke, answer: Answer):
    started = answer("run", "asked.yaml", "--detach")
    owner = owner_info("ropewalk.db")

    assert owner is not None
    assert (owner.pid, os.getsid(owner.pid)) == (started["pid"], started["pid"])
    assert invoke("approve", started["executionId"], "ask").exit_code == 0
    _gone(started["pid"])
    assert answer("executions", "show", "last")["output"] is True


def _gone(pid: int) -> None:
    """Waits for the end of a background process, which is a child of this one until then."""
    os.waitpid(pid, 0)


def test_a_second_detached_execution_joins_the_owner_there_is(invoke: Invoke, answer: Answer):
    first = answer("run", "asked.yaml", "--detach")
    second = answer("run", "asked.yaml", "--detach")

    assert first["pid"] == second["pid"]
    for each in (first, second):
        invoke("cancel", each["executionId"])
    _gone(first["pid"])


def test_a_background_process_that_fails_says_so_and_where_its_log_is(invoke: Invoke, project: Path):
    invoke("run", "hello.yaml")
    (project / "broken.py").write_text("raise OSError('no luck')\n", encoding="utf-8")

    result = invoke("resume", "--detach", "--nodes", "broken.py")

    assert result.exit_code == 2
    assert "broken.py cannot be imported" in result.stderr


# A real terminal


def test_in_a_terminal_the_timeline_is_drawn_and_the_cursor_given_back():
    code, shown = in_terminal(["run", "flaky.yaml"], until="")

    assert code == 0
    assert "call" in shown
    assert "SUCCESS" in shown
    assert "━" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    assert json.loads(shown[shown.rindex("{") :]) == {"call": 2}


def test_in_a_terminal_ctrl_c_is_a_keystroke(answer: Answer):
    code, shown = in_terminal(["run", "asked.yaml"], until="waits for approval: Really?", then=b"\x03")

    assert code == 130
    assert "go on with: ropewalk resume" in shown
    assert answer("executions", "show", "last")["state"] == "PAUSED"


def test_a_node_that_does_not_stop_keeps_no_command_from_ending(start: Start):
    process = start("run", "stays.yaml")

    assert code_of(process) == 1
    assert "time limit of 100ms" in told(process, "FAILED: stays")

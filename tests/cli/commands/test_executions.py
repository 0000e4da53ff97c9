"""Looking at executions: lists, timelines, events, ids, explanations."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke, Start, code_of, open_gate, told

Answer = Callable[..., Any]


@pytest.fixture
def failed(invoke: Invoke) -> str:
    """The id of an execution that failed."""
    return str(json.loads(invoke("run", "paid.yaml", "--json").stdout)["id"])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), ["hello", "paid"]),
        (("--state", "failed"), ["paid"]),
        (("--workflow", "hello"), ["hello"]),
        (("--limit", "1"), ["hello"]),
        (("--state", "RUNNING"), []),
    ],
)
def test_a_list_is_the_newest_first_and_can_be_narrowed(
    options: tuple[str, ...], expected: list[str], failed: str, invoke: Invoke, answer: Answer
):
    invoke("run", "hello.yaml")

    assert [each["workflow"] for each in answer("executions", "ls", *options)] == expected


def test_the_next_page_goes_on_before_the_last_one_seen(failed: str, invoke: Invoke, answer: Answer):
    invoke("run", "hello.yaml")
    (newest,) = answer("executions", "ls", "--limit", "1")

    assert [each["id"] for each in answer("executions", "ls", "--before", newest["id"])] == [failed]


def test_a_list_in_plain_text_has_a_line_for_each(failed: str, invoke: Invoke):
    lines = invoke("executions", "ls").stdout.splitlines()

    assert lines[0].split() == ["ID", "WORKFLOW", "STATE", "ACCEPTED", "TOOK", "ERROR"]
    assert [word in lines[1] for word in (failed, "paid v1", "FAILED", "pay: the card has expired")] == [True] * 4


def test_an_unknown_workflow_is_an_error_and_not_an_empty_list(failed: str, invoke: Invoke):
    result = invoke("executions", "ls", "--workflow", "nosuch")

    assert (result.exit_code, "there is no workflow 'nosuch'" in result.stderr) == (2, True)


def test_the_timeline_shows_every_node_with_its_end(failed: str, invoke: Invoke):
    text = invoke("executions", "show", failed).stdout

    assert "✗ pay" in text
    assert "✗ send BLOCKED" in text
    assert "━" in text
    assert "the card has expired" in text


def test_the_tokens_of_all_attempts_are_shown_where_any_were_counted(failed: str, invoke: Invoke, answer: Answer):
    invoke("run", "letter.yaml")

    assert answer("executions", "show", "last")["metrics"]["tokens"] == 1_234
    assert "tokens\n1,234" in invoke("executions", "show", "last").stdout
    assert "tokens" not in invoke("executions", "show", failed).stdout


def test_show_gives_programs_the_nodes_and_every_run(failed: str, answer: Answer):
    shown = answer("executions", "show", failed)

    assert [(run["node"], run["attempt"], run["state"]) for run in shown["runs"]] == [("pay", 1, "DLQ")]
    assert [node["state"] for node in shown["nodes"]] == ["FAILED", "BLOCKED"]


@pytest.mark.parametrize("shorten", [lambda name: name[:13], lambda name: name[-6:], lambda name: "last", str])
def test_an_id_may_be_the_beginning_the_end_or_last(shorten: Callable[[str], str], failed: str, answer: Answer):
    assert answer("executions", "show", shorten(failed))["id"] == failed


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("zzzz", "there is no execution zzzz"),
        ("0", "is too short for an id"),
        ("00000000-0000-7000-8000-000000000000", "there is no execution 0000"),
    ],
)
def test_an_unknown_id_is_refused(word: str, says: str, failed: str, invoke: Invoke):
    result = invoke("executions", "show", word)

    assert (result.exit_code, says in result.stderr) == (2, True)


def test_an_id_that_could_be_several_is_refused_with_those_it_could_be(failed: str, invoke: Invoke, answer: Answer):
    invoke("run", "hello.yaml")
    other = answer("executions", "show", "last")["id"]

    result = invoke("executions", "show", failed[:4])

    assert (result.exit_code, "several ids: give more of it" in result.stderr) == (2, True)
    assert [line.split()[:4] for line in result.stderr.splitlines()[1:3]] == [
        [other, "hello", "v1", "SUCCESS"],
        [failed, "paid", "v1", "FAILED"],
    ]


def test_of_very_many_that_an_id_could_be_ten_are_told(failed: str, invoke: Invoke):
    for _ in range(10):
        invoke("run", "hello.yaml")

    lines = invoke("executions", "show", failed[:3]).stderr.splitlines()

    assert ["hello v1" in line for line in lines[1:11]] == [True] * 10
    assert lines[11:] == ["  and more"]


def test_the_next_page_goes_on_before_a_short_id_too(failed: str, invoke: Invoke, answer: Answer):
    invoke("run", "hello.yaml")
    (newest,) = answer("executions", "ls", "--limit", "1")

    assert [each["id"] for each in answer("executions", "ls", "--before", newest["id"][-8:])] == [failed]


def test_events_are_json_lines_in_order(failed: str, invoke: Invoke):
    lines = [json.loads(line) for line in invoke("executions", "events", failed, "--json").stdout.splitlines()]

    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert (lines[0]["type"], lines[-1]["type"]) == ("ExecutionAccepted", "ExecutionFailed")


def test_events_after_a_number_are_those_after_it(failed: str, invoke: Invoke):
    lines = invoke("executions", "events", failed, "--after", "2").stdout.splitlines()

    assert lines[0].split()[0] == "3"


def test_followed_events_come_as_they_happen_until_the_end(start: Start, invoke: Invoke):
    owner = start("run", "held.yaml")
    told(owner, "first │ holding")
    follower = start("executions", "events", "last", "--follow", "--json")
    assert follower.stdout is not None
    seen = [json.loads(follower.stdout.readline())["type"] for _ in range(3)]

    open_gate("first.gate")
    open_gate("second.gate")
    rest = [json.loads(line)["type"] for line in follower.stdout]

    assert seen == ["ExecutionAccepted", "ExecutionStarted", "NodesStarted"]
    assert rest[-1] == "ExecutionSucceeded"
    assert (code_of(follower), code_of(owner)) == (0, 0)


# Explanations


def reasons(answer: Answer) -> list[str]:
    return [reason["why"] for reason in answer("explain", "last")["reasons"]]


def killed_with_first_under_way(start: Start) -> subprocess.Popen[str]:
    process = start("run", "held.yaml")
    told(process, "first │ holding")
    process.kill()
    code_of(process)
    return process


def test_what_a_crash_left_behind_waits_for_a_process(start: Start, answer: Answer):
    killed_with_first_under_way(start)

    assert reasons(answer) == ["no process executes on this store"]
    assert [(node["id"], node["why"]) for node in answer("explain", "last")["nodes"]] == [
        ("first", "attempt 1 was under way when its worker was last heard of; it will be made again"),
        ("second", "behind first"),
    ]


def test_a_failed_node_is_explained_with_its_dead_letter(failed: str, answer: Answer):
    (letter,) = answer("dlq", "ls")
    pay, send = answer("explain", failed)["nodes"]

    assert pay["why"] == "failed: the card has expired"
    assert pay["command"] == f"dlq requeue {letter['id']}"
    assert send["why"] == "behind pay, which failed"


def test_an_approval_is_explained_with_the_command_that_gives_it(invoke: Invoke, answer: Answer, start: Start):
    process = start("run", "asked.yaml")
    told(process, "waits for approval: Really?")
    ask = answer("explain", "last")["nodes"][0]

    invoke(*ask["command"].split())

    assert code_of(process) == 0


def test_one_node_can_be_asked_for_also_when_it_is_done(invoke: Invoke, answer: Answer):
    invoke("run", "hello.yaml")
    [line] = answer("explain", "last", "line")["nodes"]
    unknown = invoke("explain", "last", "nosuch")

    assert (line["state"], line["code"]) == ("SUCCESS", "SUCCESS")
    assert (unknown.exit_code, "has no node 'nosuch'" in unknown.stderr) == (2, True)


def test_an_explanation_for_people_says_what_to_type(start: Start, invoke: Invoke):
    killed_with_first_under_way(start)

    text = invoke("explain", "last").stdout

    assert "no process executes on this store; go on with: ropewalk resume " in text


def test_a_pause_is_explained_with_who_did_it(start: Start, invoke: Invoke, answer: Answer, project: Path):
    killed_with_first_under_way(start)
    invoke("pause", "last", "--reason", "lunch")

    assert reasons(answer)[0].startswith("it was paused by ")

"""Dead letters: found, read, edited, put back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke, Start, code_of, open_gate, told

Answer = Callable[..., Any]


@pytest.fixture
def failed(invoke: Invoke) -> str:
    """The id of an execution with a dead letter."""
    return str(json.loads(invoke("run", "paid.yaml", "--json").stdout)["id"])


def test_a_dead_letter_shows_why_and_with_what_it_failed(failed: str, answer: Answer):
    letter = answer("dlq", "show", "last")

    assert (letter["executionId"], letter["node"], letter["inputs"]) == (failed, "pay", {"card": "expired"})
    assert (letter["failureType"], letter["reason"]) == ("PERMANENT_ERROR", "the card has expired")


def test_people_are_told_what_can_be_done_about_it(failed: str, invoke: Invoke):
    text = invoke("dlq", "show", "last").stdout

    assert [verb in text for verb in ("dlq requeue", "dlq fix", "dlq discard")] == [True] * 3


def test_what_failed_alike_is_one_group(failed: str, invoke: Invoke, answer: Answer):
    invoke("run", "paid.yaml")

    (group,) = answer("dlq", "groups")
    alike = answer("dlq", "ls", "--fingerprint", group["fingerprint"])

    assert (group["count"], group["node"], len(alike)) == (2, "pay", 2)
    assert (group["workflow"], group["failureType"]) == ("paid", "PERMANENT_ERROR")
    assert group["fingerprint"] in invoke("dlq", "groups").stdout


@pytest.mark.parametrize("shorten", [lambda name: name[:20], lambda name: name[-8:], lambda name: name[-8:].upper()])
def test_a_letter_is_named_by_a_part_of_its_id(shorten: Callable[[str], str], failed: str, answer: Answer):
    (letter,) = answer("dlq", "ls")

    shown = answer("dlq", "show", shorten(letter["id"]))

    # A list leaves the traceback out.
    assert {**shown, "errorDetail": None} == letter


def test_what_failed_alike_is_named_by_the_beginning_of_its_fingerprint(failed: str, invoke: Invoke, answer: Answer):
    (group,) = answer("dlq", "groups")
    short = group["fingerprint"][:8]

    assert [each["executionId"] for each in answer("dlq", "ls", "--fingerprint", short)] == [failed]
    assert invoke("dlq", "discard", "--fingerprint", short).stdout.splitlines()[-1] == "1 discarded"
    assert invoke("dlq", "discard", "--fingerprint", short).stdout.splitlines()[-1] == "no dead letters"


@pytest.mark.parametrize(
    "options",
    [("--set", "card=4242"), ("--set", 'card="4242"'), ("--input", '{"card": "4242"}'), ("--input", "@c.json")],
)
def test_a_requeued_letter_has_its_new_input_and_the_same_execution_finishes(
    options: tuple[str, ...], failed: str, invoke: Invoke, answer: Answer, project: Any
):
    (project / "c.json").write_text('{"card": "4242"}', encoding="utf-8")
    # Without quotes it is a number, which the node's type hint refuses: text is written as JSON text.
    if options == ("--set", "card=4242"):
        assert invoke("dlq", "requeue", "last", *options).exit_code == 1
        return

    shown = answer("dlq", "requeue", "last", *options)

    assert (shown["id"], shown["state"], shown["output"]) == (failed, "SUCCESS", "charged 4242")
    assert answer("dlq", "ls", "--resolution", "REQUEUED")[0]["executionId"] == failed


def test_a_fixed_letter_has_its_output_from_a_person(failed: str, answer: Answer):
    shown = answer("dlq", "fix", "last", "--output", '"paid in cash"')

    assert (shown["id"], shown["state"], shown["output"]) == (failed, "SUCCESS", "paid in cash")


def test_a_discarded_letter_lies_no_more_and_keeps_its_notes(failed: str, invoke: Invoke, answer: Answer):
    invoke("dlq", "discard", "last", "--notes", "too old")

    assert answer("dlq", "ls") == []
    assert answer("dlq", "ls", "--resolution", "DISCARDED")[0]["notes"] == "too old"


def test_a_letter_is_resolved_once(failed: str, invoke: Invoke, answer: Answer):
    (letter,) = answer("dlq", "ls")
    invoke("dlq", "discard", letter["id"])

    result = invoke("dlq", "requeue", letter["id"])

    assert (result.exit_code, "was DISCARDED by" in result.stderr) == (2, True)


def test_a_retry_tries_every_failed_node_again(failed: str, invoke: Invoke, answer: Answer):
    result = invoke("retry", failed)

    assert result.exit_code == 1
    assert [each["attempt"] for each in answer("dlq", "ls")] == [2]


def test_inputs_that_are_no_object_are_refused(failed: str, invoke: Invoke):
    result = invoke("dlq", "requeue", "last", "--input", "[1]")

    assert (result.exit_code, "--input must be an object" in result.stderr) == (2, True)


def test_what_people_say_about_a_letter_is_kept_with_it_line_by_line(failed: str, invoke: Invoke, answer: Answer):
    noted = answer("dlq", "note", "last", "asked the bank")
    invoke("dlq", "discard", "last", "--notes", "they said no")
    invoke("dlq", "note", noted["id"], "what a pity")

    letter = answer("dlq", "show", noted["id"])

    assert [line.partition(": ")[2] for line in letter["notes"].split("\n")] == [
        "asked the bank",
        "they said no",
        "what a pity",
    ]
    assert "what a pity" in invoke("dlq", "show", noted["id"]).stdout


# Many at once

WEAK = """
ropewalk: 1
name: weak
nodes: [{ id: call, type: flaky, retry: { maxAttempts: 1 } }]
output: "{{ nodes.call.output }}"
"""


@pytest.fixture
def weak(invoke: Invoke, project: Path) -> list[str]:
    """Executions that failed alike, and would not a second time."""
    (project / "weak.yaml").write_text(WEAK.lstrip(), encoding="utf-8")
    return [str(json.loads(invoke("run", "weak.yaml", "--json").stdout)["id"]) for _ in range(3)]


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_all_that_failed_alike_are_tried_again_and_told_one_by_one(weak: list[str], invoke: Invoke, answer: Answer):
    (group,) = answer("dlq", "groups")

    result = invoke("dlq", "requeue", "--fingerprint", group["fingerprint"], "--rate", "100", "--json")

    assert result.exit_code == 0
    assert [(each["executionId"], each["outcome"]) for each in lines(result.stdout)] == [
        (execution, "REQUEUED") for execution in weak
    ]
    assert [answer("executions", "show", each)["state"] for each in weak] == ["SUCCESS"] * 3
    assert answer("dlq", "ls") == []


TOLERANT = """
ropewalk: 1
name: tolerant
nodes:
  - { id: each, type: flaky, forEach: [1, 2], retry: { maxAttempts: 1 }, failureTolerance: 100%, deadLetters: always }
output: "{{ nodes.each.output }}"
"""


def test_all_items_that_a_map_tolerated_are_tried_again_in_the_execution_that_succeeded(
    invoke: Invoke, answer: Answer, project: Path
):
    (project / "tolerant.yaml").write_text(TOLERANT.lstrip(), encoding="utf-8")
    before = answer("run", "tolerant.yaml")
    assert (before["state"], before["output"]) == ("SUCCESS", [None] * 2)

    result = invoke("dlq", "requeue", "--workflow", "tolerant", "--json")

    assert [each["outcome"] for each in lines(result.stdout)] == ["REQUEUED"] * 2
    after = answer("executions", "show", before["id"])
    assert (after["state"], after["output"]) == ("SUCCESS", [2] * 2)


def test_it_stops_when_they_fail_again(failed: str, invoke: Invoke, answer: Answer):
    for _ in range(2):
        invoke("run", "paid.yaml")

    result = invoke("dlq", "requeue", "--workflow", "paid", "--stop-after-failures", "1")

    assert result.exit_code == 1
    assert "stopped: 1 of those that were tried again" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 requeued, 1 failed again"
    assert [len(answer("dlq", "ls", "--resolution", each)) for each in ("REQUEUED", "PENDING")] == [1, 3]


def test_all_that_failed_alike_are_discarded(failed: str, weak: list[str], invoke: Invoke, answer: Answer):
    result = invoke("dlq", "discard", "--node", "call", "--notes", "too old", "--limit", "2")

    assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "2 discarded")
    assert [each["node"] for each in answer("dlq", "ls", "--resolution", "DISCARDED")] == ["call"] * 2
    assert len(answer("dlq", "ls")) == 2


def test_a_process_that_executes_is_asked_for_one_after_the_other(
    weak: list[str], invoke: Invoke, answer: Answer, start: Start
):
    owner = start("run", "held.yaml")
    told(owner, "holding")

    requeued = invoke("dlq", "requeue", "--failure-type", "MAX_RETRIES", "--json")
    noted = answer("dlq", "note", lines(requeued.stdout)[0]["letterId"], "done")

    assert [each["outcome"] for each in lines(requeued.stdout)] == ["REQUEUED"] * 3
    assert noted["noted"]
    open_gate("first.gate")
    open_gate("second.gate")
    assert code_of(owner) == 0
    assert [answer("executions", "show", each)["state"] for each in weak] == ["SUCCESS"] * 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("requeue",),
        ("discard",),
        ("requeue", "last", "--node", "pay"),
        ("discard", "last", "--fingerprint", "x"),
        ("requeue", "--node", "pay", "--set", "card=1"),
        ("requeue", "--node", "pay", "--detach"),
        ("requeue", "--node", "pay", "--rate", "0"),
        ("requeue", "--workflow", "nosuch"),
        ("note", "last", " "),
    ],
)
def test_what_is_not_clear_is_refused_and_nothing_is_done(
    arguments: tuple[str, ...], failed: str, invoke: Invoke, answer: Answer
):
    before = answer("dlq", "ls")

    assert invoke("dlq", *arguments).exit_code == 2
    assert answer("dlq", "ls") == before

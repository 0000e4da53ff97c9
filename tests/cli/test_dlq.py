"""Dead letters: found, read, edited, put back."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Invoke

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

"""`ropewalk run`: results, views, and what comes from the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import NODES, Invoke


def test_the_result_goes_to_stdout_and_nothing_else_does(invoke: Invoke):
    result = invoke("run", "hello.yaml")

    assert result.stdout == '"Hello, world!"\n'
    assert "line: SUCCESS" in result.stderr


@pytest.mark.parametrize("value", ['{"name": "Ada"}', "@input.json", "@input.yaml", "-"])
def test_the_input_is_written_out_in_a_file_or_on_stdin(value: str, invoke: Invoke, project: Path):
    (project / "input.json").write_text('{"name": "Ada"}', encoding="utf-8")
    (project / "input.yaml").write_text("name: Ada", encoding="utf-8")

    result = invoke("run", "hello.yaml", "--input", value, stdin='{"name": "Ada"}')

    assert result.stdout == '"Hello, Ada!"\n'


@pytest.mark.parametrize("assignment", ["word=Ahoy", 'word="Ahoy"'])
def test_a_variable_is_json_or_else_text(assignment: str, invoke: Invoke):
    assert invoke("run", "hello.yaml", "--var", assignment).stdout == '"Ahoy, world!"\n'


@pytest.mark.parametrize("name", ["tests.cli.node_types:greeting", f"{NODES}:greeting"])
def test_a_workflow_written_in_python_is_named_by_its_module(name: str, invoke: Invoke):
    result = invoke("run", name)

    assert result.exit_code == 0, result.output
    assert '"text": "hello"' in result.stdout


def test_a_file_with_three_mistakes_gives_three_messages_with_their_lines(invoke: Invoke):
    result = invoke("run", "wrong.yaml")

    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "wrong.yaml:5: nodes[1].id: duplicate id 'a', first used by nodes[0]",
        "wrong.yaml:6: nodes[2].type: unknown node type 'nosuch'",
        "wrong.yaml:8: edges[0].to: there is no node 'c'",
    ]
    assert not Path("ropewalk.db").exists()


def test_json_is_one_document_with_everything(answer: Callable[..., Any]):
    shown = answer("run", "flaky.yaml")

    assert (shown["state"], shown["output"]) == ("SUCCESS", {"call": 2})
    assert [(node["id"], node["attempts"]) for node in shown["nodes"]] == [("call", 2)]


def test_json_of_a_failure_is_the_execution_and_the_exit_code_tells(invoke: Invoke):
    result = invoke("run", "paid.yaml", "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"] == "pay: the card has expired"


def test_without_a_terminal_nothing_a_terminal_would_obey_is_printed(invoke: Invoke):
    result = invoke("run", "flaky.yaml")

    assert "attempt 1 failed" in result.stderr
    assert "\\x1b[31mno answer" in result.stderr
    assert "\x1b" not in result.output


def test_every_execution_is_kept(invoke: Invoke, answer: Callable[..., Any]):
    invoke("run", "hello.yaml")
    invoke("run", "paid.yaml")

    assert [each["workflow"] for each in answer("executions", "ls")] == ["paid", "hello"]


def test_node_types_of_the_same_name_are_refused(invoke: Invoke, project: Path):
    (project / "more.py").write_text(
        "from ropewalk import node\n\n@node\ndef charge() -> None: ...\n", encoding="utf-8"
    )

    result = invoke("run", "hello.yaml", "--nodes", NODES, "--nodes", "more.py")

    assert result.exit_code == 2
    assert "two node types are called 'charge'" in result.stderr


def test_a_module_that_cannot_be_imported_says_why(invoke: Invoke, project: Path):
    (project / "broken.py").write_text("import nosuchmodule\n", encoding="utf-8")

    result = invoke("run", "hello.yaml", "--nodes", "broken.py")

    assert result.exit_code == 2
    assert "broken.py cannot be imported: ModuleNotFoundError" in result.stderr

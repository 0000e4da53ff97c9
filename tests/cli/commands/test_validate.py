"""`ropewalk validate`: every problem, with its line."""

import json
from pathlib import Path

from tests.cli.conftest import Invoke

WAYS = """\
ropewalk: 1
name: ways
nodes:
  - { id: known, type: switch, with: { value: 1, cases: { one: 1, three: 3 }, default: rest } }
  - { id: open, type: switch, with: { value: 1, cases: "{{ input.cases }}" } }
  - { id: end, type: noop }
  - { id: late, type: noop }
edges:
  - { from: known, to: end, on: one }
  - { from: known, to: end, on: trhee }
  - { from: known, to: late, on: default }
  - { from: open, to: late, on: trhee }
"""


def test_every_problem_of_every_file_is_told_with_its_line(invoke: Invoke, project: Path):
    (project / "worse.yaml").write_text("ropewalk: 1\nname: worse\nnods: []\ntimeout: soon\n", encoding="utf-8")

    result = invoke("validate", "hello.yaml", "wrong.yaml", "worse.yaml", "missing.yaml")

    assert result.exit_code == 2
    places = [line.partition(": ")[0] for line in result.stdout.splitlines()]
    assert places == [
        "hello.yaml", "wrong.yaml:5", "wrong.yaml:6", "wrong.yaml:8", "worse.yaml:3", "worse.yaml:4", "ropewalk",
    ]  # fmt: skip


def test_files_without_a_problem_are_ok(invoke: Invoke):
    result = invoke("validate", "hello.yaml", "held.yaml", "tests.cli.node_types:greeting")

    assert (result.exit_code, result.stdout.count(": ok\n")) == (0, 3)


def test_a_workflow_in_python_brings_its_own_node_types(invoke: Invoke, project: Path):
    source = "from ropewalk import Workflow, node\n\n@node\ndef mine(n: int) -> int:\n    return n\n\n"
    (project / "own.py").write_text(f'{source}workflow = Workflow("own")\nworkflow.node("a", mine, n=1)\n')

    result = invoke("validate", "own.py", "own.py:workflow", "hello.yaml")

    assert (result.exit_code, result.stdout.count(": ok\n")) == (0, 3), result.output


def test_a_file_that_is_no_yaml_says_where(invoke: Invoke, project: Path):
    (project / "torn.yaml").write_text("ropewalk: 1\nname: [torn\n", encoding="utf-8")

    result = invoke("validate", "torn.yaml")

    assert result.exit_code == 2
    assert result.stdout.startswith("torn.yaml:3:1: ")


def test_every_edge_that_can_never_be_taken_is_told_with_its_line(invoke: Invoke, project: Path):
    (project / "ways.yaml").write_text(WAYS, encoding="utf-8")

    result = invoke("validate", "ways.yaml")

    assert result.exit_code == 2
    assert result.stdout.splitlines() == [
        "ways.yaml:10: edges[1].on: switch has no port 'trhee'; it has one, three, rest, error",
        "ways.yaml:11: edges[2].on: switch has no port 'default'; it has one, three, rest, error",
    ]


def test_programs_get_file_line_path_and_message(invoke: Invoke):
    result = invoke("validate", "wrong.yaml", "--json")
    (file,) = json.loads(result.stdout)

    assert (file["file"], file["valid"]) == ("wrong.yaml", False)
    assert [(each["line"], each["path"]) for each in file["problems"]] == [
        (5, "nodes[1].id"),
        (6, "nodes[2].type"),
        (8, "edges[0].to"),
    ]


def test_nothing_is_executed_and_no_store_is_made(invoke: Invoke, project: Path):
    invoke("validate", "held.yaml")

    assert [path.name for path in project.iterdir() if path.suffix in (".db", ".txt")] == []

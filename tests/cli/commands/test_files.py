"""Files of executions on the command line: listed, and saved whole."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke

WORKFLOW = """\
ropewalk: 1
name: table
nodes:
  - id: table
    type: csv.write
    with: { items: [{ id: 1 }], as: file, fileName: orders.csv }
output: "{{ nodes.table.output }}"
"""


@pytest.fixture
def execution(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of an execution that names a file; what is saved goes to an empty folder."""
    (tmp_path / "table.yaml").write_text(WORKFLOW)
    found = str(json.loads(invoke("run", str(tmp_path / "table.yaml"), "--json").stdout)["id"])
    (tmp_path / "here").mkdir()
    return found


def test_the_files_of_an_execution_are_listed(execution: str, invoke: Invoke, answer: Callable[..., Any]):
    (found,) = answer("files", "ls", execution)

    assert (found["name"], found["type"], found["size"]) == ("orders.csv", "text/csv", 5)
    lines = invoke("files", "ls", execution).stdout.splitlines()
    assert lines[0].split() == ["HASH", "SIZE", "NAME", "TYPE"]
    assert lines[1].split() == [found["hash"][:12], "5", "orders.csv", "text/csv"]


@pytest.mark.parametrize("by", ["name", "hash"])
def test_a_file_is_saved_by_its_name_or_the_beginning_of_its_hash(
    execution: str, invoke: Invoke, answer: Callable[..., Any], tmp_path: Path, by: str
):
    (found,) = answer("files", "ls", execution)
    target = tmp_path / "here" / "saved.csv"

    done = invoke("files", "get", execution, found[by][:12], "-o", str(target))
    again = invoke("files", "get", execution, found[by][:12], "-o", str(target))
    forced = invoke("files", "get", execution, found[by][:12], "-o", str(target), "--force")

    assert (done.exit_code, again.exit_code, forced.exit_code) == (0, 2, 0)
    assert "--force" in again.stderr
    assert target.read_text() == "id\n1\n"
    assert [each.name for each in target.parent.iterdir()] == ["saved.csv"]


def test_a_file_that_the_execution_does_not_name_is_none(execution: str, invoke: Invoke):
    result = invoke("files", "get", execution, "other.csv")

    assert (result.exit_code, "names no file 'other.csv'" in result.stderr) == (2, True)


def test_the_content_can_go_to_stdout(execution: str, invoke: Invoke):
    assert invoke("files", "get", execution, "orders.csv", "-o", "-").stdout == "id\n1\n"

"""Node types of installed packages that cannot be loaded: told where it matters, and nowhere else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke, Start, told

WHY = "cannot be loaded: ModuleNotFoundError: No module named 'no_crm'"


@pytest.fixture
def calling(project: Path, broken: str) -> str:
    """A workflow that uses the type."""
    nodes = f"nodes:\n  - {{ id: a, type: noop }}\n  - {{ id: b, type: {broken} }}\n"
    (project / "calling.yaml").write_text(f"ropewalk: 1\nname: calling\n{nodes}", encoding="utf-8")
    return "calling.yaml"


def test_what_executes_says_it_once(invoke: Invoke, broken: str):
    result = invoke("run", "hello.yaml")

    assert (result.exit_code, result.stderr.count(f"the node type {broken} (no_crm:Update) {WHY}")) == (0, 1)


def test_a_server_says_it(start: Start, broken: str):
    assert broken in told(start("up", "--port", "0"), WHY)


def test_doctor_says_it(answer: Callable[..., Any], broken: str):
    found = {finding["what"]: finding for finding in answer("doctor")}

    assert found[f"node type {broken}"]["health"] == "warning"
    assert "no_crm" in found[f"node type {broken}"]["value"]


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    "command",
    ["validate hello.yaml", "doctor", "executions ls", "run told.yaml --detach", "signal last word", "dlq ls"],
)
def test_others_are_silent(invoke: Invoke, caplog: pytest.LogCaptureFixture, command: str):
    invoke("run", "told.yaml", "--detach")
    caplog.clear()

    result = invoke(*command.split())

    assert result.exit_code == 0
    assert "cannot be loaded" not in result.stderr + caplog.text


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_workflow_that_uses_such_a_type_is_told_why_it_is_not_there(invoke: Invoke, calling: str, command: str):
    result = invoke(command, calling)

    assert result.exit_code == 2
    assert f"calling.yaml:5: nodes[1].type: the node type 'crm.update' {WHY}" in result.output.splitlines()

"""`ropewalk init`: the example project does what its README says."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropewalk.core.schema import validate
from ropewalk.documents import read_document
from tests.cli.conftest import ROOT, Invoke

EXPECTED = (0, 0, 1, 0, 0)


def test_the_five_commands_of_the_readme_do_what_they_say(invoke: Invoke, monkeypatch: pytest.MonkeyPatch):
    invoke("init", "example")
    monkeypatch.chdir("example")
    commands = re.findall(r"^ropewalk (.*?)\s+#", Path("README.md").read_text(encoding="utf-8"), re.MULTILINE)

    assert tuple(invoke(*shlex.split(command)).exit_code for command in commands) == EXPECTED


def test_the_failing_order_is_finished_by_the_requeue(
    invoke: Invoke, answer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
):
    invoke("init", "example")
    monkeypatch.chdir("example")
    invoke("run", "order.yaml", "--input", '{"item": "anchor"}')

    shown = answer("dlq", "requeue", "last", "--set", 'item="hook"')

    assert shown["output"] == {"total": 9.0, "shipped": True}


def test_nothing_that_is_there_is_overwritten(invoke: Invoke, project: Path):
    (project / "order.yaml").write_text("mine", encoding="utf-8")

    result = invoke("init")

    assert result.exit_code == 2
    assert (project / "order.yaml").read_text(encoding="utf-8") == "mine"
    assert not (project / "nodes.py").exists()


def test_an_editor_finds_the_schema_of_the_workflow_beside_it(invoke: Invoke):
    invoke("init", "example")
    workflow = Path("example/order.yaml")
    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", workflow.read_text(encoding="utf-8"))

    assert named
    schema = json.loads((workflow.parent / named[1]).read_text(encoding="utf-8"))
    assert schema == json.loads((ROOT / "docs" / "workflow.schema.json").read_text(encoding="utf-8"))
    assert validate(schema, read_document(workflow).value) == []

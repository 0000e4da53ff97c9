"""`ropewalk init`: the example project does what its README says."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
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


@pytest.fixture
def plugin(invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scaffolded package, found as one that is installed in a way that leaves its source where it is."""
    assert invoke("init", "--plugin", "acme-crm").exit_code == 0
    folder = project / "acme-crm"
    points = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    installed = folder / "src" / "acme_crm-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-crm\nVersion: 0.1.0\n", encoding="utf-8")
    lines = [f"{name} = {place}" for name, place in points["ropewalk.nodes"].items()]
    (installed / "entry_points.txt").write_text("\n".join(["[ropewalk.nodes]", *lines, ""]), encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder / "src"))
    return folder


def test_the_types_of_a_scaffolded_package_are_listed_checked_and_executed(
    invoke: Invoke, answer: Callable[..., Any], plugin: Path, project: Path
):
    (project / "greet.yaml").write_text(
        "ropewalk: 1\nname: greet\nnodes:\n  - { id: a, type: acme_crm.greet, with: { name: Ada } }\n"
        "  - { id: b, type: acme_crm.customer, with: { id: 'no id' } }\n",
        encoding="utf-8",
    )

    listed = {each["name"]: each for each in answer("nodes")}
    wrong = invoke("validate", "greet.yaml")
    (project / "greet.yaml").write_text(
        "ropewalk: 1\nname: greet\nnodes: [{ id: a, type: acme_crm.greet, with: { name: Ada } }]\n", encoding="utf-8"
    )

    assert listed["acme_crm.greet"]["description"] == "Greets a person."
    assert listed["acme_crm.customer"]["parameters"]["required"] == ["id"]
    assert "greet.yaml:5: nodes[1].with.id: " in wrong.stdout
    assert answer("run", "greet.yaml")["output"] == {"a": "Hello, Ada!"}


def test_the_tests_of_a_scaffolded_package_pass(plugin: Path):
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    environment = {**os.environ, "PYTHONPATH": str(plugin / "src")}

    done = subprocess.run(words, cwd=plugin, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed" in done.stdout


@pytest.mark.parametrize("name", ["../crm", "crm!", "1crm", ""])
def test_a_package_must_have_a_name_that_can_be_one(invoke: Invoke, name: str):
    said = invoke("init", "--plugin", name)

    assert said.exit_code == 2
    assert "is no name for a package" in said.stderr

"""`ropewalk init`: the example project does what its README says."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Invoke

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

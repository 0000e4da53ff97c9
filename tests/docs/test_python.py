"""The page about workflows in Python does what it says, from top to bottom in one program."""

import subprocess
import sys
from pathlib import Path

import ropewalk
from tests.cli.conftest import ROOT
from tests.snippets import snippets

PAGE = ROOT / "docs" / "python.md"
PATIENCE = 120.0


def test_every_example_of_the_page_runs(tmp_path: Path):
    program = []
    for each in snippets(PAGE, "python"):
        if each.file is not None:
            (tmp_path / each.file).write_text(each.text, encoding="utf-8")
        else:
            # On the line it has in the page, so that a traceback names that.
            program.append("\n" * (each.line - 1) + each.text)
    runner = f"names = {{}}\nfor each in {program!r}:\n    exec(compile(each, {PAGE.name!r}, 'exec'), names)\n"
    (tmp_path / "run.py").write_text(runner, encoding="utf-8")

    ended = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE
    )

    assert ended.returncode == 0, ended.stderr
    assert len(program) > 10


def test_every_method_of_the_engine_and_its_executions_is_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    methods = [name for kind in (ropewalk.LocalEngine, ropewalk.LocalExecution) for name in dir(kind)]

    assert [name for name in methods if not name.startswith("_") and f"`{name}(" not in page] == []

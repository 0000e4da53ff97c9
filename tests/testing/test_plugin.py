"""The pytest plugin: light to load, at home in a project, and clear about what is not meant for it."""

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from ropewalk import Workflow, node, testing
from ropewalk.cli.main import cli
from ropewalk.testing import TestEngine

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
NOOP = {"ropewalk": 1, "name": "noop", "nodes": [{"id": "a", "type": "noop"}]}


def run_pytest(folder: Path, *options: str) -> str:
    """What pytest says in a process of its own, in this folder."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        "asyncio_default_fixture_loop_scope=function",
    ]
    told = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    return told.stdout + told.stderr


def written(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")


def test_the_tests_of_a_new_project_pass_with_two_days_skipped(tmp_path: Path):
    made = CliRunner().invoke(cli, ["init", str(tmp_path / "project")])
    assert made.exit_code == 0, made.output

    said = run_pytest(tmp_path / "project", "--durations=0", "-vv")

    assert "3 passed" in said, said
    skipped = re.search(r"([\d.]+)s call .*declined_after_two_days", said)
    assert skipped is not None, said
    assert float(skipped[1]) < 1.0, said


def test_loading_the_plugin_loads_no_engine():
    program = (
        "import sys, ropewalk.testing.plugin, ropewalk.testing\n"
        "print([name for name in sys.modules if name.startswith('ropewalk.')])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert told.stdout.strip() == "['ropewalk.testing', 'ropewalk.testing.plugin']"


def test_pytest_runs_the_engine_as_it_is_compiled_anywhere(tmp_path: Path):
    written(
        tmp_path, "test_it.py", "import ropewalk.local as it\ndef test_it(): print('by', type(it.__loader__).__name__)"
    )

    assert "by SourceFileLoader" in run_pytest(tmp_path, "-s")


def test_a_project_brings_its_node_types_and_its_env(tmp_path: Path):
    written(tmp_path, "ropewalk.toml", 'nodes = ["ours.py"]\n[env]\nROPE = "long"\n')
    written(tmp_path, "ours.py", "import ropewalk\n@ropewalk.node\ndef ours() -> int:\n    return 7\n")
    (tmp_path / "deep" / "tests").mkdir(parents=True)
    output = "{{ [env.ROPE, nodes.a.output] }}"
    document = {"ropewalk": 1, "name": "n", "nodes": [{"id": "a", "type": "ours"}], "output": output}
    test = f"def test_it(ropewalk_engine):\n    assert ropewalk_engine.start({document}).result() == ['long', 7]\n"
    written(tmp_path, "deep/tests/test_it.py", test)

    assert "1 passed" in run_pytest(tmp_path)
    assert "1 passed" in run_pytest(tmp_path / "deep" / "tests")


def test_the_tests_of_the_page_pass_as_they_stand(tmp_path: Path):
    blocks = re.findall(r"```(yaml|python)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    written(tmp_path, "refund.yaml", next(text for kind, text in blocks if kind == "yaml"))
    tests = [text for kind, text in blocks if kind == "python" and "def test_" in text]
    for number, text in enumerate(tests):
        written(tmp_path, f"test_page{number}.py", text)

    assert "4 passed" in (said := run_pytest(tmp_path)), said


async def test_an_async_test_is_told_what_to_use_instead(ropewalk_engine: TestEngine):
    with pytest.raises(RuntimeError, match=r"async with ropewalk\.testing\.open\(\) as engine"):
        ropewalk_engine.start(NOOP)


async def test_an_async_test_has_an_engine_of_its_own():
    @node
    async def greet(person: str) -> str:
        """Greets."""
        return f"Hello, {person}"

    built = Workflow("greeting")
    built.node("greet", greet, person=built.input)
    async with testing.open(nodes=[greet], env={"ROPE": "long"}) as engine:
        execution = await engine.start(built, "Ada")

        assert await execution.result() == {"greet": "Hello, Ada"}
        assert [event["type"] for event in await execution.events("NodeSucceeded")] == ["NodeSucceeded"]
        said = await engine.start({**NOOP, "output": "{{ env.ROPE }}"})
        assert await said.result() == "long"
        again = await execution.rerun("greet")
        assert await again.result() == {"greet": "Hello, Ada"}


def test_tests_share_nothing():
    for _ in range(2):
        with testing.open_blocking() as engine:
            assert engine.executions() == []
            engine.start(NOOP).result()


def test_what_a_test_raises_is_what_is_told():
    def fails() -> None:
        with testing.open_blocking() as engine:
            engine.start(NOOP)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()


def test_a_store_that_breaks_a_guarantee_fails_the_test():
    def tampers() -> None:
        with testing.open_blocking() as engine:
            engine.start(NOOP).result()
            engine._service.store._connection.execute("update execution set state = 'FAILED'")

    with pytest.raises(AssertionError, match="breaks what Ropewalk guarantees"):
        tampers()


def test_a_node_that_runs_on_does_not_keep_the_test_from_ending():
    @node
    async def endless() -> None:
        """Waits for good."""
        await asyncio.Event().wait()

    built = Workflow("endless")
    built.node("endless", endless)
    began = time.monotonic()
    with testing.open_blocking() as engine:
        engine.start(built)

    assert time.monotonic() - began < 5


def test_nothing_is_left_on_the_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with testing.open_blocking() as engine:
        engine.start(NOOP).result()
        assert os.listdir(tmp_path)

    assert os.listdir(tmp_path) == []

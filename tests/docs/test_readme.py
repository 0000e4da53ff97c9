"""The README does what it says: a reader who follows it from top to bottom in a clone gets what it promises."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from ropewalk.cli.main import cli
from tests.cli.conftest import ROOT
from tests.postgres import PostgresServer
from tests.snippets import Snippet, snippets

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
PATIENCE = 300.0
CLONED = ("LICENSE", "README.md", "pyproject.toml", "src")
LIBRARIES = Path(sysconfig.get_path("purelib"))


@pytest.fixture
def empty_database(postgres: PostgresServer) -> Iterator[str]:
    """A database as a reader has it: with nothing of Ropewalk in it."""
    url = asyncio.run(postgres.create_database(is_empty=True))
    yield url
    asyncio.run(postgres.drop_database(url))


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a wheel is made of."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for name in CLONED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def environment(tmp_path: Path, empty_database: str) -> dict[str, str]:
    """A fresh virtual environment in which pip finds every library but Ropewalk without a network."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    shelf = tmp_path / "libraries"
    shelf.mkdir()
    for each in LIBRARIES.iterdir():
        if "ropewalk" not in each.name and each.suffix != ".pth":
            (shelf / each.name).symlink_to(each)
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("ROPEWALK_", "PYTHON", "PIP_"))}
    return bare | {
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(shelf),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the answer to "isolate?"
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "DATABASE_URL": empty_database,
        "ROPEWALK_SERVER_PORT": "0",  # another server may run on this machine
    }


def typed(snippet: Snippet) -> str:
    """What a reader types for an example: kept in the file it names, executed if it is a program."""
    if snippet.language == "sh":
        return snippet.text
    file = snippet.file or f"line{snippet.line}.{snippet.language}"
    kept = f"cat > {file} <<'END OF EXAMPLE'\n{snippet.text}END OF EXAMPLE\n"
    return kept + (f"python {file}\n" if snippet.language == "python" else "")


def followed(folder: Path, environment: dict[str, str]) -> str:
    """What a shell answers to all examples, typed one after the other; what they started is ended with it."""
    script = "".join(f"echo '== line {each.line}'\n{typed(each)}" for each in snippets(README))
    said = folder / "said.txt"
    with said.open("w", encoding="utf-8") as heard, subprocess.Popen(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        cwd=folder, env=environment, start_new_session=True, stdin=subprocess.DEVNULL, stdout=heard, stderr=heard,
    ) as shell:  # fmt: skip
        try:
            shell.wait(PATIENCE)
        finally:
            with suppress(ProcessLookupError):  # nothing that the examples started is left
                os.killpg(shell.pid, signal.SIGKILL)
    assert shell.returncode == 0, said.read_text(encoding="utf-8")
    return said.read_text(encoding="utf-8")


PROMISES = [
    r"Successfully installed ropewalk-",
    r"== line \d+\n28\.0\n",
    r"waits for approval: Refund 250\?",
    r'"paid": ?true',
    r"Admin token, shown this once: rw_",
    r'"executionId":"[-0-9a-f]{36}"',
    r"'total': 6\.0",
]


def test_every_example_does_what_it_says_in_a_clone(clone: Path, environment: dict[str, str]):
    said = followed(clone, environment)

    assert [promise for promise in PROMISES if not re.search(promise, said)] == [], said


def test_the_python_program_of_the_first_screen_has_twenty_lines():
    program = next(each for each in snippets(README, "python") if each.file)

    assert len([line for line in program.text.splitlines() if line and not line.startswith("#")]) <= 20


def test_every_example_is_in_a_language_that_is_executed():
    assert {each.language for each in snippets(README)} == {"sh", "python", "yaml"}


def test_every_command_that_is_named_exists():
    named = re.findall(r"`ropewalk ([a-z][a-z-]*)", TEXT)
    targets = re.findall(r"`make ([a-z-]+)", TEXT)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert [name for name in named if cli.get_command(click.Context(cli), name) is None] == []
    assert [name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []


def test_every_page_that_is_named_is_there():
    assert [page for page in re.findall(r"\]\((?!http)([^)#]+)", TEXT) if not (ROOT / page).exists()] == []


@pytest.mark.parametrize(
    ("row", "workload"), [("a chain of 40 nodes, per node", "W2"), ("lost by a kill −9 in a chain", "W5")]
)
def test_our_figures_are_those_of_the_performance_page(row: str, workload: str):
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    ours = re.search(rf"^\| {row}[^|]*\| ([^|]+)\|", TEXT, re.MULTILINE)
    measured = re.search(rf"^\| {workload} .*$", page, re.MULTILINE)

    assert ours
    assert measured
    figures = re.findall(r"[\d.]+ m?s\b", ours[1])
    assert figures
    assert [figure for figure in figures if f"| {figure} |" not in measured[0]] == []


def test_the_readme_is_short():
    assert TEXT.count("\n") < 200


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_every_sentence_names_its_subject(page: str):
    words = r"(?i)\b(whoever|nobody|somebody|no one|someone|anyone)\b"

    assert re.findall(words, (ROOT / page).read_text(encoding="utf-8")) == []

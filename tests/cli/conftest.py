"""The real command line on real files: in this process, or in one of its own where signals matter."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ropewalk.cli.main import cli
from ropewalk.store.sqlite import owner_info
from tests.client.servers import Served, served_beside

ROOT = Path(__file__).parents[2]
NODES = str(Path(__file__).parent / "node_types.py")

WORKFLOWS = {
    "hello.yaml": """
ropewalk: 1
name: hello
vars: { word: Hello }
nodes:
  - { id: line, type: set, with: { values: { text: "{{ vars.word }}, {{ input.name ?? 'world' }}!" } } }
output: "{{ nodes.line.output.text }}"
""",
    "held.yaml": """
ropewalk: 1
name: held
nodes:
  - { id: first, type: hold, with: { gate: first.gate } }
  - { id: second, type: hold, with: { gate: second.gate } }
edges: [{ from: first, to: second }]
""",
    "stays.yaml": """
ropewalk: 1
name: stays
nodes: [{ id: stays, type: stay, timeout: 100ms, retry: { maxAttempts: 1 } }]
""",
    "paid.yaml": """
ropewalk: 1
name: paid
nodes:
  - { id: pay, type: charge, with: { card: expired } }
  - { id: send, type: set, with: { values: { sent: "{{ nodes.pay.output }}" } } }
edges: [{ from: pay, to: send }]
output: "{{ nodes.send.output.sent }}"
""",
    "flaky.yaml": """
ropewalk: 1
name: flaky
nodes: [{ id: call, type: flaky, retry: { maxAttempts: 2, delay: 10ms } }]
""",
    "letter.yaml": """
ropewalk: 1
name: letter
nodes: [{ id: write, type: write, retry: { delay: 1ms } }]
""",
    "asked.yaml": """
ropewalk: 1
name: asked
nodes:
  - { id: ask, type: approval, with: { title: "Really?" } }
  - { id: "yes", type: set, with: { values: { done: true } } }
edges: [{ from: ask, to: "yes", on: approved }]
output: "{{ nodes.yes.output.done ?? false }}"
""",
    "told.yaml": """
ropewalk: 1
name: told
nodes: [{ id: word, type: wait, with: { signal: word } }]
output: "{{ nodes.word.output }}"
""",
    "undone.yaml": """
ropewalk: 1
name: undone
nodes:
  - { id: seat, type: noop, compensate: { type: noop } }
  - { id: car, type: fail, with: { message: no car } }
edges:
  - { from: seat, to: car }
""",
    "late.yaml": """
ropewalk: 1
name: late
timeout: 50ms
nodes: [{ id: hours, type: delay, with: { for: 1h } }]
""",
    "wrong.yaml": """
ropewalk: 1
name: wrong
nodes:
  - { id: a, type: noop }
  - { id: a, type: noop }
  - { id: b, type: nosuch }
edges:
  - { from: a, to: c }
""",
}

PATIENCE = 60.0
Invoke = Callable[..., Result]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture(scope="session")
def runtime() -> Iterator[str]:
    """Where sockets are: their paths must be short, and killed processes leave them behind."""
    with tempfile.TemporaryDirectory(prefix="rw-", dir="/tmp") as folder:
        yield folder


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str) -> Iterator[Path]:
    """A directory with workflows and their node types, to work in."""
    for name, content in WORKFLOWS.items():
        (tmp_path / name).write_text(content.lstrip(), encoding="utf-8")
    (tmp_path / "ropewalk.toml").write_text(f"nodes = [{json.dumps(NODES)}]\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("ROPEWALK_DB", "ROPEWALK_NODES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    yield tmp_path
    # A background process has a session of its own, and must not outlive a test that failed.
    for database in tmp_path.glob("*.db"):
        if (owner := owner_info(str(database))) is not None:
            os.kill(owner.pid, signal.SIGKILL)


@pytest.fixture
def broken(project: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package is installed whose node type cannot be imported; the name of the type."""
    package = project / "crm-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: crm\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text("[ropewalk.nodes]\ncrm.update = no_crm:Update\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(project))
    return "crm.update"


@pytest.fixture
def invoke() -> Invoke:
    """Carries a command out in this process."""

    def carry_out(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(cli, arguments, input=stdin)

    return carry_out


@pytest.fixture
def answer(invoke: Invoke) -> Callable[..., Any]:
    """What a command that must succeed answers with --json."""

    def ask(*arguments: str) -> Any:
        result = invoke(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return ask


@pytest.fixture
def server(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server with the node types of the project, and the token for it in the environment."""
    with served_beside(str(project / "there.db"), (NODES,)) as server:
        monkeypatch.setenv("ROPEWALK_TOKEN", server.token)
        yield server


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a command as a process of its own; none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "ropewalk", *arguments]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        with process:
            process.kill()


def told(process: subprocess.Popen[str], words: str) -> str:
    """The next line in which a process says these words; it must come before the process ends, and in time."""
    assert process.stderr is not None
    heard = []
    patience = threading.Timer(PATIENCE, process.kill)
    patience.start()
    try:
        for line in process.stderr:
            heard.append(line)
            if words in line:
                return line
    finally:
        patience.cancel()
    raise AssertionError(f"the process never said {words!r} but: {''.join(heard)}")


def code_of(process: subprocess.Popen[str]) -> int:
    """How a process ended; one that hangs fails the test."""
    return process.wait(timeout=PATIENCE)


def open_gate(name: str) -> None:
    Path(name).touch()


def in_terminal(arguments: list[str], until: str = "", then: bytes = b"", columns: int = 100) -> tuple[int, str]:
    """Carries a command out in a terminal of 30 lines, types `then` when `until` has appeared; its code and output."""
    pid, terminal = pty.fork()
    if pid == 0:
        path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
        os.environ.update(TERM="xterm", COLUMNS=str(columns), LINES="30", PYTHONPATH=path)
        os.execv(sys.executable, [sys.executable, "-m", "ropewalk", *arguments])
    shown = ""
    while chunk := _chunk(terminal):
        shown += chunk
        if then and until in shown:
            os.write(terminal, then)
            then = b""
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def _chunk(terminal: int) -> str:
    assert select.select([terminal], [], [], PATIENCE)[0], "the command hangs"
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:  # the other end is closed
        return ""

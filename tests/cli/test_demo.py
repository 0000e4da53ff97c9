"""`make demo` shows what it promises: it is carried out, not only kept up to date."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT

PATIENCE = 180.0
"""It takes half a minute alone; beside other tests it may take several times as long (s)."""

PROMISES = [
    r"10 results recorded, each once: True\. Effects: 1[01]\.\n(?s:.*)Nodes run at least once",
    r"\$ ropewalk dlq requeue last(?s:.*)The same execution has finished: SUCCESS, same id\.",
    r"Every log and every table of the store, held to the guarantees:(?s:.*)\$ ropewalk check\n.*no violation",
    r"Process \d+ is dead\. The other worker notices(?s:.*)10 results recorded, each once: True",
    r"/stream(?s:.*)\"state\":\"SUCCESS\"",
    r"That was \d+ seconds\. `ropewalk init` makes a project of your own\.",
]


def demonstrated(home: Path) -> subprocess.CompletedProcess[str]:
    """What the demonstration says, in a home of its own; nothing that it started outlives it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROPEWALK_")}
    environment |= {"HOME": str(home), "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tools.demo"]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, start_new_session=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as demo:  # fmt: skip
        try:
            said, _ = demo.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(demo.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, demo.returncode, said)


def test_the_demonstration_ends_well_and_shows_every_promise(tmp_path: Path):
    if shutil.which("curl") is None:
        pytest.fail("curl is missing: `make demo` as root, or apt-get install curl")

    done = demonstrated(tmp_path)

    assert done.returncode == 0, done.stdout
    assert [promise for promise in PROMISES if not re.search(promise, done.stdout)] == [], done.stdout

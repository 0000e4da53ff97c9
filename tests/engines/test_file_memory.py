"""A file of 100 MiB goes through three nodes, and through memory only in parts."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.samples import ROOT

MIB_MOVED = 100
MOST_KIB = 40 * 1024


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_hundred_mebibytes_go_through_three_nodes_in_little_memory(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
):
    store = str(tmp_path / "test.db") if kind == "sqlite" else str(request.getfixturevalue("database"))
    (tmp_path / "root").mkdir()
    command = [sys.executable, "-m", "tests.engines.file_memory", store, str(tmp_path / "root"), str(MIB_MOVED)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr
    grown = int(done.stdout)
    sys.stdout.write(f"{kind}: {MIB_MOVED} MiB through three nodes, memory grew by {grown / 1024:.1f} MiB\n")
    assert grown < MOST_KIB

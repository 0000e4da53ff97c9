"""Large graphs finish, and what only waits costs rows and nothing else."""

from pathlib import Path

import pytest

from tests.crash.sizes import SAMPLE, measure

NODES = 10_000
PARKED = 100_000
MOST_MIB = 200
MOST_LATE = 5.0


@pytest.mark.parametrize(("shape", "runs"), [("fan_out", NODES + 2), ("chain", NODES)])
def test_ten_thousand_nodes_finish(tmp_path: Path, shape: str, runs: int):
    figures = measure("execute", tmp_path / "large.db", shape, NODES)

    assert (figures["state"], figures["runs"]) == ("SUCCESS", runs)


def test_a_hundred_thousand_parked_executions_cost_no_memory_and_wake_on_time(tmp_path: Path):
    parked = measure("park", tmp_path / "parked.db", PARKED)
    held = measure("wake", tmp_path / "parked.db", *parked["sample"])

    assert (held["parked"], held["woken"]) == (PARKED, SAMPLE)
    assert max(parked["rss_mib"], held["rss_mib"]) <= MOST_MIB
    assert 0 <= held["late_first"] <= held["late_last"] <= MOST_LATE

"""The fault campaign in small: real servers, real faults, ledgers of what clients and nodes saw.

How long something takes is for `python -m tools.faults`, which runs the same experiments in full size.
"""

from pathlib import Path

import pytest

from tools.faults import EXPERIMENTS


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_nothing_is_lost_doubled_or_hung_by(name: str, tmp_path: Path):
    outcome = EXPERIMENTS[name](tmp_path / name, True)

    assert outcome.violations == []

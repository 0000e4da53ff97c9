"""The rules of the source are counted as `tools/house.py` says."""

from pathlib import Path

import pytest

from tools import house, sleeps

ENGINE = """
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.offers import Offers

class NativeEngine:
    def __init__(self):
        self.memory = Memory()
        self.commit: GroupCommit | None = GroupCommit() if True else None
        self.offers, self.number = Offers(self), 1
"""
OFFERS = """
from typing import TYPE_CHECKING

from ropewalk.engines.native import timers

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine

class Offers:
    def place(self):
        self._engine.memory.load(timers.LATEST)
        self._engine.commit.add()
        self._engine.offers.place()
"""


def native(**modules: str) -> dict[str, str]:
    return {f"{house.NATIVE}/{name}.py": text for name, text in modules.items()}


def test_a_collaborator_is_what_is_imported_or_reached_through_the_engine():
    found = house.collaborators(native(engine=ENGINE, offers=OFFERS, timers="", memory="", commit=""))

    assert found == {
        "engine": ["commit", "memory", "offers"],
        "offers": ["commit", "engine", "memory", "timers"],
        "timers": [],
        "memory": [],
        "commit": [],
    }


def test_a_method_of_the_engine_is_the_engine_itself():
    found = house.collaborators(native(engine=ENGINE, reports="def report(engine): engine.signal()"))

    assert found["reports"] == ["engine"]


def test_a_module_is_too_long_from_its_first_line_over_the_limit_on():
    found = house.too_long({"src/a.py": "x\n" * 350, "src/b.py": "x\n" * 351, "src/c.sql": "x\n" * 999})

    assert found == {"src/b.py": 351}


def test_the_lines_of_a_commit_are_counted_as_those_that_lie_there():
    if not (house.ROOT / ".git").exists() or house._git("status", "--porcelain", "src"):
        pytest.skip("what lies there is no commit")

    assert house.lines_at("HEAD") == sum(house.lengths(house.sources(house.ROOT)).values())


@pytest.mark.parametrize(
    ("line", "is_refused"),
    [
        ("await asyncio.sleep(0.05)", True),
        ("time.sleep(PAUSE)", True),
        ("perform pg_sleep(0.001);", True),
        ("await asyncio.sleep(0)", False),
        ("def sleep(world): ...", False),
        ("def keeps_none_asleep(world): ...", False),
    ],
)
def test_a_test_that_sleeps_is_refused(tmp_path: Path, line: str, is_refused: bool):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_one.py").write_text(f"{line}\n")

    lines = sleeps.found(tmp_path)

    assert lines == ({"tests/test_one.py": [1]} if is_refused else {})
    assert any("tests/test_one.py sleeps in line 1" in each for each in sleeps.refused(lines)) is is_refused


def test_where_sleeping_is_the_point_one_sleep_more_is_refused():
    file, (allowed, _) = next((file, rule) for file, rule in sleeps.ALLOWED.items() if rule[0] is not None)
    allowing = {place: [1] * count for place, (count, _) in sleeps.ALLOWED.items() if count is not None}

    more = list(sleeps.refused({**allowing, file: [1] * ((allowed or 0) + 1)}))

    assert list(sleeps.refused(allowing)) == []
    assert [each.split()[0] for each in more] == [file]

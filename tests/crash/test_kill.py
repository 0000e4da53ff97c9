"""Processes that die at any moment lose nothing that was accepted and double nothing that was recorded."""

import shutil
from pathlib import Path

import pytest

from ropewalk.checker import Effect
from tests.crash.driver import Campaign, Misbehaved
from tests.crash.ledgers import Accepted, Place
from tests.crash.verdict import judge
from tests.store.samples import tell

CYCLES = 40
MOST_SECONDS = 75.0


@pytest.mark.parametrize("seed", [2026])
async def test_kills_at_any_moment_lose_and_double_nothing(tmp_path: Path, seed: int):
    place = Place(str(tmp_path))

    figures = Campaign(place, seed).run(CYCLES, most_seconds=MOST_SECONDS)
    verdict = await judge(place)

    assert verdict.violations == []
    assert verdict.accepted > figures.cycles
    assert verdict.lost_attempts > 0, "no kill came while a node was at work: this has shown nothing"


@pytest.fixture(scope="module")
def rested(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A store on which a process died, at rest."""
    place = Place(str(tmp_path_factory.mktemp("rested")))
    Campaign(place, seed=1).run(1)
    return place


def lose_an_execution(place: Place) -> None:
    place.clients.write(Accepted("gone", "fan"))


def work_without_a_start(place: Place) -> None:
    known = place.effects.read()[0]
    place.effects.write(Effect(known.execution, "never", None, 1, ""))


def work_for_no_execution(place: Place) -> None:
    place.effects.write(Effect("nobody", "one", None, 1, ""))


def work_twice(place: Place) -> None:
    place.effects.write(place.effects.read()[0])


def change_a_run(place: Place) -> None:
    tell(place.database, "update run set attempt = attempt + 1 where id = (select min(id) from run)")


def forget_an_entry(place: Place) -> None:
    last = "select execution, seq from log where seq > 1 order by execution desc, seq desc limit 1"
    tell(place.database, f"delete from log where (execution, seq) in ({last})")


def record_twice(place: Place) -> None:
    tell(place.database, "insert into log select execution, seq + 1000, entry from log order by seq desc limit 1")


def leave_a_letter(place: Place) -> None:
    tell(place.database, "insert into inbox (id, execution, signal, sent_at) values ('i', 'e', '{}', 1)")


@pytest.mark.parametrize(
    ("tamper", "found"),
    [
        (lose_an_execution, "I-35"),
        (work_without_a_start, "I-32"),
        (work_for_no_execution, "nobody"),
        (work_twice, "I-33"),
        (change_a_run, "I-36"),
        (forget_an_entry, "I-"),
        (record_twice, "I-01"),
        (leave_a_letter, "inbox"),
    ],
)
async def test_the_judgement_notices_what_a_crash_could_do(rested: Place, tmp_path: Path, tamper, found: str):
    place = Place(str(tmp_path / "copy"))
    shutil.copytree(rested.folder, place.folder)
    before = (await judge(place)).violations
    tamper(place)
    after = (await judge(place)).violations

    assert before == []
    assert any(found in violation for violation in after)


def test_the_driver_notices_a_process_that_ends_by_itself(tmp_path: Path):
    campaign = Campaign(Place(str(tmp_path / "missing")), seed=1)

    with pytest.raises(Misbehaved, match="ended 70"):
        campaign.run(1)

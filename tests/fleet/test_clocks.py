"""Wall clocks decide nothing: a member whose clock is hours off, or jumps, fires nothing early and robs no other
member.

Such a member is a process under libfaketime. The clocks that cannot be set stay as they are.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.ledgers import Accepted
from tests.fleet.fleet import Fleet, Nursery, nursery
from tests.fleet.ledgers import Seen
from tests.fleet.load import more_accepted, under_load
from tests.fleet.verdict import judge
from tests.fleet.workflows import node, workflow
from tests.polling import until

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
HOUR = 3600
SECOND = 1_000_000
NAP, LONG_NAP, DELAY = 0.6, 10.5, 0.3
"""The longer nap is long enough for its execution to be parked."""
LEASE = 10.0
"""Much less than a clock is off, and more than a busy machine keeps a member from renewing it."""
SLACK = 0.1
"""How well two members know the time of the store they share, and more, in seconds."""


def napping(name: str, seconds: float) -> dict[str, object]:
    nap = {"id": "nap", "type": "delay", "with": {"for": f"{seconds * 1000:.0f}ms"}}
    return workflow(name, [node("before"), nap, node("after")], "before nap", "nap after", timeout="1h")


LOOKS = workflow("looks", [{"id": "look", "type": "fleet.wall"}])
RETRIED = workflow(
    "retried",
    [node("flaky", failures=2, retry={"maxAttempts": 3, "delay": f"{DELAY * 1000:.0f}ms", "factor": 1, "jitter": 0})],
    timeout="1h",
)
GATED = workflow("gated", [{"id": "one", "type": "fleet.gated"}, node("two")], "one two", timeout="1h")


class Clock:
    """The wall clock of every member of one nursery."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set(0)

    def set(self, hours: int) -> None:
        """It is off by so much from now on; a reader finds the whole of the old or of the new."""
        fresh = self.path.with_suffix(".new")
        fresh.write_text(f"{hours:+d}h\n")
        os.replace(fresh, self.path)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
def elsewhen(clock: Clock) -> Iterator[Nursery]:
    """A nursery whose members go by this clock."""
    if not LIBRARIES:
        pytest.fail("libfaketime is missing: `make setup` as root, or apt-get install libfaketime")
    environment = {
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME_TIMESTAMP_FILE": str(clock.path),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    with nursery(environment) as home:
        yield home


def begun(seen: list[Seen]) -> dict[tuple[str, str, int], float]:
    """When each attempt at a node began."""
    return {(each.execution, each.node, each.attempt): each.at for each in seen if each.is_begun}


def too_early(seen: list[Seen], naps: dict[str, float]) -> list[tuple[str, str, int]]:
    """Runs that began before their time: after a nap (by execution), or an attempt after the one before."""
    began = begun(seen)
    since = {
        (execution, name, attempt): began[execution, name, attempt - 1] + DELAY
        for execution, name, attempt in began
        if attempt > 1
    }
    since |= {
        (execution, "after", 1): began[execution, "before", 1] + naps.get(execution, NAP)
        for execution, name, _ in began
        if name == "after"
    }
    return [key for key, due in since.items() if began[key] < due - SLACK]


def test_a_run_that_begins_before_its_time_would_be_noticed():
    first = Seen(1, "e1", "flaky", None, 1, True, 100.0)
    hasty, napper = Seen(1, "e1", "flaky", None, 2, True, 100.1), Seen(1, "e2", "before", None, 1, True, 100.0)
    woken = Seen(1, "e2", "after", None, 1, True, 100.7)

    assert too_early([first, hasty], {}) == [("e1", "flaky", 2)]
    assert too_early([napper, woken], {}) == []
    assert too_early([napper, woken], {"e2": LONG_NAP}) == [("e2", "after", 1)]


async def seen_by(crew: Fleet, pid: int) -> list[float]:
    """What the clock of this process showed, in hours beside the true time, each time that a node looked."""
    looks = [each for each in crew.place.seen.read() if each.node == "look" and each.pid == pid and each.is_begun]
    told = dict(await crew.ask("select id, accepted_at from execution"))
    shown = [(await crew.client.ended(each.execution)).output["look"] - told[each.execution] / SECOND for each in looks]
    return [round(off / HOUR) for off in shown]


@pytest.mark.parametrize("hours", [(5,), (-5,), (0, 5, -5, 0)], ids=["ahead", "behind", "jumping"])
async def test_a_member_whose_clock_is_wrong_fires_nothing_early_and_takes_nothing_over(
    clock: Clock, elsewhen: Nursery, crew: Fleet, hours: tuple[int, ...]
):
    clock.set(hours[0])
    wrong = await crew.spawn(elsewhen, lease=LEASE).served()
    right = (await crew.join(1, lease=LEASE))[0]
    parked = await crew.client.start(await crew.client.save(napping("parked", LONG_NAP)))
    crew.place.clients.write(Accepted(parked, "parked"))
    async with under_load(crew, documents=[LOOKS, RETRIED, napping("brief", NAP)]) as load:
        for offset in hours:
            clock.set(offset)
            await more_accepted(load, 40)
    await crew.quiet()
    seen = crew.place.seen.read()
    verdict = await judge(crew.url, crew.place)

    assert set(await seen_by(crew, wrong.pid)) == set(hours)
    assert set(await seen_by(crew, right.pid)) == {0}
    assert too_early(seen, {parked: LONG_NAP}) == []
    assert [len(member.names) for member in (wrong, right)] == [1, 1]
    assert verdict.lost_attempts == 0
    assert set(verdict.states) == {"SUCCESS"}
    assert verdict.violations == []
    assert crew.faults() == []


@pytest.mark.parametrize("hours", [5, -5])
async def test_a_member_whose_clock_jumps_takes_over_from_the_dead_alone(
    clock: Clock, elsewhen: Nursery, crew: Fleet, hours: int
):
    right = (await crew.join(1, lease=LEASE))[0]
    version = await crew.client.save(GATED)
    ids = sorted([await crew.client.start(version) for _ in range(5)])

    async def are_begun() -> bool:
        return len(begun(crew.place.seen.read())) == len(ids)

    await until(are_begun, "everything is under way")
    wrong = await crew.spawn(elsewhen, lease=LEASE).served()
    clock.set(hours)
    await beats(crew, wrong.names[0], LEASE / 2)
    before = sorted(await crew.owned_by(right.names))
    right.signal(signal.SIGKILL)

    async def are_taken_over() -> bool:
        return sorted(await crew.owned_by(wrong.names)) == ids

    await until(are_taken_over, "the other has taken over", LEASE + 5)
    crew.place.turn_on("gate")
    ends = await crew.states(ids)
    await crew.quiet()
    verdict = await judge(crew.url, crew.place)

    assert before == ids
    assert ends == ["SUCCESS"] * len(ids)
    assert verdict.lost_attempts == len(ids)
    assert len(wrong.names) == 1
    assert verdict.violations == []
    assert crew.faults() == []


async def beats(crew: Fleet, worker: str, seconds: float) -> None:
    """The worker has renewed its lease for so long."""
    question = "select heartbeat_at from worker where id = $1"
    [(first,)] = await crew.ask(question, worker)

    async def has_gone_on() -> bool:
        [(last,)] = await crew.ask(question, worker)
        return bool(last - first >= seconds * SECOND)

    await until(has_gone_on, f"{worker} has renewed its lease for {seconds:g} s")

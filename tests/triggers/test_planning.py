"""What due times come to as time goes by: each starts one execution, or is recorded as missed; none is forgotten."""

import random

import pytest

from ropewalk.core.duration import DAY, HOUR, MINUTE, SECOND
from ropewalk.core.schedule import Schedule, moment_of
from ropewalk.triggers.planning import MOST_AT_ONCE, plan

NOON = moment_of("2026-11-18T12:00:00Z")


def outcomes(settings, began: int, looks: list[int]) -> tuple[list[int], list[int]]:
    """What was started and what was missed, by a server that looks at these moments."""
    schedule, cursor = Schedule(settings), began
    started: list[int] = []
    missed: list[int] = []
    for now in looks:
        while True:
            planned = plan(schedule, settings, "t", cursor, now)
            missed += planned.missed
            cursor = planned.cursor
            if planned.due is not None:
                started.append(planned.due)
                cursor = planned.due
            if planned.due is None and len(planned.missed) < MOST_AT_ONCE:
                break
    return started, missed


def test_what_is_met_in_time_is_started_once():
    looks = [NOON + minute * MINUTE + SECOND for minute in range(1, 11)]

    started, missed = outcomes({"cron": "* * * * *"}, NOON, looks)

    assert started == [NOON + minute * MINUTE for minute in range(1, 11)]
    assert missed == []


@pytest.mark.parametrize(("misfire", "started", "missed"), [("skip", 0, 60), ("latest", 1, 59), ("all", 60, 0)])
def test_after_an_hour_without_a_server_misfire_decides(misfire, started, missed):
    settings = {"cron": "* * * * *", "misfire": misfire, "grace": "10s"}

    found = outcomes(settings, NOON, [NOON + HOUR + 30 * SECOND])

    assert (len(found[0]), len(found[1])) == (started, missed)
    assert sorted(found[0] + found[1]) == [NOON + minute * MINUTE for minute in range(1, 61)]
    assert found[0][-1:] in ([], [NOON + HOUR])


def test_what_is_late_within_the_grace_is_started_whatever_misfire_says():
    settings = {"cron": "* * * * *", "misfire": "skip", "grace": "5m"}

    assert outcomes(settings, NOON, [NOON + 3 * MINUTE + SECOND]) == ([NOON + n * MINUTE for n in (1, 2, 3)], [])


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("misfire", ["skip", "latest", "all"])
def test_over_two_years_of_outages_every_due_time_is_decided_exactly_once(zone, misfire):
    chance = random.Random(f"{zone}/{misfire}")
    settings = {"cron": ["30 2 * * *", "0 */6 * * *"], "zone": zone, "misfire": misfire, "jitter": "10m"}
    looks, now = [], NOON
    while now < NOON + 730 * DAY:
        now += chance.choice([MINUTE, HOUR, 5 * HOUR, 3 * DAY])
        looks.append(now)

    started, missed = outcomes(settings, NOON, looks)
    schedule = Schedule(settings)
    expected = [due for due in schedule.between(NOON, looks[-1]) if schedule.fires_at("t", due) <= looks[-1]]

    assert sorted(started + missed) == expected
    assert len(set(started + missed)) == len(expected)
    assert (misfire == "all") == (not missed)


def test_jitter_is_waited_for():
    schedule = Schedule(settings := {"cron": "@hourly", "jitter": "30m"})
    due = NOON + HOUR
    fires_at = schedule.fires_at("t", due)

    assert plan(schedule, settings, "t", NOON, fires_at - 1).due is None
    assert plan(schedule, settings, "t", NOON, fires_at - 1).next_at == fires_at
    assert plan(schedule, settings, "t", NOON, fires_at).due == due

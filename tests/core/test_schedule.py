"""When a schedule is due: on the clock of its zone, also where that is set forward and back."""

from itertools import islice, pairwise

import pytest

from ropewalk.core.duration import DAY, HOUR, MINUTE
from ropewalk.core.instant import rfc3339
from ropewalk.core.schedule import Schedule, ScheduleError, moment_of, nearest_weekday


def due(after: str, count: int = 3, **settings) -> list[str]:
    schedule = Schedule(settings)
    found = islice(schedule.between(moment_of(after), moment_of("2100-01-01T00:00:00Z")), count)
    return [rfc3339(each)[:19] for each in found]


def test_fields_words_and_names_say_when():
    assert due("2026-11-18T00:00:00Z", 2, cron="30 3 * * mon-fri") == ["2026-11-18T03:30:00", "2026-11-19T03:30:00"]
    assert due("2026-11-18T00:00:00Z", 2, cron="@monthly") == ["2026-12-01T00:00:00", "2027-01-01T00:00:00"]
    assert due("2026-11-18T00:00:00Z", 2, cron="15 10 * jan *") == ["2027-01-01T10:15:00", "2027-01-02T10:15:00"]
    assert due("2026-11-18T00:00:00Z", 2, cron="*/20 * * * * *") == ["2026-11-18T00:00:20", "2026-11-18T00:00:40"]


def test_the_last_day_the_nearest_weekday_and_the_nth_weekday():
    assert due("2026-01-15T00:00:00Z", 2, cron="0 0 L * *") == ["2026-01-31T00:00:00", "2026-02-28T00:00:00"]
    assert due("2026-01-15T00:00:00Z", 2, cron="0 0 LW * *") == ["2026-01-30T00:00:00", "2026-02-27T00:00:00"]
    assert due("2026-01-15T00:00:00Z", 2, cron="0 0 * * fri#2") == ["2026-02-13T00:00:00", "2026-03-13T00:00:00"]
    assert due("2026-02-03T00:00:00Z", 3, cron="0 9 1W * *") == [
        "2026-03-02T09:00:00", "2026-04-01T09:00:00", "2026-05-01T09:00:00",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("day", "expected"),
    [((2026, 8, 1), 3), ((2026, 8, 2), 3), ((2026, 5, 31), 29), ((2026, 2, 30), 0), ((2026, 11, 18), 18)],
)
def test_the_nearest_weekday_stays_in_its_month(day, expected):
    assert nearest_weekday(*day) == expected


@pytest.mark.parametrize(
    ("zone", "forward", "back"),
    [
        ("Europe/Berlin", "2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z"),
        ("America/New_York", "2026-03-07T12:00:00Z", "2026-10-31T12:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-04-04T00:00:00Z"),
    ],
)
def test_a_daily_time_is_due_once_on_every_day_also_when_clocks_change(zone, forward, back):
    for before in (forward, back):
        schedule = Schedule({"cron": "10 2 * * *", "zone": zone})
        began = moment_of(before)

        found = list(schedule.between(began, began + 10 * DAY))

        assert len(found) == 10
        assert all(23 * HOUR <= later - earlier <= 25 * HOUR for earlier, later in pairwise(found))


def test_every_half_hour_goes_on_through_the_hour_that_comes_twice():
    assert due("2026-10-24T23:59:00Z", 5, cron="*/30 * * * *", zone="Europe/Berlin") == [
        "2026-10-25T00:00:00", "2026-10-25T00:30:00", "2026-10-25T01:00:00", "2026-10-25T01:30:00",
        "2026-10-25T02:00:00",
    ]  # fmt: skip


def test_every_so_often_is_aligned_or_counts_from_its_start():
    began = moment_of("2026-11-18T12:07:00Z")

    assert due("2026-11-18T12:07:00Z", 2, every="15m") == ["2026-11-18T12:15:00", "2026-11-18T12:30:00"]
    assert Schedule({"every": "15m", "aligned": False}, began).after(began) == began + 15 * MINUTE
    assert due("2026-11-18T12:00:00Z", 1, every="15m", aligned=False, start="2026-11-18T13:07:00Z") == [
        "2026-11-18T13:22:00"
    ]


def test_several_rules_are_due_in_order_and_once_where_they_meet():
    assert due("2026-11-18T00:00:00Z", 4, cron=["0 6 * * *", "0 */3 * * *"]) == [
        "2026-11-18T03:00:00", "2026-11-18T06:00:00", "2026-11-18T09:00:00", "2026-11-18T12:00:00",
    ]  # fmt: skip


def test_nothing_is_due_before_the_start_or_after_the_end():
    settings = {"cron": "0 0 * * *", "start": "2026-12-01T00:00:00Z", "end": "2026-12-02T00:00:00Z"}

    assert due("2026-11-18T00:00:00Z", 9, **settings) == ["2026-12-01T00:00:00", "2026-12-02T00:00:00"]


def test_jitter_is_the_same_at_every_server_and_another_for_every_due_time():
    schedules = [Schedule({"cron": "@hourly", "jitter": "10m"}) for _ in range(2)]
    first, second = islice(schedules[0].between(0, DAY), 2)

    assert schedules[0].fires_at("t", first) == schedules[1].fires_at("t", first)
    assert 0 <= schedules[0].fires_at("t", first) - first < 10 * MINUTE
    assert schedules[0].fires_at("t", first) - first != schedules[0].fires_at("t", second) - second
    assert schedules[0].fires_at("u", first) != schedules[0].fires_at("t", first)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cron": "0 0 30 2 *"}, "bad day-of-month"),
        ({"cron": "0 0 31W 2 *"}, "bad day-of-month"),
        ({"cron": "*/0 * * * *"}, "bad minute"),
        ({"cron": "60 * * * *"}, "bad minute"),
        ({"cron": "@every 0s"}, "is no word of a schedule"),
        ({"cron": "* * *"}, "wrong number of fields"),
        ({"cron": []}, "needs 1 to 50 rules"),
        ({"cron": ["@daily"] * 5_000}, "needs 1 to 50 rules"),
        ({"every": "0s"}, "must be from 1s"),
        ({"cron": "@daily", "zone": "Mars/Olympus"}, "there is no zone 'Mars/Olympus'"),
        ({"cron": "@daily", "zone": "../etc/passwd"}, "there is no zone"),
        ({"cron": "@daily", "start": "soon"}, "is no moment"),
        ({"cron": "@daily", "start": "2026-11-18T00:00:00"}, "names no zone"),
        ({"cron": "@daily", "start": "2026-11-18T00:00:00Z", "end": "2026-11-17T00:00:00Z"}, "end is before start"),
    ],
)
def test_what_is_no_schedule_is_refused_with_the_reason(settings, said):
    with pytest.raises(ValueError, match=said) as refused:
        Schedule(settings)

    assert isinstance(refused.value, ScheduleError) or "every" in settings


def test_a_schedule_is_told_in_words():
    assert Schedule({"cron": "0 3 * * *", "zone": "Europe/Berlin"}).in_words() == "at 03:00 every day, Europe/Berlin"
    assert Schedule({"every": "15m", "jitter": "30s"}).in_words() == "every 15m, up to 30s later"
    assert Schedule({"cron": "0 9 15W * *"}).in_words() == "cron 0 9 15W * *"

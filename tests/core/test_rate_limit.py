"""Rate limits: no stretch of time has more slots than it may, and no slot is later than it must be."""

from hypothesis import given
from hypothesis import strategies as st

from ropewalk.core.duration import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from ropewalk.core.rate_limit import (
    LATEST,
    LONGEST_PER,
    MARGIN,
    MOST_CALLS,
    RUNS,
    SHORTEST_PER,
    RateLimit,
    Wanted,
    is_too_fast,
    next_slot,
    next_turn,
    place,
    with_slot,
)

NOON = 1_700_000_000 * SECOND
LEAD = 250 * MILLISECOND
TEN_A_SECOND = RateLimit(10, SECOND)
FIVE_AN_HOUR = RateLimit(5, HOUR)

rates = st.builds(RateLimit, st.integers(1, 300) | st.just(MOST_CALLS), st.integers(SHORTEST_PER, LONGEST_PER)).filter(
    lambda rate: not is_too_fast(rate.limit, rate.per)
)


def taken_by(rate, count, now=NOON, taken=()):
    """The slots of so many calls that come at once, and what was handed out afterwards."""
    slots = []
    for _ in range(count):
        at = next_slot(taken, rate, now)
        taken = with_slot(taken, rate, at, now)
        slots.append(at)
    return slots, taken


def test_ten_a_second_is_one_every_tenth_of_a_second_and_a_little():
    slots, taken = taken_by(TEN_A_SECOND, 600)

    assert slots == [NOON + n * 106 * MILLISECOND for n in range(600)]
    assert len(taken) == 1


@given(
    rates.filter(lambda rate: rate.per >= SECOND),
    st.lists(st.tuples(st.integers(0, 2_000) | st.integers(0, DAY), st.integers(0, MARGIN)), min_size=1, max_size=200),
)
def test_calls_that_are_late_for_some_slots_and_in_time_for_others_keep_the_limit(rate, calls):
    now, taken, begun = NOON, (), []
    for pause, late in calls:
        now += pause
        at = next_slot(taken, rate, now)
        taken = with_slot(taken, rate, at, now)
        begun.append(at + late)

    begun.sort()
    assert all(later - earlier >= rate.per for earlier, later in zip(begun, begun[rate.limit :], strict=False))


def test_a_limit_of_a_short_time_loses_a_sixteenth_of_its_calls_at_most():
    slots, _ = taken_by(RateLimit(10, 100 * MILLISECOND), 101)

    assert slots[-1] - NOON == 1_062_500


def test_a_limit_of_few_calls_in_a_long_time_lets_all_of_them_go_soon():
    slots, _ = taken_by(FIVE_AN_HOUR, 12)

    assert slots[4] < NOON + SECOND
    assert HOUR <= slots[5] - slots[0] < HOUR + HOUR // 100
    assert slots[9] < NOON + HOUR + MINUTE
    assert slots[10] >= NOON + 2 * HOUR


def test_a_limit_that_was_not_used_for_long_gives_a_slot_at_once():
    _, taken = taken_by(FIVE_AN_HOUR, 5)

    assert next_slot(taken, FIVE_AN_HOUR, NOON + 3 * HOUR) == NOON + 3 * HOUR


@given(rates, st.lists(st.integers(0, 2_000) | st.integers(0, DAY), min_size=1, max_size=200))
def test_no_stretch_of_time_has_more_slots_than_the_limit(rate, pauses):
    now, taken, slots = NOON, (), []
    for pause in pauses:
        now += pause
        at = next_slot(taken, rate, now)
        taken = with_slot(taken, rate, at, now)
        assert at >= now
        slots.append(at)

    assert slots == sorted(slots)
    assert all(later - earlier >= rate.per for earlier, later in zip(slots, slots[rate.limit :], strict=False))
    assert len(taken) <= RUNS + 2


@given(rates, st.integers(1, 400))
def test_calls_that_come_at_once_wait_hardly_longer_than_the_limit_makes_them(rate, count):
    slots, _ = taken_by(rate, count)

    rounds = (count - 1) // rate.limit
    shortest = max(rounds * rate.span, (count - 1) * rate.spacing)
    assert slots[-1] - NOON <= shortest + rate.limit * rate.spacing + (rounds + 1) * (rate.per // RUNS + 1)


def test_a_place_in_the_line_counts_the_slots_before_it():
    slots, taken = taken_by(TEN_A_SECOND, 50)
    few, taken_few = taken_by(FIVE_AN_HOUR, 4)

    assert [place(taken, TEN_A_SECOND, NOON, slots[n]) for n in (1, 49)] == [2, 50]
    assert place(taken_few, FIVE_AN_HOUR, NOON - 1, few[3]) in (3, 4)


def test_a_call_holds_its_slot_until_it_is_due():
    first = next_turn([Wanted(TEN_A_SECOND, ((NOON + 2 * SECOND, 1),))], NOON, LEAD)

    again = next_turn([Wanted(TEN_A_SECOND, first.taken[0], first.at)], first.at - LEAD, LEAD)

    assert (first.at, first.is_complete) == (NOON + 2 * SECOND + 106 * MILLISECOND, True)
    assert (again.at, again.taken) == (first.at, first.taken)


def test_a_call_that_has_missed_its_slot_needs_another():
    late = NOON + SECOND

    turn = next_turn([Wanted(TEN_A_SECOND, ((late, 1),), NOON)], late, LEAD)

    assert (turn.at, turn.taken) == (late + 106 * MILLISECOND, (((late + 106 * MILLISECOND, 1),),))


def test_a_call_with_two_limits_takes_no_slot_that_would_keep_others_waiting():
    slow, fast = Wanted(FIVE_AN_HOUR, ((NOON, 5),)), Wanted(TEN_A_SECOND)

    turn = next_turn([fast, slow], NOON, LEAD)
    again = next_turn([fast, Wanted(FIVE_AN_HOUR, turn.taken[1], turn.at)], turn.at - LEAD, LEAD)

    assert (turn.at, turn.is_held, turn.decisive) == (NOON + FIVE_AN_HOUR.span, (False, True), 1)
    assert turn.taken[0] == ()
    assert (again.at, again.is_complete, again.taken[0]) == (turn.at, True, ((turn.at, 1),))


@given(st.lists(rates, min_size=2, max_size=3), st.lists(st.integers(0, SECOND), min_size=1, max_size=60))
def test_calls_with_several_limits_keep_each_of_them(limits, pauses):
    now, taken = NOON, [()] * len(limits)
    begun = []
    for pause in pauses:
        now += pause
        turn = next_turn([Wanted(*each) for each in zip(limits, taken, strict=True)], now, LEAD)
        while not turn.is_complete:
            now, taken = max(now, turn.at - LEAD), list(turn.taken)
            held = [turn.at if is_held else None for is_held in turn.is_held]
            turn = next_turn([Wanted(*each) for each in zip(limits, taken, held, strict=True)], now, LEAD)
        taken = list(turn.taken)
        begun.append(turn.at)

    for rate in limits:
        # A call may begin so much later than the slot it holds.
        assert all(
            later - earlier >= rate.per - LATEST for earlier, later in zip(begun, begun[rate.limit :], strict=False)
        )

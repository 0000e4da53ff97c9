"""Every invariant: an honest history keeps it, and a forged one is told by exactly it."""

import pytest
from msgspec.structs import replace

from ropewalk.checker import INVARIANTS, History, Sharing, check, check_growth, check_together
from ropewalk.checker.table import GRAPH, GROWTH, LOG, REPLAY, TOGETHER
from ropewalk.checker.trace import TERMINAL
from ropewalk.core.commands import Command, NeedSlot
from ropewalk.core.duration import SECOND
from ropewalk.core.events import Event, ExecutionAccepted, ExecutionStarted, NodesCarriedOver, NodeSucceeded, Parent
from ropewalk.core.execution import Execution
from ropewalk.core.plan import Plan
from ropewalk.core.signals import Start
from tests.checker import forgeries
from tests.checker.closing_forgeries import CLOSING_FORGERIES, CLOSING_HONEST
from tests.checker.forgeries import CHAIN, DIAMOND, RERUN, RETRIED, Forgery
from tests.checker.kind_forgeries import KIND_FORGERIES, KINDS_HONEST
from tests.checker.limit_forgeries import LIMIT_FORGERIES, LIMITS_HONEST
from tests.checker.map_forgeries import MAP_FORGERIES, MAPS_HONEST
from tests.checker.round_forgeries import ROUND_FORGERIES, ROUNDS_HONEST
from tests.checker.stories import change, drop, story
from tests.core.executions import NOON, ok, workflow

FORGERIES = [*forgeries.FORGERIES, *LIMIT_FORGERIES, *MAP_FORGERIES, *KIND_FORGERIES, *CLOSING_FORGERIES]
FORGERIES += ROUND_FORGERIES
HONEST = {**forgeries.HONEST, **LIMITS_HONEST, **MAPS_HONEST, **KINDS_HONEST, **CLOSING_HONEST, **ROUNDS_HONEST}


def told(history: History) -> list[str]:
    """The invariants a history breaks, each once."""
    return list(dict.fromkeys(violation.invariant for violation in check(history)))


@pytest.mark.parametrize("forgery", FORGERIES, ids=str)
def test_the_history_a_forgery_was_made_from_keeps_every_invariant(forgery: Forgery):
    assert check(forgery.honest) == []


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_history_keeps_every_invariant(name: str):
    history = HONEST[name]

    assert isinstance(history.events[-1], TERMINAL)
    assert check(history) == []


@pytest.mark.parametrize("forgery", FORGERIES, ids=str)
def test_a_forged_history_breaks_exactly_its_invariant(forgery: Forgery):
    assert told(forgery.forged) == [forgery.invariant]


@pytest.mark.parametrize("honest", [*HONEST.values(), *(forgery.honest for forgery in FORGERIES)])
def test_every_beginning_of_an_honest_history_is_honest(honest: History):
    history = replace(honest, is_quiescent=False, rows=None, effects=())

    beginnings = [replace(history, events=history.events[:size]) for size in range(1, len(history.events))]

    assert [told(beginning) for beginning in beginnings] == [[]] * len(beginnings)


def test_every_invariant_has_a_forgery():
    forged = {forgery.invariant for forgery in FORGERIES} | {"I-37", "I-38"}

    assert forged == {*LOG, *GRAPH, *REPLAY}
    assert set(INVARIANTS) == {*forged, *GROWTH, *TOGETHER}


def test_every_check_says_which_invariant_it_is_about():
    described = {name: (each.check.__doc__ or "") for name, each in INVARIANTS.items()}

    assert [name for name, text in described.items() if not text.startswith(name)] == []


def test_a_violation_names_the_execution_and_both_events():
    (violation,) = check(change(RETRIED, NodeSucceeded, at=NOON))

    assert str(violation).startswith("I-21 e1 events 8 and 7: ")


# Two readings of one log


def test_a_log_that_grew_is_the_same_log():
    assert check_growth(replace(CHAIN, events=CHAIN.events[:3]), CHAIN) == []


@pytest.mark.parametrize(
    "later",
    [
        change(CHAIN, NodeSucceeded, output="other"),
        drop(CHAIN, ExecutionStarted),
        replace(CHAIN, events=CHAIN.events[:-1]),
        replace(CHAIN, seqs=(1, 2, 4, 5, 6, 7, 8)),
    ],
)
def test_a_log_that_changed_is_told(later: History):
    assert {violation.invariant for violation in check_growth(CHAIN, later)} == {"I-02"}


# Several executions


def at_work(execution: str, since: int, **accepted: object) -> History:
    """An execution that holds a slot for a minute."""
    plan = workflow("a")
    return story(plan, since, Start(), 60 * SECOND, ok("a"), execution=execution, **accepted)


def test_executions_one_after_the_other_share_one_slot():
    histories = [at_work("e1", 0), at_work("e2", 60 * SECOND)]

    assert check_together(histories, {"default": 1}) == []


def test_a_slot_too_many_is_told():
    histories = [at_work("e1", 0), at_work("e2", 59 * SECOND)]

    assert [str(each)[:12] for each in check_together(histories, {"default": 1})] == ["I-27 e2 even"]


def test_a_workspace_without_a_limit_has_as_many_slots_as_it_likes():
    histories = [at_work(f"e{number}", 0) for number in range(5)]

    assert check_together(histories, {"other": 1}) == []


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ([(NOON, 2)], ["e3"]),
        ([(NOON, 2), (NOON + 15 * SECOND, 3)], []),
        ([(NOON, 2), (NOON + 20 * SECOND, 3)], []),
        ([(NOON, 3), (NOON + 20 * SECOND, 2)], []),
        ([(NOON, 3), (NOON + 15 * SECOND, 1)], ["e3"]),
        ([(NOON + 15 * SECOND, 1)], ["e3"]),
        ([(NOON, 1), (NOON + 5 * SECOND, None)], []),
    ],
)
def test_an_execution_that_takes_a_slot_is_held_to_the_limit_of_that_moment(
    limit: list[tuple[int, int | None]], told: list[str]
):
    histories = [at_work("e1", 0), at_work("e2", 10 * SECOND), at_work("e3", 20 * SECOND)]

    assert [each.execution for each in check_together(histories, {"default": limit})] == told


def test_the_sweep_knows_how_many_slots_were_held_at_most():
    sharing = Sharing({"default": 9, "other": 9})
    for number in range(5):
        sharing.add(at_work(f"e{number}", number * 20 * SECOND))
    sharing.add(at_work("o", 0, workspace="other"))

    assert sharing.most_slots() == {"default": 3, "other": 1}


def test_a_key_held_by_two_is_told():
    histories = [at_work("e1", 0, concurrency_key="k"), at_work("e2", SECOND, concurrency_key="k")]

    assert [each.invariant for each in check_together(histories, {})] == ["I-28"]


@pytest.mark.parametrize(
    "other",
    [
        {"concurrency_key": "other"},
        {"concurrency_key": "k", "workspace": "other"},
        {"concurrency_key": "k", "parent": Parent("e0", "a", 1, ancestors=("e1",))},
    ],
)
def test_a_key_is_shared_with_descendants_and_with_no_other_execution(other: dict[str, object]):
    histories = [at_work("e1", 0, concurrency_key="k"), at_work("e2", SECOND, **other)]

    assert check_together(histories, {}) == []


def test_a_parent_may_take_the_key_after_the_child_that_it_reopened():
    child = at_work("e2", 0, concurrency_key="k", parent=Parent("e1", "a", 1))

    assert check_together([child, at_work("e1", SECOND, concurrency_key="k")], {}) == []


def test_siblings_that_use_their_parents_key_together_are_told():
    above = Parent("e0", "a", 1, ancestors=("e1",))
    siblings = [at_work(name, SECOND, concurrency_key="k", parent=above) for name in ("e2", "e3")]
    histories = [at_work("e1", 0, concurrency_key="k"), *siblings]

    assert [each.invariant for each in check_together(histories, {})] == ["I-28"]
    assert check_together([change(each, ExecutionAccepted, rules=0) for each in histories], {}) == []


def rerun_of(source: History) -> list[History]:
    return [source, change(RERUN, type(RERUN.events[0]), execution="e2")]


def test_results_taken_over_are_those_of_their_source():
    source = change(CHAIN, type(CHAIN.events[0]), execution="e0")

    assert check_together(rerun_of(source), {}) == []


@pytest.mark.parametrize(
    "source", [change(CHAIN, NodeSucceeded, output="other"), change(CHAIN, type(CHAIN.events[0]), workspace="other")]
)
def test_other_results_than_those_of_the_source_are_told(source: History):
    source = change(source, type(source.events[0]), execution="e0")

    assert {each.invariant for each in check_together(rerun_of(source), {})} == {"I-31"}


def test_results_are_not_taken_over_from_the_execution_itself():
    assert told(change(RERUN, NodesCarriedOver, source="e1")) == ["I-31"]


# Folding


class Forgetful(Execution):
    """Folds wrongly: of several events at once it keeps no outputs."""

    def apply(self, events: tuple[Event, ...]) -> None:
        super().apply(events)
        if len(events) > 1:
            self.outputs.clear()


class Moody(Execution):
    """Asks for something else each time it is made."""

    made = 0

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        Moody.made += 1
        self.mood = Moody.made

    def outstanding(self) -> list[Command]:
        return [NeedSlot()] * self.mood


def test_a_fold_that_depends_on_how_the_log_is_cut_is_told():
    assert [each.invariant for each in check(DIAMOND, fold=Forgetful)] == ["I-37"]


def test_commands_that_do_not_follow_from_the_log_are_told():
    assert {each.invariant for each in check(CHAIN, fold=Moody)} == {"I-38"}


def test_a_log_that_cannot_be_folded_is_told_not_raised():
    class Brittle(Execution):
        def apply(self, events: tuple[Event, ...]) -> None:
            raise KeyError("a")

    assert [each.invariant for each in check(CHAIN, fold=Brittle)] == ["I-36"]


@pytest.mark.parametrize("recorded", ["3.0 rows", "3 rows"])
def test_a_history_from_when_whole_numbers_were_written_with_a_point_is_honest(recorded: str):
    plan = workflow([{"id": "a", "with": {"message": "{{ input / 1.0 }} rows"}}])
    done = replace(ok("a"), inputs={"message": recorded})

    assert told(story(plan, Start(), done, input=3)) == []

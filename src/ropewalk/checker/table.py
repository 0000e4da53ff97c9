"""Every invariant a log can show, and the checks that hold a history to them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ropewalk.checker import (
    attempt_rules,
    capacity,
    closing_rules,
    control_rules,
    dead_letters,
    effect_rules,
    final_failures,
    graph_rules,
    inputs,
    kinds,
    log_rules,
    replay,
    rounds,
    seals,
)
from ropewalk.checker.graph import Graph
from ropewalk.checker.history import History, Violation
from ropewalk.checker.trace import Trace
from ropewalk.core.events import ExecutionAccepted
from ropewalk.core.execution import Execution

Rule = Callable[..., Iterable[Violation]]


class Invariant(NamedTuple):
    """What must hold, and the function that finds where it does not."""

    sentence: str
    check: Rule


LOG: Final[dict[str, Invariant]] = {
    "I-01": Invariant("Events are numbered 1 to n, without gap or repeat.", log_rules.is_numbered_without_gap),
    "I-02": Invariant("Entries are what was committed.", seals.entries_are_as_committed),
    "I-03": Invariant("An execution is accepted first and once, with version and hash.", log_rules.is_accepted_once),
    "I-04": Invariant("Ends and reopenings alternate.", log_rules.ends_alternate_with_reopenings),
    "I-05": Invariant("Only a reopening follows an end.", log_rules.nothing_follows_the_end),
    "I-13": Invariant("Attempts are 1 to k, one after the other.", attempt_rules.attempts_follow_each_other),
    "I-20": Invariant("An attempt is lost at most once.", attempt_rules.an_attempt_is_lost_once),
    "I-21": Invariant("Time never goes back.", log_rules.time_never_goes_back),
    "I-22": Invariant("Attempts stay within their budget.", attempt_rules.budgets_are_kept),
    "I-23": Invariant("A retry waits for its time.", attempt_rules.retries_wait_their_time),
    "I-27": Invariant("Nodes start only while a slot is held.", capacity.starts_need_a_slot),
    "I-28": Invariant("maxParallel and map concurrency are kept.", capacity.limits_inside_are_kept),
    "I-31": Invariant("Results are taken over once, first, and whole.", graph_rules.results_are_taken_over_whole),
    "I-32": Invariant("Effects fit the attempts that made them.", effect_rules.effects_fit_the_attempts),
    "I-33": Invariant("Effects are repeated for a reason.", effect_rules.effects_are_repeated_for_a_reason),
    "I-40": Invariant("An execution told to end starts nothing, and ends.", control_rules.endings_end),
    "I-41": Invariant("Nothing starts in a pause.", control_rules.nothing_starts_in_a_pause),
    "I-42": Invariant("An execution times out after its deadline.", control_rules.deadlines_pass_in_time),
    "I-43": Invariant("An execution is closed in order, as decided.", closing_rules.closing_is_in_order),
}
"""Rules on the log alone: `check(trace)`."""

GRAPH: Final[dict[str, Invariant]] = {
    "I-06": Invariant("Every step is in the published tables.", log_rules.every_step_is_published),
    "I-07": Invariant("A node starts when its edges are decided and one is live.", graph_rules.starts_are_due),
    "I-08": Invariant("Nothing starts behind an unhandled failure.", graph_rules.nothing_starts_behind_a_failure),
    "I-09": Invariant("At FAILED, all that could be done is done.", graph_rules.everything_else_is_done),
    "I-10": Invariant("At the end every node has one state.", graph_rules.every_node_has_one_state),
    "I-11": Invariant("Skipped is what no edge leads to.", graph_rules.skips_follow_the_decisions),
    "I-12": Invariant("Inputs follow from what was recorded.", inputs.inputs_are_what_the_log_says),
    "I-17": Invariant("Results are recorded once.", attempt_rules.results_are_recorded_once),
    "I-18": Invariant("What ended stays as it is.", attempt_rules.what_ended_stays_as_it_is),
    "I-24": Invariant("Dead letters are for what gave up unhandled.", dead_letters.dead_letters_are_for_what_gave_up),
    "I-26": Invariant("What failed for good is not tried again.", final_failures.permanent_failures_are_final),
    "I-43": Invariant("A failure goes the way its kind says.", kinds.failures_go_their_way),
    "I-44": Invariant("A node is repeated as its condition says.", rounds.rounds_follow_their_condition),
}
"""Rules that look at the graph too: `check(trace, graph)`."""

REPLAY: Final[dict[str, Invariant]] = {
    "I-36": Invariant("The log makes the rows.", replay.the_log_makes_the_rows),
    "I-37": Invariant("Folding in parts is folding in one go.", replay.folds_are_alike),
    "I-38": Invariant("The same log asks for the same commands.", replay.commands_follow_from_the_log),
}
"""Rules on the log folded again: `check(trace, replay)`."""

GROWTH: Final[dict[str, Invariant]] = {"I-02": Invariant("A log only grows.", log_rules.only_grows)}
"""Rules on two readings of one log: `check(earlier, later)`."""

TOGETHER: Final[dict[str, Invariant]] = {
    "I-27": Invariant("Workspaces keep to their slots.", capacity.limits_of_workspaces_are_kept),
    "I-28": Invariant("A concurrency key has one holder.", capacity.keys_are_held_by_one),
    "I-31": Invariant("Results stay in their workspace.", graph_rules.results_stay_in_the_workspace),
}
"""Rules on several executions: `check(histories, …)`."""

INVARIANTS: Final[dict[str, Invariant]] = dict(sorted({**TOGETHER, **LOG, **GRAPH, **REPLAY, **GROWTH}.items()))


def check(history: History, fold: replay.Fold = Execution) -> list[Violation]:
    """Everything one history shows to be wrong, in the order of the invariants.

    A log that breaks other rules need not be foldable, so the rules on folding are for those that do not.
    """
    trace = Trace(history)
    graph = Graph(trace)
    found = _all(LOG, trace) + _all(GRAPH, trace, graph)
    if not found:
        found = _all(REPLAY, trace, replay.Replay(trace, fold))
    return sorted(found, key=lambda violation: violation.invariant)


def check_together(histories: Sequence[History], limits: capacity.Limits) -> list[Violation]:
    """What several histories show together."""
    known = {first.execution: each for each in histories if isinstance(first := each.events[0], ExecutionAccepted)}
    sharing = capacity.Sharing(limits)
    for history in known.values():
        sharing.add(history)
    return [*sharing.violations(), *graph_rules.results_stay_in_the_workspace(known)]


def check_growth(earlier: History, later: History) -> list[Violation]:
    """What two readings of the same log show."""
    return _all(GROWTH, earlier, later)


def _all(table: Mapping[str, Invariant], *about: Any) -> list[Violation]:
    return [violation for invariant in table.values() for violation in invariant.check(*about)]

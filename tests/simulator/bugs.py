"""Seeded bugs: deliberate mistakes in the core and in the shell around it, each of which the simulator must catch.

A bug is one replacement in the text of one function. It is put into the function's own code, so modules that imported
the function get the mistake too, and taken out again afterwards. A replacement whose text is no longer there is an
error: the list keeps up with the code or fails.
"""

from __future__ import annotations
import __future__

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from msgspec import Struct

from ropewalk.core import graph, retry
from ropewalk.core.execution import (
    closing,
    deciding,
    evolving,
    evolving_closing,
    evolving_whole,
    items,
    kinds,
    machine,
    mending,
    outcomes,
    progress,
    resuming,
    rounds,
    settling,
    trail,
    verbs,
    work,
)
from tests.simulator import store, worker


class Bug(Struct, frozen=True):
    """What is wrong, in which function, and the text that makes it so."""

    name: str
    function: Callable[..., Any] | property
    right: str
    wrong: str

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The bug is there while the context lasts."""
        function = _plain(self.function)
        sound = function.__code__
        function.__code__ = self._mutated(function)
        try:
            yield
        finally:
            function.__code__ = sound

    def _mutated(self, function: FunctionType) -> CodeType:
        source = textwrap.dedent(inspect.getsource(function))
        if source.count(self.right) != 1:
            raise LookupError(f"{self.name}: {self.right!r} must be there once in {function.__qualname__}")
        scope: dict[str, Any] = {}
        # Annotations stay unevaluated where the module wants them so.
        flags = function.__code__.co_flags & __future__.annotations.compiler_flag
        code = compile(source.replace(self.right, self.wrong), f"<{self.name}>", "exec", flags, dont_inherit=True)
        exec(code, vars(sys.modules[function.__module__]), scope)
        return _plain(scope[function.__name__]).__code__


def _plain(function: Callable[..., Any] | property) -> FunctionType:
    plain = function.fget if isinstance(function, property) else function
    assert isinstance(plain, FunctionType)
    return plain


SHELL = (
    Bug("fence check removed", store.Store.is_current, "row.fence == commit.fence and ", ""),
    Bug("fence and sequence check removed", store.Store.is_current,
        "row.fence == commit.fence and len(row.log) == commit.seq", "True"),
    Bug("gap in the sequence after a takeover", store.Store._append,
        "range(commit.seq + 1, commit.seq + 1 +", "range(commit.seq + row.fence, commit.seq + row.fence +"),
    Bug("takeover forgets what was lost", resuming.under_way, "work.phase is RUNNING", "False"),
    Bug("lost answer taken for a failure", worker.Worker._is_written, "len(commit.row.log) > commit.seq", "False"),
    Bug("parked execution forgets its wake-up", store.Store.disown, "if wake_at is not None:", "if False:"),
    Bug("one slot too many", store.Store.dispatch, ">= self.slots", "> self.slots"),
    Bug("siblings share a key", store.Store._take_key, "holder != above for holder in holders",
        "holder != above for holder in holders[:1]"),
    Bug("concurrency key ignored", store.Store._take_key, "row.key is None or", "True or"),
)  # fmt: skip

GRAPH = (
    Bug("skip not propagated", graph.Frontier._spread, "for node in skipped:", "for node in ():"),
    Bug("one live edge is enough", graph.Frontier.succeeded, "if not left:", "if True:"),
    Bug("error edge taken on success", graph.Frontier.succeeded,
        "(None, *(port", "(None, ERROR_PORT, *(port"),
    Bug("ports ignored", graph.Frontier._decide, "if port not in taken:", "if False:"),
    Bug("unhandled failure lets successors start", evolving.node_failed, "if event.handled:", "if True:"),
    Bug("unhandled failure treated as handled", outcomes._way_on, "return ", "return Handling(True) or "),
    Bug("handled failure treated as unhandled", outcomes._way_on, "return ", "return UNHANDLED or "),
    Bug("success despite an unhandled failure", settling.finish, "if x.unhandled:", "if False:"),
    Bug("onFailure: cancel lets nodes run on", settling._stop, "now + GRACE if x.plan.cancel_on_failure else", ""),
    Bug("onFailure: stop tells nodes to stop", settling._stop, "if x.plan.cancel_on_failure", "if True"),
    Bug("onFailure: stop ignored", settling._must_stop, "bool(x.new_failures) and x.plan.stop_on_failure", "False"),
)  # fmt: skip

KINDS = (
    Bug("every way of a failure is taken", graph.Frontier.failed, "self._decide(node, (way,))",
        "self._decide(node, tuple(filter(is_error_port, self._plan.port_names[node])))"),
    Bug("the last way that fits is taken", kinds.handling_of, "for way in ways:", "for way in reversed(ways):"),
    Bug("the first way is taken whatever it asks", kinds.handling_of, "if way.when is None or", "if True or"),
    Bug("an expression that fails is taken for a yes", kinds._Asking._is_at_fault, "return False", "return True"),
    Bug("a failure that no way fits is handled", kinds.handling_of, "Handling(False, None,", "Handling(True, None,"),
    Bug("the way is evaluated and not recorded", outcomes.give_up, "report), way.edge,", "report), None,"),
    Bug("the child is not told to expressions", outcomes._way_on, "None if child is None else child.state", "None"),
    Bug("retry.on ignored", kinds.is_worth_retrying, "on is not None and not is_named(on, error)", "False"),
    Bug("retry.when ignored", kinds.is_worth_retrying, 'asking.is_true("retry.when", when)', "True"),
    Bug("retry.on does not know statuses", retry.is_named, " or _is_status(word, error.status)", ""),
    Bug("a child is tried again whatever retry says", deciding._is_tried_again, "if has_kinds else", "if False else"),
    Bug("dead letters of a map that no way takes forgotten", items._fail, "if not way.is_handled and",
        "if not way.is_handled and not x.plan.has_error_edge[index] and"),
)  # fmt: skip

ROUNDS = (
    Bug("one round only", outcomes._after_round, "if not follows.is_again:", "if True:"),
    Bug("a round too many", rounds.verdict, "work.round + 1 < repeat.most", "work.round < repeat.most"),
    Bug("a round too few", rounds.verdict, "work.round + 1 < repeat.most", "work.round + 2 < repeat.most"),
    Bug("while taken for until", rounds.verdict, "is repeat.is_until", "is True"),
    Bug("exhausted taken for an end", rounds.verdict, "if EXHAUSTED_PORT in", "if True or EXHAUSTED_PORT in"),
    Bug("rounds without their delay", outcomes._after_round, "now + x.plan.repeats[work.node].delay", "now"),
    Bug("a round forgets what the last gave", work.Work.end_round, "self.round + 1, output", "self.round + 1, None"),
    Bug("a round is given the inputs of the last", work.Work.end_round, "self.wait = self.inputs =", "self.wait ="),
    Bug("rounds share one budget", work.Work.end_round, "self.used_before, self.lost", "_, self.lost"),
    Bug("rounds begin anew after a reopening", work.Work.renew, "self.used_before = 0",
        "self.used_before = self.round = 0; self.last = None"),
    Bug("a repeated node loses its place", work.Work.end_round, "self.used_before, self.lost",
        "self.used = 0; self.used_before, self.lost"),
    Bug("rounds not counted", evolving.round_ended, "x.rounds[index] = work.round", "pass"),
    Bug("a signal answers two rounds", evolving.round_ended, "_use_signal(x, work)", "pass"),
    Bug("given up between rounds", verbs.give_up_by_hand, "is_between_rounds or ", ""),
)  # fmt: skip

REPORTS = (
    Bug("report of an earlier attempt accepted", deciding._under_way, " or work.attempt != report.attempt", ""),
    Bug("repeated report accepted", deciding._under_way, "work.phase is not RUNNING or ", ""),
    Bug("success of an earlier attempt accepted", deciding.succeeded, " and work.attempt == report.attempt", ""),
    Bug("repeated success accepted", deciding.succeeded, "work.phase is RUNNING and ", ""),
    Bug("match of an earlier wait accepted", deciding.matched, " and work.attempt == signal.attempt", ""),
    Bug("one attempt too many", deciding.failed,
        "work.tries < policy.max_attempts", "work.tries <= policy.max_attempts"),
    Bug("one attempt too few", deciding.failed,
        "work.tries < policy.max_attempts", "work.tries + 1 < policy.max_attempts"),
    Bug("lost attempts not counted", evolving.run_failed,
        "work.lost += event.lost", "work.lost += event.lost; work.used -= event.lost"),
    Bug("handed-back attempt used up", evolving.run_returned, "work.again = True", "work.again = False"),
    Bug("held attempt used up", evolving.run_waiting, "work.again = True", "work.again = False"),
    Bug("permanent errors retried", deciding.failed, "if not is_worth_it:", "if False:"),
    Bug("failed child retried unasked", deciding._is_tried_again, " and x.plan.has_retry(work.node)", ""),
    Bug("failed child never retried", deciding._is_tried_again, "ended.is_reopenable and", "False and"),
    Bug("one child too many", deciding._is_tried_again, "work.tries >= x.plan", "work.tries > x.plan"),
    Bug("failed child retried at once", deciding.child_ended, "failure, delay, now, child", "failure, 0, now, child"),
    Bug("dead letter missing", outcomes.give_up, "letter = None if way.is_handled else why", "letter = None"),
    Bug("dead letter for a handled failure", outcomes.give_up,
        "letter = None if way.is_handled else why", "letter = why"),
    Bug("signal used twice", evolving._use_signal, "kept.popleft()", "pass"),
    Bug("latest signal first", deciding._answer, "x.signals[name][0]", "x.signals[name][-1]"),
    Bug("fact kept in memory only", outcomes.retry_later, "node = x", "work.lost += 1; node = x"),
)  # fmt: skip

MAPS = (
    Bug("map concurrency exceeded", work.Map.feed, "self.in_flight < self.width", "self.in_flight <= self.width"),
    Bug("one failure too many tolerated", items.give_up_item,
        "map_.failures + 1 > map_.limit", "map_.failures > map_.limit"),
    Bug("tolerated failures fail the map", work.Map.has_failed, "len(self.errors) > self.limit", "self.errors"),
    Bug("outputs of items out of order", work.Map.succeed, "self.outputs[item] =", "self.outputs[-1 - item] ="),
    Bug("dead letter of an item doubled", items._is_without_letter, "not work.gave_up and", ""),
    Bug("dead letters of a failed map forgotten", items._fail, "not way.is_handled and", "False and"),
    Bug("failed map starts more items", evolving.items_given_up, "map_.give_up()", "pass"),
    Bug("requeued item forgets the cancelled ones", work.Map.requeue, "self.reopen()",
        "self.given_up = self.stopped = False"),
    Bug("map that continues stops", work.Map.give_up, "self.stopped = not self.goes_on", "self.stopped = True"),
    Bug("map that continues drops what is in line", evolving.items_given_up, "if not map_.stopped:", "if False:"),
    Bug("tolerated failure without its dead letter", items._is_letter, "or bool(x.plan.keeps_letters[index])", ""),
    Bug("tolerated failures beside an error edge forgotten", items._succeed, "x.plan.keeps_letters[index] and",
        "False and"),
)  # fmt: skip

MENDING = (
    Bug("mended item that fails again forgotten", items._is_letter, "return True", "return False"),
    Bug("ended before all is mended", mending.go_on, "map_.is_mending = True\n        x.open_nodes += 1", "pass"),
    Bug("never ended after mending", mending._settle, "x.open_nodes -= 1", "pass"),
    Bug("mending forgotten by a reopening", evolving_whole._reopened, "x.maps[index].is_mending", "False"),
    Bug("outputs change in who has them", work.Map._renew_outputs, "self.outputs.copy()", "self.outputs"),
    Bug("failures change under who has started", work.Map.errors_at, "self._is_as_it_was(number)", "True"),
    Bug("mended results not seen by who starts later", progress.Progress.start, "work.as_of = self.mends", "pass"),
)  # fmt: skip

TIME = (
    Bug("timer dropped", progress.Progress.set_timer, "heappush(self.timers, (due, self._timer_order, work))", "pass"),
    Bug("wake-up not told", machine.Execution.handle_all, "self.wake_at != self._wake_told", "self.wake_at is None"),
    Bug("retry before its time", settling.fire_timers,
        "due <= now:\n        work", "due <= now + 9_000_000:\n        work"),
    Bug("deadline never set", settling.begin, "None if x.plan.timeout is None else now + x.plan.timeout", "None"),
    Bug("deadline ignored", progress.Progress.wake_at, "return self.deadline", "return timer"),
    Bug("deadline too early", settling.fire_timers, "x.deadline <= now:", "x.deadline <= now + 9_000_000:"),
    Bug("time limit used up by a pause", verbs.resume, "now + x.remaining", "now"),
    Bug("wait begun while ending", evolving.run_waiting, "x.ending is not None", "False"),
    Bug("grace without end", settling.end_when_quiet, "x.grace_until <= now", "x.grace_until < 0"),
    Bug("grace ignored", settling.end_when_quiet, "not x.running and not x.waiting", "True"),
    Bug("time goes back", machine.Execution.handle_all, "if now < self._latest:", "if False:"),
)  # fmt: skip

CONTROL = (
    Bug("pause starts nodes", settling.settle, "x.state is RUNNING:", "x.state in (RUNNING, ExecutionState.PAUSED):"),
    Bug("nodes start after a cancel", settling.settle, "x.ending is None and x.state", "x.state"),
    Bug("stopped by a failure of an earlier opening", evolving_whole._reopened, "x.new_failures.clear()", "pass"),
    Bug("overrides lost before they were tried", work.Work.revive, "None if self.tries else self.overrides", "None"),
    Bug("child of a paused parent goes on", evolving.run_waiting, "x.state is ExecutionState.PAUSED", "False"),
    Bug("retries go on while ending", outcomes.retry_later, "if x.ending is None else None", "if True else None"),
    Bug("SUCCESS reopened", verbs.retry, "not x.state.is_reopenable", "not x.state.is_ended"),
    Bug("CANCELLED reopened by a requeue", verbs._given_up,
        "x.is_ended and not x.state.is_reopenable and not may_mend(x, work)", "False"),
    Bug("dead letter requeued twice", verbs._given_up, "work.phase is not Phase.ENDED or not work.gave_up", "False"),
    Bug("budget not renewed by a reopening", work.Work.renew, "self.used = self.lost = self.used_before = 0",
        "self.lost = 0"),
    Bug("cancelled nodes forgotten by a reopening", evolving_whole._reopened, "state is NodeState.CANCELLED", "False"),
    Bug("finished children not waited for again", evolving_whole._child_resumed, "x.open_nodes += 1", "pass"),
)  # fmt: skip

KIN = (
    Bug("child never started after a loss", machine.Execution._outstanding_child,
        "[StartChild(node, work.attempt, wait, work.item)]", "[]"),
    Bug("child never reopened after a loss", machine.Execution._outstanding_child,
        "commands.append(ReopenChild(wait.child, work.opening))", "pass"),
    Bug("child never paused after a loss", machine.Execution._outstanding_child,
        "commands.append(PauseChild(wait.child))", "pass"),
    Bug("child never cancelled after a loss", machine.Execution._outstanding_child,
        "return [*commands, CancelChild(wait.child)]", "return commands"),
    Bug("child never resumed after a loss", machine.Execution._outstanding_child,
        "commands.append(ResumeChild(wait.child))", "pass"),
    Bug("child that was called off goes on after a loss", machine.Execution.outstanding,
        "commands += (CancelChild(child) for child in self.called_off)", "pass"),
    Bug("slot never asked for after a loss", machine.Execution.outstanding, "commands.append(NeedSlot())", "pass"),
    Bug("wake-up forgotten after a loss", machine.Execution.outstanding,
        "commands.append(WakeAt(self.wake_at))", "pass"),
    Bug("end never told after a loss", machine.Execution.outstanding, "commands.append(Finish(self.state))", "pass"),
)  # fmt: skip

SLOTS = (
    Bug("attempt twice in line", progress.Progress.next_in_line, " and work.turn == turn", ""),
    Bug("slot kept while parked", settling.go_on, "record(x, SlotReleased(now))", "pass"),
    Bug("slot kept while paused", settling.settle, "record(x, SlotReleased(now))", "pass"),
    Bug("slot asked for only once", progress.Progress.slot_answered, "self._slot_asked = False", "pass"),
    Bug("maxParallel exceeded", settling.start_ready, "limit - x.running", "limit"),
    Bug("waits take no place of maxParallel", progress.Progress.places, " - self.resting", ""),
    Bug("a retry waits for another place", progress.Progress.queue, "self.going_on if work.used", "self.ready if True"),
    Bug("parked with work under way", settling.go_on, "and not x.running and not x.may_start and", "and"),
)  # fmt: skip

TRAIL = (
    Bug("outputs lost on the beaten way", trail.take, "outputs[index[node]] = output if blob", "_ = output if blob"),
    Bug("skips lost on the beaten way", trail.take, "events.append(NodesSkipped(now, step.skipped))", "pass"),
    Bug("ports not looked at on the beaten way", trail.reports_of, "(signal.node, signal.ports)", "(signal.node, ())"),
    Bug("remembered with something in line", trail._is_plain, "not x.ready_count and ", ""),
    Bug("attempts shared off the beaten way", trail.Place.lay_out,
        "{node: copy(work) for node, work in self.works.items()}", "dict(self.works)"),
)  # fmt: skip

CLOSING = (
    Bug("undone in the order of success", closing._undoing, "reversed(done)", "done"),
    Bug("what was done is not undone", closing._undoing, "outcome is ExecutionState.SUCCESS", "True"),
    Bug("a success is undone", closing._undoing, "outcome is ExecutionState.SUCCESS", "False"),
    Bug("closed by two at once", progress.Progress.places, "self.plan.max_parallel if self.closing is None else 1",
        "self.plan.max_parallel"),
    Bug("a retry while it is closed waits behind others", progress.Progress.queue,
        " or self.closing is not None", ""),
    Bug("finally before the rest has ended", settling.go_on, "elif not x.open_nodes:",
        "elif not x.open_nodes or (x.plan.has_closing and not x.running and not x.ready_count):"),
    Bug("undone twice", closing.decide, "*_undoing(x, outcome), *x.plan.last",
        "*_undoing(x, outcome), *_undoing(x, outcome), *x.plan.last"),
    Bug("ended and never closed", closing.is_due, "x.closing is None and x.started_at is not None", "False"),
    Bug("outcome changed by what comes last", evolving.node_failed, "elif x.closing is None:", "else:"),
    Bug("outcome changed at the end", closing.end, "record(x, _end_of(x.closing, now))",
        "record(x, ExecutionFailed(now, 'no') if x.unhandled else _end_of(x.closing, now))"),
    Bug("closed only once", evolving_closing.reopened, "x.closing = x.about = None", "x.about = None"),
    Bug("what closes begins anew with attempt 1", evolving_closing._put_in_line, "x.closers.get(index)", "None"),
    Bug("what has undone something is reopened", closing.require_not_undone, "if undone:", "if False:"),
    Bug("time to be closed without end", evolving_closing.outcome_decided, "x.deadline = event.until", "pass"),
    Bug("paused while it is closed", evolving_closing.outcome_decided,
        "x.state, x.is_started = ExecutionState.RUNNING, True", "x.is_started = True"),
    Bug("requeued while it is closed", closing.is_closing, "x.closing is not None and not x.is_ended", "False"),
    Bug("cancelled while it is closed", verbs.cancel, " or (x.closing is not None and x.plan.has_closing)", ""),
)  # fmt: skip

BUGS = (*SHELL, *GRAPH, *KINDS, *ROUNDS, *REPORTS, *MAPS, *MENDING, *TIME, *CONTROL, *KIN, *SLOTS, *TRAIL, *CLOSING)

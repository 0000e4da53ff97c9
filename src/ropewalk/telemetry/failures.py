"""Log lines about what failed: attempts, retries, dead letters and executions, made of what is durable.

Nothing here is called for an execution in which nothing fails. A line is a sentence for people, and the same in named
fields for programs.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, assert_never

from ropewalk.core.duration import SECOND
from ropewalk.core.events import (
    Event,
    ExecutionAccepted,
    ExecutionFailed,
    ExecutionTimedOut,
    ItemFailed,
    NodeFailed,
    RunFailed,
    RunStarted,
)
from ropewalk.core.instant import moment
from ropewalk.core.trace import trace_id
from ropewalk.telemetry.logs import DETAIL, FAILURES, ROOT, logger, on_one_line

LONGEST_SENTENCE: Final = 300
"""So much of a message is in the sentence; the fields have it all."""
ENDS: Final = (ExecutionFailed, ExecutionTimedOut)
TELLING: Final = frozenset({RunFailed, NodeFailed, ItemFailed, RunStarted, *ENDS})
"""The events that are told of."""
STOPPED_MESSAGE: Final = "the run was stopped"
"""How an attempt ends that its execution has told to: no failure of its own."""

_log = logger(FAILURES)
# A program that has set up no log reads of a failure in the exception it gets, and not on its stderr.
logging.getLogger(f"{ROOT}.{FAILURES}").addHandler(logging.NullHandler())


class DeadLetter(NamedTuple):
    """A dead letter that was made."""

    id: str
    node: str
    item: int | None
    attempt: int
    failure_type: str
    error_type: str
    reason: str


Attempt = RunFailed | NodeFailed | ItemFailed
Told = Attempt | RunStarted | DeadLetter | ExecutionFailed | ExecutionTimedOut


def in_order(events: Sequence[Event], letters: Sequence[DeadLetter]) -> list[Told]:
    """What there is to tell of a commit: attempts, the dead letters made of them, and how it ended."""
    found: list[Any] = [event for event in events if type(event) in TELLING]
    ends = [event for event in found if isinstance(event, ENDS)]
    return [*(event for event in found if event not in ends), *letters, *ends]


def tell(accepted: ExecutionAccepted, workflow: str, failures: Sequence[Told]) -> None:
    """Write a line about each of them."""
    about = {
        "workflow": workflow,
        "workflowId": accepted.workflow,
        "executionId": accepted.execution,
        "workspaceId": accepted.workspace,
        "traceId": trace_id(accepted.execution, accepted.trace),
    }
    for each in failures:
        _Line(about).write(each)


class _Line:
    """One line about one execution."""

    def __init__(self, about: dict[str, Any]) -> None:
        self._about = about

    def write(self, told: Told) -> None:
        match told:
            case RunFailed() | NodeFailed() | ItemFailed():
                self._failed(told)
            case RunStarted():
                if told.attempt > 1:
                    self._say(logging.INFO, "run.retried", told, f"attempt {told.attempt} starts")
            case DeadLetter():
                self._dead_letter(told)
            case ExecutionFailed():
                self._say(logging.ERROR, "execution.failed", None, "FAILED", error=told.error)
            case ExecutionTimedOut():
                self._say(logging.ERROR, "execution.timed_out", None, "TIMEOUT", error=told.error)
            case _:
                assert_never(told)

    def _failed(self, told: Attempt) -> None:
        error, is_whole = told.error, not told.attempt
        retry_at = told.retry_at if isinstance(told, RunFailed) else None
        what = "failed" if is_whole else f"attempt {told.attempt} failed"
        when = "" if retry_at is None else f", retry in {(retry_at - told.at) / SECOND:.3g}s"
        self._say(
            logging.INFO if error.message == STOPPED_MESSAGE else logging.WARNING,
            "node.failed" if is_whole else "run.failed",
            told,
            f"{what} ({error.type}){when}",
            errorType=str(error.type),
            error=error.message,
            status=error.status,
            retryAt=moment(retry_at),
            **{DETAIL: error.detail},
        )

    def _dead_letter(self, letter: DeadLetter) -> None:
        about = {"deadLetterId": letter.id, "failureType": letter.failure_type, "errorType": letter.error_type}
        self._say(logging.ERROR, "run.dead_letter", letter, f"dead letter {letter.id}", error=letter.reason, **about)

    def _say(self, level: int, event: str, place: Attempt | RunStarted | DeadLetter | None, what: str,
             error: str | None = None, **more: Any) -> None:  # fmt: skip
        if not _log.isEnabledFor(level):
            return
        where = _where(place)
        named = f"{where['node']}[{where['item']}]: " if "item" in where else f"{where['node']}: " if where else ""
        why = "" if error is None else f": {_brief(error)}"
        known = {name: value for name, value in (("error", error), *more.items()) if value is not None}
        about = self._about
        # Escaped here too: inside a user's program, Ropewalk does not know which handler writes the line.
        sentence = on_one_line(f"{about['workflow']} {about['executionId']}: {named}{what}{why}")
        _log.log(level, event, sentence, {**about, **where, **known})


def _where(place: Attempt | RunStarted | DeadLetter | None) -> dict[str, Any]:
    if place is None:
        return {}
    item = getattr(place, "item", None)
    attempt = {"attempt": place.attempt} if place.attempt else {}
    return {"node": place.node, **({} if item is None else {"item": item}), **attempt}


def _brief(message: str) -> str:
    """The beginning of a message, on one line."""
    words = " ".join(message[: 4 * LONGEST_SENTENCE].split())
    return words if len(words) <= LONGEST_SENTENCE else f"{words[: LONGEST_SENTENCE - 1]}…"

"""What accepted requests left behind, held to the logs: idempotency rows (I-30), audit rows (I-44), owners (I-46).

What retention removed is no violation: it notes up to when. Nor is what an earlier version left, whose logs say
neither under which key an execution was started nor, having no seals, that they are of this version.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Final

from ropewalk.checker import History, Violation
from ropewalk.checker.seals import is_sealed
from ropewalk.core import log
from ropewalk.core.errors import RopewalkError
from ropewalk.core.events import (
    CancelRequested,
    ExecutionAccepted,
    ExecutionPaused,
    ExecutionResumed,
)
from ropewalk.engines.base import Custody
from ropewalk.service.starting import once_of
from ropewalk.store import auditing, idempotency, retention
from ropewalk.store import log as stored_log
from ropewalk.store.access import Reader
from ropewalk.store.auditing import KeptAnswer
from ropewalk.store.ids import first_id

SENTENCES: Final = {
    "I-30": "An idempotency key stands for one request and its executions.",
    "I-44": "Every accepted request has its audit row.",
    "I-46": "The worker that owns an execution exists.",
}
VERBS: Final = {ExecutionPaused: "pause", ExecutionResumed: "resume", CancelRequested: "cancel"}
"""What people ask of an execution, by the event that is recorded; those of children may be their parent's."""

MOST: Final = 1_000


class Requests:
    """Takes one history after the other, and then says what is missing beside them."""

    def __init__(self, reader: Reader, custody: Custody) -> None:
        self._reader = reader
        self._custody = custody
        self._forgotten: dict[str, int] = {}
        # Under which key an execution was started, and when; of those whose key is still remembered.
        self._keyed: dict[str, tuple[str, int]] = {}
        self._asked: Counter[tuple[str, str]] = Counter()

    async def open(self) -> None:
        """What retention has removed so far."""
        self._forgotten = await retention.forgotten(self._reader)

    def add(self, execution: str, history: History) -> None:
        """One execution, as its log tells it."""
        accepted = history.events[0]
        if not isinstance(accepted, ExecutionAccepted) or not _is_ours(history):
            return
        if accepted.once is not None and accepted.at > self._until(retention.KEYS):
            self._keyed[execution] = (accepted.once, accepted.at)
        if accepted.parent is None:
            noted_since = self._until(retention.AUDIT)
            for event in history.events:
                if (verb := VERBS.get(type(event))) is not None and event.at >= noted_since:
                    self._asked[execution, verb] += 1

    async def violations(self) -> list[Violation]:
        """Everything that is missing, or is there and should not be."""
        # Removed while the histories were read.
        self._forgotten = await retention.forgotten(self._reader)
        return [
            *[each async for each in self._keys()],
            *[each async for each in self._starts()],
            *[each async for each in self._verbs()],
            *[
                Violation("I-46", f"worker {owner} owns it, and does not exist", execution, 0)
                for execution, owner in await self._custody.strangers(self._reader, MOST)
            ],
        ]

    def _until(self, what: str) -> int:
        """What is not younger than that may have been removed."""
        return self._forgotten.get(what, 0)

    # Idempotency keys

    async def _keys(self) -> AsyncIterator[Violation]:
        answers: dict[str, KeptAnswer] = {}
        async for answer in auditing.answers(self._reader):
            answers[_key_of(once_of(answer.workspace, answer.route, answer.key, ""))] = answer
            for execution in answer.executions:
                if (wrong := await self._wrong_with(answer, execution)) is not None:
                    yield Violation("I-30", wrong, execution, 0)
        for violation in self._unremembered(answers):
            yield violation

    async def _wrong_with(self, answer: KeptAnswer, execution: str) -> str | None:
        """What is wrong with an answer that names this execution, if anything is."""
        once = once_of(answer.workspace, answer.route, answer.key, answer.body_hash)
        if self._keyed.get(execution, ("",))[0] == once:
            return None
        entries = await stored_log.entries(self._reader, execution, limit=1)
        if not entries:
            if execution < first_id(self._until(retention.EXECUTIONS)):
                return None
            return f"the idempotency key {answer.key!r} was answered with it, which is not there"
        try:
            accepted = log.acceptance(log.decode(entries[0][1])[1])
        except RopewalkError:
            return None  # said of its log
        if not is_sealed(entries[0][1]) or _key_of(accepted.once or "") == _key_of(once):
            return None
        return f"the idempotency key {answer.key!r} was answered with it, which was started under another key, or none"

    def _unremembered(self, answers: dict[str, KeptAnswer]) -> Iterator[Violation]:
        """Executions whose key has no answer, or another one. A key that was free again may have a later one."""
        for execution, (once, at) in self._keyed.items():
            found = answers.get(_key_of(once))
            if found is None:
                is_remembered = at <= self._until(retention.KEYS)
            else:
                same = once == once_of(found.workspace, found.route, found.key, found.body_hash)
                is_remembered = (same and execution in found.executions) or found.created_at >= at + idempotency.KEPT
            if not is_remembered:
                yield Violation("I-30", "it was started under an idempotency key, and no row says so", execution, 1)

    # The audit log

    async def _starts(self) -> AsyncIterator[Violation]:
        async for page in auditing.unnoted_starts(self._reader, self._until(retention.AUDIT), MOST):
            is_any_ours = False
            for execution, times in page:
                entries = await stored_log.entries(self._reader, execution, limit=1)
                if entries and is_sealed(entries[0][1]):
                    is_any_ours = True
                    yield Violation("I-44", f"its start is noted {times} times in the audit log", execution, 1)
            if not is_any_ours:
                return  # all before are of an earlier version

    async def _verbs(self) -> AsyncIterator[Violation]:
        if not self._asked:
            return
        noted = await auditing.noted_verbs(self._reader, list(VERBS.values()))
        for (execution, verb), times in self._asked.items():
            if (known := noted.get((execution, verb), 0)) < times:
                yield Violation(
                    "I-44", f"{verb} was asked of it {times} times, and is noted {known} times", execution, 0
                )


def _is_ours(history: History) -> bool:
    """Whether a version accepted it that says all this."""
    return bool(history.entries) and is_sealed(history.entries[0][1])


def _key_of(once: str) -> str:
    """The half of it that is about the key, and not about what was asked."""
    return once[: len(once) // 2]

"""The health of the targets this worker's nodes call, kept in memory and in the store."""

from collections.abc import Callable
from typing import Any

from ropewalk.core.breaker import Breaker, BreakerPolicy, BreakerState, Wait, admit, record
from ropewalk.core.errors import ErrorType

Key = tuple[str, str]
Write = Callable[[str, tuple[Any, ...]], None]


class WorkerBreakers:
    """Admits calls and learns from how they end; every change of a breaker is written with the next commit."""

    def __init__(self, now: Callable[[], int], write: Write, policy: BreakerPolicy) -> None:
        self._now = now
        self._write = write
        self._policy = policy
        self._breakers: dict[Key, Breaker] = {}

    def load(self, rows: list[tuple[Any, ...]]) -> None:
        """Take over what the store knows."""
        for workspace, target, state, *rest in rows:
            self._breakers[workspace, target] = Breaker(BreakerState(state), *rest)

    def admit(self, workspace: str, target: str, now: int) -> Wait | None:
        """None: call; else until when not to."""
        before = self._breakers.get((workspace, target))
        if before is None:
            return None
        after, admission = admit(before, self._policy, now)
        self._keep((workspace, target), before, after)
        return admission if isinstance(admission, Wait) else None

    def record(self, workspace: str, target: str, outcome: ErrorType | None) -> None:
        before = self._breakers.get((workspace, target), Breaker())
        self._keep((workspace, target), before, record(before, self._policy, outcome, self._now()))

    def _keep(self, key: Key, before: Breaker, after: Breaker) -> None:
        if after == before:
            return
        self._breakers[key] = after
        self._write(
            "upsert_breaker",
            (*key, str(after.state), after.failure_count, after.success_count, after.window_start, after.last_failure,
             after.opened_at, after.next_retry, after.probe_until),
        )  # fmt: skip

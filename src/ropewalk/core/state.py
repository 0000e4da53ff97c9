"""The states things can be in, and the steps between them that are allowed.

The tables are the published ones: the checker holds every history to them, and the diagrams in
`docs/states.md` are drawn from them.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class ExecutionState(StrEnum):
    """Where an execution stands."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"

    @property
    def is_ended(self) -> bool:
        return self in ENDED

    @property
    def is_reopenable(self) -> bool:
        return self is ExecutionState.FAILED or self is ExecutionState.TIMEOUT


class NodeState(StrEnum):
    """Where a node of an execution stands; BLOCKED is only ever shown, at the end."""

    WAITING = "WAITING"
    READY = "READY"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"
    BLOCKED = "BLOCKED"


class RunState(StrEnum):
    """Where one attempt stands."""

    PENDING = "PENDING"
    LEASED = "LEASED"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    DLQ = "DLQ"
    CANCELLED = "CANCELLED"


class QueueState(StrEnum):
    """Where an accepted start stands."""

    PENDING = "PENDING"
    CLAIMED = "CLAIMED"
    DISPATCHED = "DISPATCHED"
    FAILED = "FAILED"


class Resolution(StrEnum):
    """What became of a dead letter."""

    PENDING = "PENDING"
    REQUEUED = "REQUEUED"
    FIXED = "FIXED"
    DISCARDED = "DISCARDED"


class GaveUp(StrEnum):
    """Why a run became a dead letter."""

    MAX_RETRIES = "MAX_RETRIES"
    PERMANENT_ERROR = "PERMANENT_ERROR"
    CIRCUIT_BREAKER = "CIRCUIT_BREAKER"
    MANUAL = "MANUAL"


class TriggerType(StrEnum):
    """What started an execution."""

    MANUAL = "MANUAL"
    CRON = "CRON"
    EVENT = "EVENT"
    WEBHOOK = "WEBHOOK"
    QUEUE = "QUEUE"


ENDED: Final = (ExecutionState.SUCCESS, ExecutionState.FAILED, ExecutionState.CANCELLED, ExecutionState.TIMEOUT)

E_, N, R, Q, D = ExecutionState, NodeState, RunState, QueueState, Resolution

EXECUTION_STEPS: Final[Mapping[ExecutionState, tuple[ExecutionState, ...]]] = {
    E_.PENDING: (E_.RUNNING, E_.PAUSED, E_.FAILED, E_.CANCELLED),
    E_.RUNNING: (E_.PAUSED, E_.SUCCESS, E_.FAILED, E_.CANCELLED, E_.TIMEOUT),
    E_.PAUSED: (E_.PENDING, E_.RUNNING, E_.CANCELLED),
    E_.SUCCESS: (E_.PENDING,),
    E_.FAILED: (E_.PENDING,),
    E_.CANCELLED: (),
    E_.TIMEOUT: (E_.PENDING,),
}
"""FAILED and TIMEOUT go back to PENDING by a reopening, SUCCESS only when a failure that a map tolerated is requeued or
fixed; CANCELLED is final."""

NODE_STEPS: Final[Mapping[NodeState, tuple[NodeState, ...]]] = {
    N.WAITING: (N.READY, N.SKIPPED, N.SUCCESS, N.CANCELLED, N.BLOCKED),
    N.READY: (N.RUNNING, N.CANCELLED),
    N.RUNNING: (N.SUCCESS, N.FAILED, N.CANCELLED),
    N.SUCCESS: (),
    N.FAILED: (N.READY, N.RUNNING, N.SUCCESS),
    N.SKIPPED: (),
    N.CANCELLED: (N.WAITING, N.READY),
    N.BLOCKED: (N.WAITING,),
}
"""WAITING → SUCCESS is a result carried over by a rerun; FAILED → SUCCESS is a fix, → RUNNING a child reopened."""

RUN_STEPS: Final[Mapping[RunState, tuple[RunState, ...]]] = {
    R.PENDING: (R.LEASED, R.RUNNING, R.DLQ, R.CANCELLED),
    R.LEASED: (R.PENDING, R.RUNNING, R.SUCCESS, R.FAILED, R.DLQ, R.CANCELLED, R.WAITING),
    R.RUNNING: (R.PENDING, R.WAITING, R.SUCCESS, R.FAILED, R.DLQ, R.CANCELLED),
    R.WAITING: (R.PENDING, R.RUNNING, R.SUCCESS, R.FAILED, R.DLQ, R.CANCELLED),
    R.SUCCESS: (),
    R.FAILED: (R.DLQ, R.WAITING),
    R.DLQ: (),
    R.CANCELLED: (),
}
"""FAILED → DLQ when a map item's failure turns out to be one too many; → WAITING when its child is reopened."""

QUEUE_STEPS: Final[Mapping[QueueState, tuple[QueueState, ...]]] = {
    Q.PENDING: (Q.CLAIMED, Q.DISPATCHED, Q.FAILED),
    Q.CLAIMED: (Q.PENDING, Q.DISPATCHED, Q.FAILED),
    Q.DISPATCHED: (Q.PENDING, Q.FAILED),
    Q.FAILED: (Q.PENDING,),
}

RESOLUTION_STEPS: Final[Mapping[Resolution, tuple[Resolution, ...]]] = {
    D.PENDING: (D.REQUEUED, D.FIXED, D.DISCARDED),
    D.REQUEUED: (),
    D.FIXED: (),
    D.DISCARDED: (),
}

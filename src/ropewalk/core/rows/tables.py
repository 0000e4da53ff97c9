"""The rows a log stands for: one execution, its nodes, its runs, its dead letters.

The tables people read are a fold of the log and nothing else; `projection.py` folds. Ids follow from the log as well:
every fold of it, at any time, names every run and dead letter the same.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any

from msgspec import Struct

from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import Blob, Parent
from ropewalk.core.state import ExecutionState, GaveUp, NodeState, Resolution, RunState, TriggerType

_LATEST = (1 << 48) - 1
_VARIANT = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


class ExecutionRow(Struct, rename="camel"):
    """One execution, as people see it."""

    id: str
    workspace: str
    workflow: str
    version: int
    hash: str
    accepted: int
    state: ExecutionState = ExecutionState.PENDING
    trigger: TriggerType = TriggerType.MANUAL
    payload: Any = None
    input: Any = None
    vars: dict[str, Any] = {}
    parent: Parent | None = None
    priority: int = 5
    concurrency_key: str | None = None
    started: int | None = None
    finished: int | None = None
    output: Any = None
    blob: Blob | None = None
    error: str | None = None


class NodeRow(Struct, rename="camel"):
    """One node. `started` is its first start, `finished` its last outcome; a map counts evaluations of its list.

    `rounds` are those that ended well, of a node that is repeated.
    """

    node: str
    state: NodeState = NodeState.WAITING
    started: int | None = None
    finished: int | None = None
    attempts: int = 0
    error: RunError | None = None
    rounds: int = 0


class RunRow(Struct, rename="camel", gc=False):
    """One attempt at one node or item; `retry_after` is when the next may start."""

    id: str
    node: str
    item: int | None
    attempt: int
    started: int
    state: RunState = RunState.RUNNING
    finished: int | None = None
    error: RunError | None = None
    retry_after: int | None = None


class LetterRow(Struct, rename="camel"):
    """One dead letter: the run that gave up, why, and with which inputs."""

    id: str
    run: str
    node: str
    item: int | None
    attempt: int
    type: GaveUp
    reason: str
    created: int
    inputs: Any = None
    resolution: Resolution = Resolution.PENDING
    resolved: int | None = None
    by: str | None = None
    error_type: ErrorType = ErrorType.PERMANENT


class Changes(Struct):
    """Rows to be written, each as it is now; `execution` is None if that row is as it was."""

    execution: ExecutionRow | None
    nodes: list[NodeRow]
    runs: list[RunRow]
    letters: list[LetterRow]


class Rows(Struct):
    """Every row of one execution: nodes in document order, runs and dead letters in the order they came to be."""

    execution: ExecutionRow | None
    nodes: list[NodeRow]
    runs: list[RunRow]
    letters: list[LetterRow]


def run_id(execution: str, node: str, item: int | None, attempt: int, started_at: int) -> str:
    """The UUIDv7 of a run: its time is the start, the rest follows from what the run is."""
    return _uuid7(started_at, f"run\0{execution}\0{node}\0{item}\0{attempt}")


def first_run_id(execution: str, node: str, started_at: int) -> str:
    """The id of the first run of a node that is no map, as `run_id` gives it; most runs are such."""
    return _uuid7(started_at, f"run\0{execution}\0{node}\0None\x001")


def letter_id(execution: str, node: str, item: int | None, attempt: int, created_at: int) -> str:
    """The UUIDv7 of a dead letter: its time is when the run gave up, the rest follows from which run it was."""
    return _uuid7(created_at, f"letter\0{execution}\0{node}\0{item}\0{attempt}")


def _uuid7(at: int, key: str) -> str:
    # Built by hand: the core knows no clock and no chance, and the standard module brings both.
    digest = sha256(key.encode()).hexdigest()
    return f"{_moment(at // 1000)}-7{digest[:3]}-{_VARIANT[digest[3]]}{digest[4:7]}-{digest[7:19]}"


@lru_cache(64)
def _moment(at: int) -> str:
    """The first half of a UUIDv7, the same for everything within a millisecond."""
    digits = f"{min(at, _LATEST):012x}"
    return f"{digits[:8]}-{digits[8:]}"

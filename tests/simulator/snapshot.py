"""An execution's whole state as plain values, to compare what a worker had in memory with what its log says.

A retry that has come due, or an attempt its breaker lets through, is put back in line without an event: the log says
the same again as soon as time is looked at. So what could start at once counts as in line on both sides, and what was
in line when the execution began to end is over.
"""

from typing import Any, Final

from ropewalk.core.execution import Execution
from ropewalk.core.execution.work import Map, Phase, Work
from ropewalk.core.waits import Hold

WHOLE: Final = (
    "state", "seq", "now", "nodes", "outputs", "ports", "errors", "running", "open_nodes", "to_skip", "signals",
    "started_at", "is_started", "has_slot", "ending", "deadline", "grace_until", "remaining", "mends", "closing",
)  # fmt: skip
WORK: Final = (
    "attempt", "used", "lost", "wait", "child", "is_child_undone", "gave_up", "inputs", "overrides", "reserved",
    "as_of",
)  # fmt: skip
ITEMS: Final = (
    "count", "width", "limit", "outputs", "errors", "in_flight", "failures", "given_up", "stopped", "goes_on", "as_of",
    "is_mending", "_changes", "_errors_before",
)  # fmt: skip


def snapshot(x: Execution) -> dict[str, Any]:
    """Everything that decides what the execution does next."""
    x.lay_out()
    works = {(work.node, work.item): _work(work, is_ending=x.ending is not None) for work in x.active_works()}
    is_settled = all(work["phase"] != "IN LINE" for work in works.values())
    return {
        **{name: getattr(x, name) for name in WHOLE},
        "unhandled": list(x.unhandled),
        "works": works,
        "wake_at": x.wake_at if is_settled else None,
        "needs_slot": x.needs_slot if is_settled else None,
        "maps": {node: _map(each) for node, each in sorted(x.maps.items())},
    }


def _work(work: Work, *, is_ending: bool) -> dict[str, Any]:
    is_held = work.phase is Phase.WAITING and isinstance(work.wait, Hold)
    is_in_line = is_held or work.phase in (Phase.READY, Phase.BACKOFF)
    phase = str(work.phase) if not is_in_line else "ENDED" if is_ending else "IN LINE"
    return {"phase": phase} | {name: getattr(work, name) for name in WORK}


def _map(map_: Map) -> dict[str, Any]:
    return {name: getattr(map_, name) for name in ITEMS} | {"status": bytes(map_._status)}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The names under which two snapshots differ, with both values."""
    return [f"{name}: {one[name]!r} against {other[name]!r}" for name in one if one[name] != other[name]]

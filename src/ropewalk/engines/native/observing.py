"""Tells an observer what has become durable; a fault of the observer concerns no execution."""

import logging
from contextlib import suppress

from ropewalk.engines.base import Observer
from ropewalk.engines.native.parts import Committed
from ropewalk.telemetry.facts import Fact, RunFact
from ropewalk.telemetry.failures import tell

_log = logging.getLogger("ropewalk.engine")


def observe(observer: Observer, committed: list[Committed]) -> None:
    """Tell of each execution's part in a commit."""
    for each in committed:
        try:
            _tell(observer, each)
        except Exception:  # noqa: BLE001 -- an observer must not stop what it watches
            _log.exception("execution %s: what was done cannot be told to the observer", each.live.id)


def log_failures(each: Committed) -> None:
    """Write what failed into the log; that it cannot be written concerns no execution either."""
    live = each.live
    with suppress(Exception):
        tell(live.accepted, live.execution.plan.definition.name, each.failures)


def _tell(observer: Observer, each: Committed) -> None:
    live = each.live
    if each.events:
        runs = [RunFact(*row) if len(row) == len(RunFact._fields) else RunFact.of_first(*row) for row in each.runs]
        observer.committed(Fact(live.accepted, each.events, runs))
    if each.leaves:
        observer.left(live.id)

"""Where a server or a worker logs to: told by its view, or written as structured lines."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ropewalk.cli.view import View
from ropewalk.cli.view import logs_to as told_by
from ropewalk.engines.base import Observer
from ropewalk.wiring import LogForm


class Lookup:
    """Knows the run and the trace of an attempt, once there is an engine that is watched."""

    def __init__(self) -> None:
        self.observer: Observer | None = None

    def __call__(self, execution: str, node: str, item: int | None, attempt: int) -> dict[str, str]:
        identify = getattr(self.observer, "identify", None)
        return {} if identify is None else dict(identify(execution, node, item, attempt))


@contextmanager
def logging_as(form: LogForm, view: View) -> Iterator[Lookup]:
    """Logs in this form for as long as the block lasts; give what is yielded the engine's observer."""
    lookup = Lookup()
    if form is LogForm.PLAIN:
        with told_by(view):
            yield lookup
        return
    # Here, since plain lines do without it.
    from ropewalk.telemetry.logs import Format, logs_to

    with logs_to(sys.stderr, Format(form), lookup):
        yield lookup

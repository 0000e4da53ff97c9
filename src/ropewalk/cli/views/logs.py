"""Where a server or a worker logs to: told by its view, or written as structured lines."""

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ropewalk.cli.views.errors import lines_of, mark_told
from ropewalk.cli.views.progress import LogView
from ropewalk.cli.views.progress import logs_to as told_by
from ropewalk.core.errors import RopewalkError
from ropewalk.engines.base import Observer
from ropewalk.wiring import LogForm

_log = logging.getLogger("ropewalk.process")


class Lookup:
    """Knows the run and the trace of an attempt, once there is an engine that is watched."""

    def __init__(self) -> None:
        self.observer: Observer | None = None

    def __call__(self, execution: str, node: str, item: int | None, attempt: int) -> dict[str, str]:
        identify = getattr(self.observer, "identify", None)
        return {} if identify is None else dict(identify(execution, node, item, attempt))


@contextmanager
def logging_as(form: LogForm, view: LogView) -> Iterator[Lookup]:
    """Logs in this form for as long as the block lasts; give what is yielded the engine's observer.

    All that the process says on stderr follows the form: what the view says, what other libraries warn of, and why the
    process ends, if it does so by an error.
    """
    lookup = Lookup()
    if form is LogForm.PLAIN:
        with told_by(view), _warnings_logged():
            yield lookup
        return
    # Here, since plain lines do without it.
    from ropewalk.telemetry.logs import Format, logs_to

    with logs_to(sys.stderr, Format(form), lookup), _warnings_logged(), _told_at_the_end():
        view.structured = _log
        try:
            yield lookup
        finally:
            view.structured = None


@contextmanager
def _warnings_logged() -> Iterator[None]:
    """What Python prints by itself is logged: warnings, and what was raised where nothing catches it."""
    of_threads, unraisable = threading.excepthook, sys.unraisablehook
    threading.excepthook = _thread_failed
    sys.unraisablehook = _unraisable
    logging.captureWarnings(True)
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = of_threads, unraisable
        logging.captureWarnings(False)


def _thread_failed(failed: threading.ExceptHookArgs) -> None:
    _log.error("a thread failed: %r", failed.exc_value, exc_info=failed.exc_value)


def _unraisable(found: "sys.UnraisableHookArgs") -> None:
    _log.error("%s: %r", found.err_msg or "an exception was ignored", found.exc_value, exc_info=found.exc_value)


@contextmanager
def _told_at_the_end() -> Iterator[None]:
    """An error that ends the process is the last line of its log, and is not printed again."""
    try:
        yield
    except RopewalkError as error:
        for line in lines_of(error):
            _log.error("%s", line)
        mark_told(error)
        raise
    except Exception as error:
        _log.critical("the process ends by a fault of its own: %r", error, exc_info=True)
        mark_told(error)
        raise

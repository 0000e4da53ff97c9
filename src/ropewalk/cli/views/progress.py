"""The progress of a command while a person waits: drawn in a terminal, printed line by line elsewhere, or not shown."""

import asyncio
import logging
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from rich.console import Console

from ropewalk.cli.backend.project import Project
from ropewalk.cli.views.console import console, print_json_line
from ropewalk.cli.views.events import sentence
from ropewalk.cli.views.prose import Advice, unbroken
from ropewalk.cli.views.snapshot import Snapshot
from ropewalk.cli.views.text import clock, plain
from ropewalk.cli.views.timeline import timeline
from ropewalk.core import log
from ropewalk.core.canonical import JSON
from ropewalk.core.events import Event
from ropewalk.core.instant import rfc3339
from ropewalk.telemetry.logs import FAILURES, ROOT, handled_by, on_one_line

FRAMES_PER_SECOND: Final = 8
PATIENCE: Final = 10
"""How much longer than drawing takes is the pause between two pictures at least."""

LINES_AROUND: Final = 5
SAID_AGAIN_AFTER: Final = 10.0
_USUAL: Final = "INFO"


def now() -> int:
    """The wall clock (µs); good enough for what is drawn."""
    return time.time_ns() // 1000


class View:
    """Shows nothing but what is said, on stderr."""

    def __init__(self, to: Console) -> None:
        self.console = to

    def say(self, line: str, command: str = "") -> None:
        """Tell the person who waits: a message on one line, and the command to type next if one helps."""
        said = plain(on_one_line(line))
        self.console.print(Advice(said, command) if command else unbroken(said), crop=False)

    def log(self, level: str, line: str) -> None:
        """Tell what was logged; what is worth no more than a word is told as it is."""
        self.say(line if level == _USUAL else f"{level}  {line}")

    def happened(self, snapshot: Snapshot, seq: int, event: Event) -> None:
        """An event was recorded, and is in the picture."""

    @contextmanager
    def showing(self, snapshot: Snapshot) -> Iterator[None]:
        """Show the picture as it changes."""
        yield

    def stop(self) -> None:
        """Leave the terminal as it was found."""


class PlainView(View):
    """One line for each event that a person wants to know of."""

    def happened(self, snapshot: Snapshot, seq: int, event: Event) -> None:
        told = sentence(log.envelope("", seq, event))
        if told is not None:
            self.say(f"{clock(event.at)[11:]}  {told}")


class LiveView(View):
    """The timeline, drawn anew several times a second."""

    def __init__(self, to: Console) -> None:
        super().__init__(to)
        from rich.live import Live  # here, since only a terminal needs it

        # Drawn by the loop itself: a thread would read the picture while it changes.
        self._live = Live(console=to, auto_refresh=False, transient=False)

    @contextmanager
    def showing(self, snapshot: Snapshot) -> Iterator[None]:
        drawing = asyncio.get_running_loop().create_task(self._draw(snapshot))
        with self._live:
            try:
                yield
            finally:
                drawing.cancel()
                self._frame(snapshot)

    async def _draw(self, snapshot: Snapshot) -> None:
        while True:
            began = time.perf_counter()
            self._frame(snapshot)
            # Ten thousand nodes take a while to draw; nodes of this very process must not wait for their picture.
            await asyncio.sleep(max(1 / FRAMES_PER_SECOND, PATIENCE * (time.perf_counter() - began)))

    def _frame(self, snapshot: Snapshot) -> None:
        drawn = timeline(snapshot.json(), now(), most=max(1, self.console.size.height - LINES_AROUND))
        self._live.update(drawn, refresh=True)

    def stop(self) -> None:
        self._live.stop()


class LogView(View):
    """A line a time, with its moment: what a service leaves in its log, for people or for programs."""

    def __init__(self, to: Console, *, is_json: bool) -> None:
        super().__init__(to)
        self._is_json = is_json
        # Where its lines go if the whole log is structured.
        self.structured: logging.Logger | None = None

    def say(self, line: str, command: str = "", **about: JSON) -> None:
        self._write(_USUAL, line, {**about, "command": command} if command else about, command)

    def log(self, level: str, line: str) -> None:
        self._write(level, line, {})

    def _write(self, level: str, line: str, about: Mapping[str, JSON], command: str = "") -> None:
        if self._is_json:
            print_json_line({"at": rfc3339(now()), "level": level.lower(), "message": plain(line), **about})
        elif self.structured is not None:
            self.structured.info("%s", line, extra={"facts": about})
        else:
            super().say(f"{clock(now())}  {level:<8} {line}", command)


def view_for(project: Project) -> View:
    """The best view for the stream that the command writes to."""
    to = console(is_error=True)
    if project.is_json:
        return View(to)
    return LiveView(to) if to.is_terminal else PlainView(to)


class _Handler(logging.Handler):
    def __init__(self, view: View) -> None:
        super().__init__()
        self._view = view
        self._said: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._emit(record)
        except Exception:  # noqa: BLE001 -- a log that cannot be written must not stop what it tells of
            self.handleError(record)

    def _emit(self, record: logging.LogRecord) -> None:
        about = getattr(record, "about", None)
        source = about["node"] if about else record.name.removeprefix("ropewalk.")
        line = f"{source} │ {record.getMessage()}{_cause(record)}"
        if about or self._is_news(line):
            self._view.log(record.levelname, line)

    def _is_news(self, line: str) -> bool:
        """A store that is away is complained about many times a second, always with the same words."""
        at = time.monotonic()
        if at - self._said.get(line, -math.inf) < SAID_AGAIN_AFTER:
            return False
        self._said = {each: when for each, when in self._said.items() if at - when < SAID_AGAIN_AFTER}
        self._said[line] = at
        return True


def _cause(record: logging.LogRecord) -> str:
    """What it was that went wrong, without where in our code."""
    error = record.exc_info[1] if record.exc_info else None
    return "" if error is None else f" ({type(error).__name__}: {' '.join(str(error).split())})"


@contextmanager
def logs_to(view: View, *, tells_failures: bool = True) -> Iterator[None]:
    """What nodes log, what goes wrong inside, and what fails, unless that is shown already, is said by the view."""
    failures = logging.INFO if tells_failures else logging.CRITICAL
    levels = {ROOT: logging.WARNING, f"{ROOT}.node": logging.INFO, f"{ROOT}.{FAILURES}": failures}
    with handled_by(_Handler(view), levels):
        yield

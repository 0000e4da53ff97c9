"""How it goes, shown while one waits: drawn in a terminal, told line by line elsewhere, or not at all."""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ropewalk.cli.console import console
from ropewalk.cli.picture import Picture
from ropewalk.cli.project import Project
from ropewalk.cli.rendering.story import sentence
from ropewalk.cli.rendering.text import clock, plain
from ropewalk.cli.rendering.timeline import NARROWEST, WIDEST, timeline
from ropewalk.core import log
from ropewalk.core.events import Event

FRAMES_PER_SECOND: Final = 8
PATIENCE: Final = 10
"""How much longer than drawing takes is the pause between two pictures at least."""

LINES_AROUND: Final = 5


def now() -> int:
    """The wall clock (µs); good enough for what is drawn."""
    return time.time_ns() // 1000


class View:
    """Shows nothing but what is said, on stderr."""

    def __init__(self, to: Console) -> None:
        self.console = to

    def say(self, line: str) -> None:
        """Tell the person who waits."""
        self.console.print(Text(plain(line)))

    def happened(self, picture: Picture, seq: int, event: Event) -> None:
        """An event was recorded, and is in the picture."""

    @contextmanager
    def showing(self, picture: Picture) -> Iterator[None]:
        """Show the picture as it changes."""
        yield

    def stop(self) -> None:
        """Leave the terminal as it was found."""


class PlainView(View):
    """One line for whatever is worth one."""

    def happened(self, picture: Picture, seq: int, event: Event) -> None:
        told = sentence(log.envelope("", seq, event))
        if told is not None:
            self.say(f"{clock(event.at)[11:]}  {told}")


class LiveView(View):
    """The timeline, drawn anew several times a second."""

    def __init__(self, to: Console) -> None:
        super().__init__(to)
        # Drawn by the loop itself: a thread would read the picture while it changes.
        self._live = Live(console=to, auto_refresh=False, transient=False)

    @contextmanager
    def showing(self, picture: Picture) -> Iterator[None]:
        drawing = asyncio.get_running_loop().create_task(self._draw(picture))
        with self._live:
            try:
                yield
            finally:
                drawing.cancel()
                self._frame(picture)

    async def _draw(self, picture: Picture) -> None:
        while True:
            began = time.perf_counter()
            self._frame(picture)
            # Ten thousand nodes take a while to draw; nodes of this very process must not wait for their picture.
            await asyncio.sleep(max(1 / FRAMES_PER_SECOND, PATIENCE * (time.perf_counter() - began)))

    def _frame(self, picture: Picture) -> None:
        size = self.console.size
        width = max(NARROWEST, min(WIDEST, size.width // 4))
        drawn = timeline(picture.json(), now(), width=width, most=max(1, size.height - LINES_AROUND))
        self._live.update(drawn, refresh=True)

    def stop(self) -> None:
        self._live.stop()


def view_for(project: Project) -> View:
    """The best view there is for whoever looks."""
    to = console(is_error=True)
    if project.is_json:
        return View(to)
    return LiveView(to) if to.is_terminal else PlainView(to)


class _Handler(logging.Handler):
    def __init__(self, view: View) -> None:
        super().__init__()
        self._view = view

    def emit(self, record: logging.LogRecord) -> None:
        about = getattr(record, "about", None)
        source = about["node"] if about else record.name.removeprefix("ropewalk.")
        self._view.say(f"{source} │ {record.getMessage()}")


@contextmanager
def logs_to(view: View) -> Iterator[None]:
    """What nodes log, and what goes wrong inside, is said by the view."""
    root, nodes = logging.getLogger("ropewalk"), logging.getLogger("ropewalk.node")
    handler = _Handler(view)
    before = root.propagate, root.level, nodes.level
    root.addHandler(handler)
    root.propagate = False
    root.setLevel(logging.WARNING)
    nodes.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.propagate = before[0]
        root.setLevel(before[1])
        nodes.setLevel(before[2])
        handler.close()

"""Waiting for an execution with a person: its view, its end, and Ctrl-C."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Final, cast

from ropewalk.cli.backend.session import Session, me
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.progress import View
from ropewalk.cli.views.snapshot import Snapshot
from ropewalk.core.errors import InvalidTransition
from ropewalk.core.events import Event, ExecutionAccepted, ExecutionResumed
from ropewalk.service.reading import Recorded

LEAVE: Final = signal.SIGUSR1
"""The signal that asks a process to leave; sent again, it changes nothing: the process goes on leaving."""
_HEEDED: Final = (signal.SIGINT, signal.SIGTERM, LEAVE)


class Interrupts:
    """The first Ctrl-C asks for a pause, SIGTERM for leaving, the second of either leaves at once: crashes are safe."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._asked = asyncio.Event()
        self.wants_pause = False

    @property
    def is_asked(self) -> bool:
        return self._asked.is_set()

    async def wait(self) -> None:
        await self._asked.wait()

    def interrupt(self, by: signal.Signals) -> None:
        """A signal has come."""
        if self._asked.is_set():
            if by is LEAVE:
                return
            self._view.stop()
            os._exit(Code.INTERRUPTED)
        self.wants_pause = by is signal.SIGINT
        self._asked.set()


@contextmanager
def interrupts(view: View) -> Iterator[Interrupts]:
    """Signals are asked for, instead of breaking in."""
    loop = asyncio.get_running_loop()
    waiting = Interrupts(view)
    for each in _HEEDED:
        loop.add_signal_handler(each, waiting.interrupt, each)
    try:
        yield waiting
    finally:
        for each in _HEEDED:
            loop.remove_signal_handler(each)


async def watch(session: Session, execution: str, view: View, asked: Interrupts, since: int) -> None:
    """Show an execution until it ends; an interruption pauses it unless it is others who execute it.

    The person who watches knows what was recorded before `since`; only later events are shown.
    """
    history = await session.queries.history(execution)
    snapshot, begin = Snapshot.of(history), _begin(session, history, since)
    with view.showing(snapshot):
        for seq, event in enumerate(history.events, 1):
            if event.at >= begin:
                view.happened(snapshot, seq, event)
        following = asyncio.ensure_future(_follow(session, execution, snapshot, view))
        interrupted = asyncio.ensure_future(asked.wait())
        await asyncio.wait((following, interrupted), return_when=asyncio.FIRST_COMPLETED)
        try:
            if following.done():
                following.result()
            elif session.is_ours_to_pause and asked.wants_pause:
                await _pause(session, execution, snapshot, view)
        finally:
            following.cancel()
            interrupted.cancel()
            await asyncio.gather(following, interrupted, return_exceptions=True)


def _begin(session: Session, history: Recorded, since: int) -> int:
    """When that began which is news; the clock of a server is not ours, so there its log has to tell."""
    if session.owner is None or session.owner.server is None:
        return since
    return max(event.at for event in history.events if isinstance(event, ExecutionAccepted | ExecutionResumed))


async def _follow(session: Session, execution: str, snapshot: Snapshot, view: View) -> None:
    if snapshot.is_ended:
        return
    events = session.verbs.follow(execution, snapshot.seq)
    async with aclosing(cast("AsyncGenerator[tuple[int, Event], None]", events)) as stream:
        async for seq, event in stream:
            snapshot.add((event,))
            view.happened(snapshot, seq, event)


async def _pause(session: Session, execution: str, snapshot: Snapshot, view: View) -> None:
    """Pause before leaving, unless the execution ends at this very moment."""
    try:
        await session.verbs.pause(execution, me(), "interrupted")
    except InvalidTransition as refusal:
        view.say(str(refusal))
        return
    if snapshot.running:
        view.say(f"pausing: {snapshot.running} running nodes finish first; Ctrl-C again leaves at once")

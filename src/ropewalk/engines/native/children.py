"""Parents and children: a child's end is told to its parent, a parent's verbs to its children.

What one execution has to tell another is a row in the inbox, written in the commit of the events that cause it and
deleted in the commit of the events it causes: told at least once, and a second telling decides nothing.
"""

import asyncio
import logging
from collections.abc import Coroutine
from itertools import chain, repeat
from typing import TYPE_CHECKING

import msgspec
import uuid_utils

from ropewalk.core.commands import CancelChild, Command, Finish, PauseChild, ReopenChild, ResumeChild, StartChild
from ropewalk.core.errors import InvalidTransition, NotFound, RopewalkError, Unavailable
from ropewalk.core.events import Event, ExecutionReopened, Parent
from ropewalk.core.signals import Cancel, ChildEnded, ChildReopened, Pause, Resume, Retry, Signal
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import StartRequest
from ropewalk.engines.native.followers import ending
from ropewalk.engines.native.live import Live
from ropewalk.store import executions

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine

DEEPEST = 16
BY_PARENT = "parent"
PAUSES = (0.05, 0.5, 1, 5, 30)

_log = logging.getLogger("ropewalk.engine")
_letters = msgspec.json.Decoder(Signal | StartChild)


class Children:
    """Carries what executions have to tell each other."""

    def __init__(self, engine: "NativeEngine") -> None:
        self._engine = engine
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way: set[str] = set()

    async def catch_up(self) -> None:
        """Tell what was written down and may not have been told: by the last process, or before a commit failed."""
        for letter, execution, text in await self._engine.store.fetch("waiting_inbox"):
            self._send(letter, execution, _letters.decode(text))

    # What is to be told, written with the events that cause it

    def write_down(self, live: Live, command: Command) -> None:
        """Put what a command says to another execution into the commit of the events that caused it."""
        match command:
            case Finish():
                self._tell_parent(live)
            case CancelChild(child):
                self._post(live, child, Cancel(BY_PARENT))
            case PauseChild(child):
                self._post(live, child, Pause(BY_PARENT))
            case ResumeChild(child):
                self._post(live, child, Resume(BY_PARENT))
            case ReopenChild(child):
                self._post(live, child, Retry(BY_PARENT))
                # One that could not be started the first time is started now; one that is there hears the retry only.
                for waited_for in live.execution.outstanding():
                    if isinstance(waited_for, StartChild) and waited_for.wait.child == child:
                        self._post(live, live.id, waited_for)
            case StartChild():
                # To itself: the child is started from the letter, by whoever owns the parent then.
                self._post(live, live.id, command)

    def _tell_parent(self, live: Live) -> None:
        parent = live.accepted.parent
        if parent is not None:
            end = ending(live.id, live.events[-1])
            report = ChildEnded(parent.node, parent.attempt, end.state, end.output, end.error, parent.item, end.blob)
            self._post(live, parent.execution, report)

    def _post(self, live: Live, execution: str, signal: Signal | StartChild) -> None:
        letter = str(uuid_utils.uuid7())
        text = msgspec.json.encode(signal).decode()
        live.rows.append(("insert_inbox", (letter, execution, text, live.execution.now)))
        live.post.append((letter, execution, signal))

    # Telling

    def deliver(self, post: list[tuple[str, str, Signal | StartChild]]) -> None:
        """These are durable: tell them."""
        for letter, execution, signal in post:
            self._send(letter, execution, signal)

    def _send(self, letter: str, execution: str, signal: Signal | StartChild) -> None:
        if letter not in self._under_way:
            self._under_way.add(letter)
            self.spawn(self._deliver(letter, execution, signal))

    async def _deliver(self, letter: str, execution: str, signal: Signal | StartChild) -> None:
        """Tell it, as soon as the store lets us; what is not told before the process ends is told by the next."""
        try:
            for pause in chain(PAUSES, repeat(PAUSES[-1])):
                try:
                    await self._hand_over(letter, execution, signal)
                    return
                except Unavailable as error:
                    _log.warning("execution %s cannot be told something yet: %s", execution, error)
                await asyncio.sleep(pause)
        finally:
            self._under_way.discard(letter)

    async def _hand_over(self, letter: str, execution: str, signal: Signal | StartChild) -> None:
        engine = self._engine
        try:
            live = await engine.memory.load(execution)
            while isinstance(signal, ChildEnded) and signal.blob is not None:
                # A large output must be at hand before it is reported, as that of a node is.
                await live.expect_blob(engine.memory.load_blob, live.execution.plan.index[signal.node], signal.blob)
                if engine.memory.owns(live):
                    break
                live = await engine.memory.load(execution)
        except NotFound:
            engine.commit.add_row("delete_inbox", (letter,))
            return
        if isinstance(signal, StartChild):
            await self._start(letter, live, signal)
            if live.is_idle:
                engine.memory.forget(live)  # it only waits now, and a child's start writes nothing of its parent's
        else:
            self._tell(letter, live, signal)

    def _tell(self, letter: str, live: Live, signal: Signal) -> None:
        engine = self._engine
        try:
            engine.signal(live, signal)
        except InvalidTransition as refusal:
            _log.info("execution %s was told %s and refused: %s", live.id, type(signal).__name__, refusal)
        live.rows.append(("delete_inbox", (letter,)))
        engine.commit.add(live)

    async def _start(self, letter: str, live: Live, command: StartChild) -> None:
        """Accept the child unless it is there already; one that cannot be started has failed."""
        engine, wait = self._engine, command.wait
        if await executions.load(engine.store, wait.child) is not None:
            engine.commit.add_row("delete_inbox", (letter,))
            return
        if live.execution.ending is not None:
            self._tell(letter, live, _never_began(command, ExecutionState.CANCELLED, "the parent is ending"))
            return
        try:
            request = await self._request(live, command)
        except Unavailable:
            raise
        except RopewalkError as error:
            again = await engine.memory.load(live.id)
            self._tell(letter, again, _never_began(command, ExecutionState.FAILED, str(error)))
            return
        await engine.start(request, letter)

    async def _request(self, live: Live, command: StartChild) -> StartRequest:
        wait, accepted = command.wait, live.accepted
        version = await self._engine.memory.published(accepted.workspace, wait.workflow, wait.version)
        parent = self._parent(live, command)
        version.plan.definition.check_input(wait.input)
        return StartRequest(
            version=version,
            workspace=accepted.workspace,
            input=wait.input,
            env=accepted.env,
            trigger=accepted.trigger,
            priority=accepted.priority,
            parent=parent,
            execution=wait.child,
        )

    def _parent(self, live: Live, command: StartChild) -> Parent:
        above = live.accepted.parent.ancestors if live.accepted.parent else ()
        if len(above) + 1 >= DEEPEST:
            raise InvalidTransition(f"sub-workflows are nested more than {DEEPEST} deep")
        return Parent(live.id, command.node, command.attempt, command.item, (*above, live.id))

    # Verbs that concern both

    def tell(self, live: Live, signal: Signal, parent: Live | None) -> list[Event]:
        """Tell an execution; one that is reopened by it takes its parent along, or the request is refused."""
        engine = self._engine
        events = engine.signal(live, signal)
        reopened = next((event for event in events if isinstance(event, ExecutionReopened)), None)
        if reopened is None or parent is None or live.accepted.parent is None:
            return events
        of = live.accepted.parent
        try:
            engine.signal(parent, ChildReopened(of.node, of.attempt, reopened.by, of.item))
        except InvalidTransition:
            engine.drop(live)
            raise
        return events

    def spawn(self, coroutine: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop telling; what was not told is in the inbox."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _never_began(command: StartChild, state: ExecutionState, reason: str) -> ChildEnded:
    return ChildEnded(command.node, command.attempt, state, None, reason, command.item)

"""Streams of a whole workspace, or of one workflow in it.

Followed is every execution that is not over when the stream begins, and every one that is accepted or reopened later.
Events are told in the order of their numbers within an execution; between executions there is no order. What is
committed by this process is told at once. Other workers hint at what they commit; what no hint told of is found by
looking once a second, among the newest MOST_LOOKED_AT; an end too, by what is no longer there.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import Final
from uuid import uuid4

import msgspec
from msgspec import Struct

from ropewalk.core import log
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import RopewalkError, Unreadable, reading_of
from ropewalk.core.events import Event, ExecutionAccepted
from ropewalk.core.kinship import ENDS
from ropewalk.engines.base import Appended
from ropewalk.engines.interests import of_workspace
from ropewalk.engines.watching import Watching
from ropewalk.service.channels import Channel, Message
from ropewalk.store import log as stored_log
from ropewalk.store import streams
from ropewalk.store.access import Store
from ropewalk.store.ids import first_id
from ropewalk.store.streams import Head

MOST_LOOKED_AT: Final = 2_000
MOST_KNOWN: Final = 50_000
FEW: Final = 100
EVERY: Final = 1.0
AT_MOST_EVERY: Final = 0.1
OVERLAP: Final = 10 * SECOND
"""How far ids of different machines may be out of order."""

_log = logging.getLogger("ropewalk.stream")


class Known(Struct):
    """How much of an execution was told."""

    workflow: str
    seq: int
    is_over: bool = False


class WorkspaceChannel(Channel):
    """What happens in a workspace, or (`workflow`) in one workflow of it."""

    def __init__(self, store: Store, watching: Watching, workspace: str, workflow: str | None, **limits: int) -> None:
        super().__init__(**limits)
        self._store = store
        self._watching = watching
        self._workspace = workspace
        self._workflow = workflow
        # Numbers of a stream mean something only while it is kept; another life of it has another name.
        self._name = uuid4().hex[:12]
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._unreadable: dict[str, None] = {}
        self._since = 0
        self._to_read: dict[str, None] = {}
        self._is_to_look = False
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_whole = True
        self._is_outdated = False

    async def open(self) -> None:
        self._since = self._store.now()
        self._watching.watch(of_workspace(self._workspace), self)
        try:
            await self._begin()
        except BaseException:
            self._watching.unwatch(of_workspace(self._workspace), self)
            raise
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _begin(self) -> None:
        found = await streams.live(self._store, self._workspace, self._workflow, MOST_LOOKED_AT)
        self._is_whole = len(found) < MOST_LOOKED_AT
        for head in reversed(found):
            if head.execution not in self._known:
                await self._begin_with(head)

    async def _begin_with(self, head: Head) -> None:
        try:
            seq, last = await streams.last_event(self._store, head.execution)
        except Unreadable as error:
            self._leave_out(head.execution, error)
            return
        # The engine may have told of it meanwhile, and then it is known from there.
        self._known.setdefault(head.execution, Known(head.workflow, seq, type(last) in ENDS))

    def _leave_out(self, execution: str, error: Unreadable) -> None:
        """An execution that cannot be read is left out of the stream; the log says so once."""
        if execution not in self._unreadable:
            self._unreadable[execution] = None
            _log.error("workspace %s is told of without it: %s", self._workspace, error)

    async def close(self) -> None:
        await super().close()
        self._watching.unwatch(of_workspace(self._workspace), self)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    # Where a reader is

    def place_of(self, id: str) -> int | None:  # noqa: A002
        """The number an id stands for, if it is of this stream and what follows it is kept."""
        name, _, number = id.partition("-")
        if name != self._name or not (number.isdecimal() and len(number) < 16):
            return None
        return int(number) if self.floor <= int(number) <= self.head else None

    async def snapshot(self, payloads: bool) -> tuple[int, str, bytes]:
        """What is not over and how far it is; all at one moment, so that what follows neither lacks nor repeats."""
        under_way = [
            {"executionId": execution, "workflowId": known.workflow, "seq": known.seq}
            for execution, known in self._known.items()
            if not known.is_over
        ]
        text = msgspec.json.encode({"executions": under_way[-MOST_LOOKED_AT:], "isWhole": self._is_whole})
        return self.head, f"{self._name}-{self.head}", text

    # Called by the engine

    def told(self, appended: Appended) -> None:
        execution, workflow = appended.id, appended.accepted.workflow
        if self._workflow is not None and workflow != self._workflow:
            return
        known = self._known.get(execution)
        if known is None and appended.first_seq == 1:
            known = self._known[execution] = Known(workflow, 0)
        if known is None or appended.first_seq > known.seq + 1:
            self.moved(execution, None)
        else:
            self._add(execution, known, appended.first_seq, appended.events)

    def moved(self, execution: str | None, head: int | None) -> None:
        if execution is None or len(self._to_read) >= MOST_LOOKED_AT:
            self._is_to_look = True
        else:
            self._to_read[execution] = None
        self._wanted.set()

    def begin_anew(self) -> None:
        self._is_outdated = True
        self._wanted.set()

    def _add(self, execution: str, known: Known, first: int, events: Sequence[Event]) -> None:
        for seq, event in enumerate(events, first):
            if seq == known.seq + 1:
                known.seq, known.is_over = seq, type(event) in ENDS
                self.put(Message(execution, seq, event, f"{self._name}-{self.head + 1}"))
        self._known.move_to_end(execution)
        if len(self._known) > MOST_KNOWN:
            self._forget_one()

    def _forget_one(self) -> None:
        """Rather one that is over than one that is not, among those of which nothing was heard for longest."""
        silent = list(islice(self._known.items(), FEW))
        del self._known[next((execution for execution, known in silent if known.is_over), silent[0][0])]

    # What other workers have written

    async def _run(self) -> None:
        while True:
            timer = asyncio.get_running_loop().call_later(EVERY, self._look_and_wake)
            await self._wanted.wait()
            self._wanted.clear()
            timer.cancel()
            try:
                await self._read_on()
            except RopewalkError as error:
                _log.warning("workspace %s cannot be read on for now: %s", self._workspace, error)
            except Exception:  # noqa: BLE001 -- a fault with one read must not end the stream of every reader
                _log.exception("reading on in workspace %s failed; it is tried again", self._workspace)
            await asyncio.sleep(AT_MOST_EVERY if self._is_to_look else 0)

    def _look_and_wake(self) -> None:
        self._is_to_look = True
        self._wanted.set()

    async def _renew(self) -> None:
        """Begin again with what is there now, under another name."""
        self._name = uuid4().hex[:12]
        self._known.clear()
        self._to_read.clear()
        await self._begin()
        self._is_outdated = False
        self.renew(0)

    async def _read_on(self) -> None:
        if self._is_outdated:
            await self._renew()
        if self._is_to_look:
            self._is_to_look = False
            await self._look()
        wanted, self._to_read = self._to_read, {}
        for execution in wanted:
            try:
                await self._read(execution)
            except Unreadable as error:
                self._leave_out(execution, error)

    async def _look(self) -> None:
        """Find what has moved without a word: what is under way elsewhere, and what was accepted since."""
        about = (self._store, self._workspace, self._workflow)
        floor = first_id(max(self._since, self._store.now() - OVERLAP) - SECOND)
        found = await streams.accepted(*about, floor, MOST_LOOKED_AT)
        if self._store.is_shared:
            under_way = await streams.live(*about, MOST_LOOKED_AT)
            self._miss(under_way)
            found += under_way
        for head in found:
            known = self._known.get(head.execution)
            if known is None or head.seq > known.seq:
                self._to_read[head.execution] = None

    def _miss(self, under_way: list[Head]) -> None:
        """What is not over as far as we know, and is not among these, has ended without a word."""
        there = {head.execution for head in under_way}
        # Of those that are older than all that were looked at nothing is known.
        oldest = under_way[-1].execution if len(under_way) == MOST_LOOKED_AT else ""
        for execution, known in self._known.items():
            if not known.is_over and execution > oldest and execution not in there:
                self._to_read[execution] = None

    async def _read(self, execution: str) -> None:
        known = self._known.get(execution)
        start = 1 if known is None else known.seq + 1
        entries = await stored_log.entries(self._store, execution, start=start)
        with reading_of(execution):
            found = [log.decode(entry) for _, entry in entries]
        # Looked up anew after the wait: the engine may have told of it meanwhile.
        known = self._known.get(execution) or self._made_known(execution, [each for _, some in found for each in some])
        if known is not None:
            for first, events in found:
                self._add(execution, known, first, events)

    def _made_known(self, execution: str, events: Sequence[Event]) -> Known | None:
        """One of which nothing was told yet is told from when this stream began; None if it is not ours to tell."""
        accepted = events[0] if events else None
        if not isinstance(accepted, ExecutionAccepted) or accepted.workspace != self._workspace:
            return None
        if self._workflow is not None and accepted.workflow != self._workflow:
            return None
        before = [event for event in events if event.at < self._since]
        is_over = bool(before) and type(before[-1]) in ENDS
        known = self._known[execution] = Known(accepted.workflow, len(before), is_over)
        return known

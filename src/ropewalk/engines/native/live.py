"""An execution this worker owns: the machine in memory, what is not committed yet, and what is under way."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import uuid_utils

from ropewalk.core.commands import Command, StartChild
from ropewalk.core.events import Blob, Event, ExecutionAccepted
from ropewalk.core.execution import Execution
from ropewalk.core.execution.resuming import Attempt, under_way
from ropewalk.core.execution.view import blobs_of
from ropewalk.core.execution.work import Work
from ropewalk.core.expression import Expression, ExpressionError, Template, compile_expression
from ropewalk.core.rows.ledger import RunLedger
from ropewalk.core.signals import Signal, Succeeded, Suspended
from ropewalk.core.state import ExecutionState, NodeState
from ropewalk.core.trace import trace_id
from ropewalk.core.waits import EventWait, RateLimitWait
from ropewalk.engines.base import Version
from ropewalk.engines.native.stored import FileRoom, count, count_files, keep
from ropewalk.engines.run import Desk, Run
from ropewalk.nodes.recording import Large
from ropewalk.telemetry.failures import Told

Key = tuple[str, int | None]
Row = tuple[Any, ...]
Load = Callable[[Blob], Awaitable[Any]]


class Running(Run, eq=False):
    """One attempt under way in this process; its inputs are there once it is begun with."""

    live: "Live"
    work: Work
    # Which task carries it out; none while it is in line.
    task: asyncio.Task[None] | None = None

    def reserved(self) -> RateLimitWait | None:
        return self.work.reserved

    def round(self) -> int:
        return self.work.round

    def config_hash(self) -> str:
        return self.live.execution.plan.config_hash(self.work.node)

    async def keep(self, large: Large, desk: Desk) -> Blob:
        return await keep(self.live, large, desk)

    def room(self, desk: Desk) -> FileRoom:
        return FileRoom(self.live, desk.most_stored)

    def bounded_by(self) -> tuple[str, ...]:
        return self.live.accepted.bounded_by

    def credentials(self) -> str | Mapping[str, str] | None:
        return self.live.execution.plan.credentials(self.work.node)


class Written(msgspec.Struct):
    """What the tables say about an execution, as far as this worker has written it."""

    execution: Row | None = None
    live: Row | None = None
    queued: str | None = None
    event_waits: dict[tuple[str, int], None] = {}
    state: ExecutionState | None = None
    # Of the last entry of its log.
    seal: int = 0
    # How many events of its log the tables have: what is projected a second time changes nothing.
    seq: int = 0


class Live:
    """One execution in memory. `events`, `commands` and `rows` wait for the next commit."""

    __slots__ = (
        "accepted", "blobs", "commands", "commits", "events", "execution", "failures", "found_running",
        "has_key", "has_large", "has_slot", "id", "is_dirty", "is_dropped", "is_hungry", "is_plain", "is_unconfirmed",
        "items", "ledger", "offered", "pins", "post", "reports", "rows", "running", "setbacks", "steps_until",
        "stored", "trace_id", "unwritten", "version", "written",
    )  # fmt: skip

    def __init__(self, version: Version, accepted: ExecutionAccepted) -> None:
        self.id = accepted.execution
        self.version = version
        self.accepted = accepted
        self.trace_id = trace_id(accepted.execution, accepted.trace)
        self.execution = Execution.on_the_beaten_way(version.plan)
        self.ledger = RunLedger(version.plan, accepted)
        self.running: dict[Key, Running] = {}
        self.items: dict[int, Any] = {}
        # Until when the steps count that its expressions have taken on the loop.
        self.steps_until = 0
        # These three are never added to but replaced: most have one decision's worth of them.
        self.events: Sequence[Event] = ()
        self.commands: Sequence[Command] = ()
        # What its next commit has to tell of failures, once it is through.
        self.failures: Sequence[Told] = ()
        # What its attempts have reported in this turn of the loop.
        self.reports: list[Signal] = []
        # What they have reported before, and no commit has taken along yet.
        self.unwritten: Sequence[Signal] = ()
        self.rows: list[tuple[str, Row]] = []
        # What it has to tell other executions once that is durable: inbox id, execution, signal.
        self.post: list[tuple[str, str, Signal | StartChild]] = []
        # Whether any value of it is too large for the log, or any entry of its log is that long.
        self.has_large = False
        # Whether it has neither such values nor maps, and has stored little: then nothing need be looked at.
        self.is_plain = not version.plan.has_maps
        # What it has stored (bytes): its log, and the large values that are named there, each once.
        self.stored = 0
        self.blobs: dict[str, None] | None = None
        # The runs that others have or may take.
        self.offered: set[Attempt] = set()
        # The runs that were under way when its log was folded, for the worker that takes it up.
        self.found_running: list[Attempt] = []
        # How many are at something that needs it to stay.
        self.pins = 0
        # How many commits it is part of are not through, or what they ask for is not done.
        self.commits = 0
        # How many in a row have failed.
        self.setbacks = 0
        self.is_dirty = self.is_hungry = False
        # Whether it was taken from the store, and no commit has said since that it is ours.
        self.is_unconfirmed = False
        # Whether what was decided here was thrown away, since a commit failed.
        self.is_dropped = False
        # Whether a slot is counted for it; given back only after the commit that says so.
        self.has_slot = False
        # Its place among those that hold its concurrency key, an ancestor before its descendants; 0 if it holds none.
        self.has_key = 0
        self.written = Written()

    @property
    def is_idle(self) -> bool:
        """Whether it can leave memory: nothing runs, nothing is to be committed, and it has no slot."""
        return not (self.is_dirty or self.commits or self.has_slot) and self.may_leave

    @property
    def may_leave(self) -> bool:
        """Whether the commit that is made now may say that it has no owner.

        One that is over has no owner from its last commit on; a run that still goes on is reported too late.
        """
        return self.execution.is_ended or not (self.running or self.reports or self.pins or self.execution.has_slot)

    @property
    def owner(self) -> str | None:
        """The worker that has it, as the tables say."""
        return None if self.written.live is None else self.written.live[0]

    @property
    def is_recorded_as_owned(self) -> bool:
        """Whether the tables say that a worker has it."""
        return self.owner is not None

    def audit(self, actor: str, verb: str, now: int) -> None:
        """The next commit says in the audit log who has told it what."""
        about = (self.accepted.workspace, actor, verb, self.id)
        self.rows.append(("insert_audit", (str(uuid_utils.uuid7()), now, *about, None, None, None)))

    def keep_items(self, node: int, items: list[Any]) -> None:
        """The list of a map stays at hand; those of maps that are done do not."""
        nodes = self.execution.nodes
        self.items = {each: kept for each, kept in self.items.items() if nodes[each] is NodeState.RUNNING}
        self.items[node] = items

    def blobs_for(self, work: Work) -> list[Blob]:
        """The large values an attempt needs: those it was given before, or those its expressions look at."""
        if isinstance(work.inputs, Blob):
            return [work.inputs]
        template = self.execution.plan.with_template(work.node)
        found = self.blobs_of(template)
        if isinstance(work.last, Blob) and any(path[0] == "last" for path in template.references):
            found.append(work.last)
        return found

    def blobs_of(self, *templates: Template | Expression | None) -> list[Blob]:
        """The large outputs these expressions look at."""
        x, found = self.execution, dict[str, Blob]()
        for template in templates:
            for path in template.references if template is not None else ():
                if path[0] == "nodes" and path[1] in x.plan.index:
                    found |= {blob.hash: blob for blob in blobs_of(x.outputs.get(x.plan.index[path[1]]))}
        return list(found.values())

    @contextmanager
    def at_hand(self, values: dict[str, Any]) -> Iterator[None]:
        """Lets expressions look at large values, and no longer than they are evaluated."""
        x = self.execution
        kept, x.blobs = x.blobs, {**x.blobs, **values}
        try:
            yield
        finally:
            x.blobs = kept

    def blobs_of_output(self) -> list[Blob]:
        """The large values that the output of the execution is made of."""
        x = self.execution
        if x.plan.output is not None:
            return self.blobs_of(x.plan.output)
        return list({blob.hash: blob for sink in x.plan.sinks for blob in blobs_of(x.outputs.get(sink))}.values())

    async def expect(self, load: Load, signal: object) -> None:
        """Bring into memory what the machine looks at when it is told this: what the filter of a wait names, or what a
        round gave that a condition looks at.
        """
        if isinstance(signal, Succeeded) and signal.blob is not None:
            repeat = self.execution.plan.repeats.get(self.execution.plan.index[signal.node])
            if repeat is not None and any(path[0] == "last" for path in repeat.condition.references):
                self.execution.blobs[signal.blob.hash] = await load(signal.blob)
        if isinstance(signal, Suspended) and isinstance(signal.wait, EventWait) and self.has_large:
            with suppress(ExpressionError):  # the machine says what is wrong with it
                for blob in () if signal.wait.filter is None else self.blobs_of(compile_expression(signal.wait.filter)):
                    self.execution.blobs[blob.hash] = await load(blob)


class Fold:
    """An execution that comes to be from its log, entry by entry: of a long one, never all of them are in memory."""

    def __init__(self, version: Version, accepted: ExecutionAccepted) -> None:
        self._live = Live(version, accepted)

    def add(self, events: list[Event], size: int) -> None:
        """The next entry: its events, and how long it is."""
        live = self._live
        live.execution.apply(events)
        live.ledger.add(events)
        live.ledger.take()
        count(live, size, events)

    @property
    def workspace(self) -> str:
        return self._live.accepted.workspace

    @property
    def has_large(self) -> bool:
        """Whether its log names large values."""
        return bool(self._live.blobs)

    def add_files(self, files: Sequence[Blob]) -> None:
        """The files that its log, or one of its large values, names."""
        count_files(self._live, files)

    def done(self, written: Written) -> Live:
        """The execution as its log leaves it."""
        live = self._live
        live.written = written
        written.seq = live.execution.seq
        live.is_unconfirmed = True
        live.found_running = under_way(live.execution)
        live.has_key = live.written.live[3] if live.written.live else 0
        return live

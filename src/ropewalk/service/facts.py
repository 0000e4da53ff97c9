"""What is known about an execution and around it, read once before anything is explained.

The log is the truth about the execution; the tables say which worker has what. They are read one after the other, so an
execution that moves meanwhile is read again.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.breaker import Breaker
from ropewalk.core.errors import NotFound
from ropewalk.core.events import ItemSucceeded, MapExpanded, NodeFixed
from ropewalk.core.execution import Execution
from ropewalk.core.rate_limit import RateLimit, Slots
from ropewalk.core.rows import NodeRow, RunRow
from ropewalk.core.state import QueueState, Resolution
from ropewalk.core.waits import BreakerWait, RateLimitWait
from ropewalk.engines.base import Custody, Holding
from ropewalk.engines.custody import STORED
from ropewalk.engines.settings import DEFAULT_POOL
from ropewalk.service.reading.nodes import failed_items
from ropewalk.service.reading.recorded import MANY_EVENTS, Recorded, offload, outlined
from ropewalk.service.reasons import FEW, Json
from ropewalk.store import breakers, dlq, executions, explain, live, queue, rate_limits, workspaces
from ropewalk.store.access import Reader
from ropewalk.store.explain import Holder, Place, SharedRun, UnreadSignal
from ropewalk.store.rows import LiveRow
from ropewalk.store.workers import Worker

Alive = Callable[[Worker], bool]
Key = tuple[str, int | None]

MOST_TARGETS: Final = 20
MOST_RUNS: Final = 1000
_TRIES: Final = 3


class Visibility(Struct, frozen=True, kw_only=True):
    """Whether a reason may show payloads, tell of the executions of other workflows, and show payloads of those."""

    payloads: bool = True
    others: bool = True
    payloads_of_others: bool = True


class Around(Struct, frozen=True):
    """Where and when an explanation is made. `takeover` is how long after its last word a dead worker's work is taken
    over at the latest; None on a store of one process, where there is no other worker. `accepts_only`: nor does that
    one execute. `visibility` is what the asker may see, `custody` knows which worker holds what."""

    reader: Reader
    workspace: str
    now: int
    workers: list[Worker]
    alive: Alive
    takeover: int | None
    visibility: Visibility = Visibility()
    accepts_only: bool = False
    custody: Custody = STORED

    @property
    def living(self) -> list[Worker]:
        return [worker for worker in self.workers if self.alive(worker)]

    @property
    def executing(self) -> list[Worker]:
        """The live workers that take executions: no servers that only accept, and no workers of a pool."""
        if self.takeover is None:
            return [] if self.accepts_only else self.living
        return [worker for worker in self.living if worker.slots and worker.pool == DEFAULT_POOL]

    def worker(self, name: str | None) -> Worker | None:
        """What the store knows of a worker."""
        return next((worker for worker in self.workers if worker.id == name), None)


class QueuePosition(Struct, frozen=True):
    """What an execution without a slot stands in line for."""

    entry: queue.QueueEntry | None = None
    place: Place | None = None
    slots: int | None = None
    taken: int = 0
    holders: list[Holder] = []
    key_holder: Holder | None = None


class Facts(Struct, frozen=True):
    """Everything a reason may name. `children` are the reasons of children, as far as they were asked for."""

    around: Around
    row: executions.Execution
    story: Recorded
    x: Execution
    nodes: dict[str, NodeRow]
    runs: dict[Key, RunRow]
    done_items: dict[str, int]
    live: LiveRow | None = None
    line: QueuePosition = QueuePosition()
    dead_letters: list[dlq.DeadLetter] = []
    breakers: dict[str, Breaker] = {}
    rate_limits: dict[str, tuple[RateLimit, Slots]] = {}
    shared: dict[Key, SharedRun] = {}
    unread: list[UnreadSignal] = []
    holding: Holding = Holding()
    children: dict[str, Json] = {}

    failed_items: dict[str, RunRow] = {}
    """Of each map that failed, its first failed item that has something to tell."""

    @property
    def id(self) -> str:
        return self.story.id

    @property
    def now(self) -> int:
        return self.around.now

    @property
    def owner(self) -> str | None:
        return self.holding.worker

    @property
    def is_owner_lost(self) -> bool:
        """Whether a worker that is not alive owns it."""
        if self.owner is None:
            return False
        worker = self.around.worker(self.owner)
        return worker is None or not self.around.alive(worker)


def told_by_log(around: Around, row: executions.Execution, story: Recorded, x: Execution) -> Facts:
    """What the log alone tells; `x` is the log folded."""
    known = story.projected()
    return Facts(
        around=around,
        row=row,
        story=story,
        x=x,
        nodes={each.node: each for each in known.nodes},
        runs={(each.node, each.item): each for each in known.runs},
        done_items=_done_items(story),
        failed_items=failed_items(known.nodes, known.runs),
    )


async def gather(around: Around, execution: str) -> Facts:
    """What there is to know about one execution; NotFound if the workspace has no such."""
    reader = around.reader
    row, story, x = await _agreeing(around, execution)
    held = await live.get(reader, execution)
    told = await offload(lambda: told_by_log(around, row, story, x), is_large=_is_long(story))
    return replace(
        told,
        live=held,
        line=await _line(around, story, x, held),
        dead_letters=await _dead_letters(reader, execution, x),
        breakers=await _breakers(around, x),
        rate_limits=await _rate_limits(around, x),
        shared=await _shared(reader, execution, x),
        unread=await explain.unread_signals(reader, execution, FEW),
        holding=Holding() if held is None else await around.custody.holding(reader, held),
    )


async def _agreeing(around: Around, execution: str) -> tuple[executions.Execution, Recorded, Execution]:
    """The row and the log of an execution, read in the same state if it stands still long enough."""
    row, story, x = await _read(around, execution)
    for _ in range(_TRIES):
        if x.state == row.state:
            break
        row, story, x = await _read(around, execution)
    return row, story, x


async def _read(around: Around, execution: str) -> tuple[executions.Execution, Recorded, Execution]:
    row = await executions.get(around.reader, around.workspace, execution)
    if row is None:
        raise NotFound(f"there is no execution {execution}")
    story = await outlined(around.reader, execution)
    return row, story, await offload(story.folded, is_large=_is_long(story))


def _is_long(story: Recorded) -> bool:
    return len(story.events) > MANY_EVENTS


async def _line(around: Around, story: Recorded, x: Execution, held: LiveRow | None) -> QueuePosition:
    entry = await queue.get(around.reader, story.id)
    if not x.needs_slot:
        return QueuePosition(entry)
    reader, workspace = around.reader, around.workspace
    known = await workspaces.get(reader, workspace)
    return QueuePosition(
        entry,
        await explain.place(reader, entry) if entry is not None and entry.state == QueueState.PENDING else None,
        None if known is None else known.slots,
        await queue.slots_taken(reader, workspace),
        await explain.slot_holders(reader, workspace, FEW),
        await _key_holder(around, story, held),
    )


async def _key_holder(around: Around, story: Recorded, held: LiveRow | None) -> Holder | None:
    """The execution that holds this one's concurrency key; an ancestor does not count."""
    accepted = story.accepted
    if accepted.concurrency_key is None or (held is not None and held.has_key):
        return None
    holders = await explain.key_holders(around.reader, around.workspace, accepted.concurrency_key)
    ancestors = accepted.parent.ancestors if accepted.parent else ()
    return next((holder for holder in holders if holder.execution not in (story.id, *ancestors)), None)


async def _dead_letters(reader: Reader, execution: str, x: Execution) -> list[dlq.DeadLetter]:
    """The unresolved dead letters."""
    if not x.errors and not any(map_.errors for map_ in x.maps.values()):
        return []
    found = await dlq.of_execution(reader, execution)
    return [letter for letter in found if letter.resolution == Resolution.PENDING]


async def _breakers(around: Around, x: Execution) -> dict[str, Breaker]:
    """The health of the targets its nodes are kept from."""
    targets = {work.wait.target: None for work in x.waiting.values() if isinstance(work.wait, BreakerWait)}
    return {
        target: await breakers.get(around.reader, around.workspace, target) for target in list(targets)[:MOST_TARGETS]
    }


async def _rate_limits(around: Around, x: Execution) -> dict[str, tuple[RateLimit, Slots]]:
    """The rate limits its nodes wait for, and the slots that were handed out for them."""
    names = {work.wait.limit: None for work in x.waiting.values() if isinstance(work.wait, RateLimitWait)}
    found = {name: await rate_limits.get(around.reader, around.workspace, name) for name in list(names)[:MOST_TARGETS]}
    return {name: each for name, each in found.items() if each is not None}


async def _shared(reader: Reader, execution: str, x: Execution) -> dict[Key, SharedRun]:
    """The attempts that the execution's owner does not carry out itself, as of their last."""
    if x.is_ended or not x.running:
        return {}
    found = await explain.shared_runs(reader, execution, MOST_RUNS)
    works = ((run, x.work(run.node, run.item)) for run in found)
    return {(run.node, run.item): run for run, work in works if work is not None and work.attempt == run.attempt}


def _done_items(story: Recorded) -> dict[str, int]:
    """How many items of each map have their result."""
    done: dict[str, int] = {}
    for event in story.events:
        match event:
            case MapExpanded():
                done[event.node] = 0
            case ItemSucceeded():
                done[event.node] += 1
            case NodeFixed() if event.item is not None:
                done[event.node] += 1
            case _:
                continue
    return done

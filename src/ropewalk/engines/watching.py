"""Those who wait for an execution's end, or follow its events."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from ropewalk.core import log
from ropewalk.core.errors import NotFound, RopewalkError, Unavailable, Unreadable, reading_of
from ropewalk.core.events import Event, ExecutionCancelled, ExecutionSucceeded
from ropewalk.core.execution.mending import has_tolerated
from ropewalk.core.kinship import ENDS
from ropewalk.engines.base import Appended, Ended, Watcher
from ropewalk.engines.ends import End, ending, known_end, recorded
from ropewalk.engines.interests import FOLLOW, MOVED, Interests, of_workspace
from ropewalk.store import log as stored_log
from ropewalk.store.access import Store

FINAL = (ExecutionSucceeded, ExecutionCancelled)
"""The ends after which an execution is reopened at most for failures that its maps tolerated."""
Item = tuple[int, Event] | Unavailable | None
EVERY = 0.1
"""How often the logs of those followed are looked at, without a hint (s)."""
AT_LEAST = 1.0
"""The same, where only ends are waited for: the owner hints at each (s)."""
UNKNOWN = 15.0
"""For so long (s) an owner may not know yet that there is a worker here to hint to."""
ANNOUNCED = 5.0
"""How often others are told what is followed here (s)."""

_log = logging.getLogger("ropewalk.engine")


class Watching:
    """Tells listeners what became durable, and nothing earlier."""

    def __init__(self, store: Store, is_under_way: Callable[[str], bool]) -> None:
        self._reader = store
        self._is_under_way = is_under_way
        self._waiting: dict[str, list[asyncio.Future[Ended]]] = {}
        self._queues: dict[str, list[asyncio.Queue[Item]]] = {}
        self._expected: WeakValueDictionary[str, End] = WeakValueDictionary()
        # How far the log of each was read here: entries before are known.
        self._seen: dict[str, int] = {}
        # By execution, or by workspace: see `of_workspace`.
        self._watchers: dict[str, list[Watcher]] = {}
        self._interests = Interests(store)
        self._announced_at = 0.0
        self._wake = asyncio.Event()
        # Those whose owner says that they have ended, and whether any other log may have grown.
        self._ended: dict[str, None] = {}
        self._is_moved = False
        self._opened_at = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def has_listeners(self) -> bool:
        """Whether anyone wants to hear more than how an execution ended."""
        return bool(self._queues or self._watchers or self._interests)

    def publish(self, appended: Appended) -> None:
        execution, events = appended.id, appended.events
        if not events:
            return
        is_followed = execution in self._queues
        if is_followed:
            for numbered in enumerate(events, appended.first_seq):
                self._put(execution, numbered)
        if self._watchers or self._interests:
            self._tell_watchers(appended)
        if appended.is_ended:
            if is_followed:
                self._put(execution, None)
            if self._expected and type(events[-1]) in FINAL and not has_tolerated(appended.execution):
                self._note_end(execution, events[-1])
            self._tell_end(execution, events[-1])

    def _tell_watchers(self, appended: Appended) -> None:
        execution, workspace = appended.id, appended.accepted.workspace
        for watcher in self._watching(execution, of_workspace(workspace)):
            watcher.told(appended)
        if self._interests:
            self._interests.tell(execution, workspace)

    def _watching(self, *topics: str) -> list[Watcher]:
        return [watcher for topic in topics for watcher in self._watchers.get(topic, ())]

    def expect(self, execution: str) -> End:
        """Where the end of an execution is noted, for as long as the caller keeps this; call it before the start."""
        end = self._expected[execution] = End()
        return end

    def _note_end(self, execution: str, last: Event) -> None:
        if (end := self._expected.get(execution)) is not None:
            end.ended = ending(execution, last)

    def _tell_end(self, execution: str, last: Event) -> None:
        for waiting in self._waiting.pop(execution, ()):
            if not waiting.done():
                waiting.set_result(ending(execution, last))

    def _tell_gone(self, execution: str) -> None:
        """A caller that could not look for so long has missed the end."""
        for waiting in self._waiting.pop(execution, ()):
            if not waiting.done():
                waiting.set_exception(NotFound(f"there is no execution {execution} any more: it ended, and grew old"))
        self._put(execution, None)

    def _put(self, execution: str, item: Item) -> None:
        for queue in self._queues.get(execution, ()):
            queue.put_nowait(item)

    # Watchers

    def watch(self, topic: str, watcher: Watcher) -> None:
        """From now on the watcher hears of this execution or workspace, wherever it is executed."""
        self._watchers.setdefault(topic, []).append(watcher)
        self._interests.announce([topic])

    def unwatch(self, topic: str, watcher: Watcher) -> None:
        """The watcher has heard enough."""
        watching = self._watchers[topic]
        watching.remove(watcher)
        if not watching:
            del self._watchers[topic]

    def begin_anew(self) -> None:
        """The database went back in time: followers have heard of events that are not recorded any more."""
        self._seen.clear()
        for end in list(self._expected.values()):
            end.ended = None
        for execution in list(self._queues):
            self._put(execution, Unavailable("the database went back in time: follow the execution from its beginning"))
        for watcher in self._watching(*self._watchers):
            watcher.begin_anew()

    # On a shared store, what others write

    def open(self) -> None:
        """Look at what others write about those who are followed here."""
        self._opened_at = asyncio.get_running_loop().time()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def hinted(self, topics: list[str]) -> None:
        """There may be something new about these, or (`*`) about anyone."""
        for topic in topics:
            if topic.startswith(FOLLOW):
                self._interests.heard(topic)
            elif topic.startswith(MOVED) and self._watchers:
                self._moved(topic.removeprefix(MOVED))
            elif topic == "*":
                self._may_have_moved()
        if self._waiting:
            self._ended |= dict.fromkeys(topic for topic in topics if topic in self._waiting)
        self._is_moved |= "*" in topics or not self._queues.keys().isdisjoint(topics)
        if self._ended or self._is_moved:
            self._wake.set()

    def _moved(self, hint: str) -> None:
        execution, _, workspace = hint.partition(" ")
        for watcher in self._watching(workspace or execution):
            watcher.moved(execution, None)

    def _may_have_moved(self) -> None:
        for watcher in self._watching(*self._watchers):
            watcher.moved(None, None)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        looked_at = 0.0
        while True:
            self._announce()
            timer = loop.call_at(looked_at + self._pace(), self._wake.set)
            await self._wake.wait()
            self._wake.clear()
            timer.cancel()
            is_due, self._is_moved = self._is_moved or loop.time() >= looked_at + self._pace(), False
            try:
                if self._ended:
                    ended, self._ended = self._ended, {}
                    await self._read_ends(ended)
                if is_due:
                    looked_at = loop.time()
                    await self._look()
            except RopewalkError as error:
                _log.warning("what others write cannot be read for now: %s", error)
            except Exception:  # noqa: BLE001 -- a fault of ours must not leave everyone without news
                _log.exception("reading what others write failed; it is tried again")

    def _pace(self) -> float:
        is_new = asyncio.get_running_loop().time() < self._opened_at + UNKNOWN
        return EVERY if self._queues or self._watchers or is_new else max(EVERY, AT_LEAST)

    async def _read_ends(self, executions: Iterable[str]) -> None:
        """Tell how these have ended, if they have; one question for all."""
        for execution, entry in await stored_log.last_entries(self._reader, executions):
            try:
                with reading_of(execution):
                    last = log.decode(entry)[1][-1]
            except Unreadable as error:
                _log.error("its end cannot be told: %s", error)
                continue
            if type(last) in ENDS:
                self._seen.pop(execution, None)
                self._tell_end(execution, last)

    def _announce(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._watchers and now - self._announced_at >= ANNOUNCED:
            self._announced_at = now
            self._interests.announce(self._watchers)

    async def _look(self) -> None:
        """Read on where something was added; one question for all."""
        followed = {**self._waiting, **self._queues, **self._watchers}
        elsewhere = [each for each in followed if not (each.startswith("@") or self._is_under_way(each))]
        if not elsewhere:
            return
        heads = await stored_log.heads(self._reader, elsewhere)
        for execution in elsewhere:
            if execution not in heads:
                self._tell_gone(execution)
        moved: dict[str, int] = {}
        for execution, head in heads.items():
            for watcher in self._watching(execution):
                watcher.moved(execution, head)
            if head <= self._seen.get(execution, 0):
                continue
            if execution in self._queues:
                await self._read_on_by_itself(execution, head)
            elif execution in self._waiting:
                moved[execution] = head
        if moved:
            # Those who wait want to hear of nothing but the end.
            await self._read_ends(moved)
            self._seen |= {execution: head for execution, head in moved.items() if execution in self._waiting}

    async def _read_on_by_itself(self, execution: str, head: int) -> None:
        """What cannot be read is left until there is more of it, and keeps no other caller waiting."""
        try:
            await self._read_on(execution)
        except Unreadable as error:
            _log.error("what is new cannot be told: %s", error)
            self._seen[execution] = head

    async def ended(self, execution: str) -> Ended:
        """How the execution ended; waits for it if it has not."""
        with self.awaiting(execution) as waiting:
            if not self._is_under_way(execution) and (known := await known_end(self._reader, execution)) is not None:
                return known
            return await waiting

    @contextmanager
    def awaiting(self, execution: str) -> Iterator[asyncio.Future[Ended]]:
        """Inside, the end of the execution is told if it comes. To be entered before a look at whether it has come:
        an end that is appended meanwhile is not missed."""
        waiting: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(execution, []).append(waiting)
        try:
            yield waiting
        finally:
            self._forget(execution, waiting)

    def _forget(self, execution: str, waiting: asyncio.Future[Ended]) -> None:
        """A caller that waits no more leaves nothing behind."""
        others = self._waiting.get(execution)
        if others is not None and waiting in others:
            others.remove(waiting)
            if not others:
                del self._waiting[execution]
                self._seen.pop(execution, None)

    async def catch_up(self, execution: str) -> None:
        """Tell what is in the log and may not have been told, since the answer to its commit was lost."""
        for watcher in self._watching(execution, *(topic for topic in self._watchers if topic.startswith("@"))):
            watcher.moved(execution, None)
        await self._read_on(execution)

    async def _read_on(self, execution: str) -> None:
        if execution not in self._queues and execution not in self._waiting:
            return
        last = None
        for seq, last in await recorded(self._reader, execution, self._seen.get(execution, 1)):
            self._put(execution, (seq, last))
            self._seen[execution] = seq
        if last is not None and type(last) in ENDS:
            self._seen.pop(execution, None)
            self._put(execution, None)
            self._tell_end(execution, last)

    async def follow(self, execution: str, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        """Every event after the given number, in order, until the end."""
        queue: asyncio.Queue[Item] = asyncio.Queue()
        self._queues.setdefault(execution, []).append(queue)
        try:
            seen, last = after, None
            for seq, last in await recorded(self._reader, execution):
                if seq > after:
                    seen = seq
                    yield seq, last
            # An end in the middle of the log was followed by a reopening; only the last event tells.
            if type(last) in ENDS and queue.empty():
                return
            while (item := await queue.get()) is not None:
                if isinstance(item, Unavailable):
                    raise item
                for seq, event in await self._missing(execution, seen, item):
                    seen = seq
                    yield seq, event
        finally:
            self._queues[execution].remove(queue)
            if not self._queues[execution]:
                del self._queues[execution]

    async def _missing(self, execution: str, seen: int, item: tuple[int, Event]) -> list[tuple[int, Event]]:
        """What follows the number seen, up to this item or further; an earlier owner may have written some of it."""
        if item[0] <= seen + 1:
            return [item] if item[0] == seen + 1 else []
        return [numbered for numbered in await recorded(self._reader, execution, seen + 1) if numbered[0] > seen]

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        for waiting in [each for waiters in self._waiting.values() for each in waiters if not each.done()]:
            waiting.set_exception(Unavailable("the engine was closed before the execution ended; it goes on later"))
            waiting.exception()
        for execution in list(self._queues):
            self._put(execution, None)

"""The attempts this worker carries out: as many at once as it has hands, each within its time limit.

Attempts stand in line, and a hand is a task that takes one after another: most nodes end without ever waiting for
anything, and cost no task of their own. Before a hand begins with one, it sees to it that another hand comes for the
rest of the line, so a node that waits keeps no other waiting.

One look at the clock serves all time limits: the loop's timer is set for the earliest, and what is overdue then is
reported at once, whether or not its code can be stopped.

Hands work in slices: after some milliseconds everything else on the loop has its turn. Expressions that take long are
evaluated beside the loop (`evaluating.py`), and so are all of an execution that has evaluated much in this second.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from typing import Any

import msgspec

from ropewalk.core.canonical import kind_of
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, RunError, Unfinished
from ropewalk.core.events import Blob
from ropewalk.core.execution.view import Later, TooMuch, inputs_briefly, inputs_later
from ropewalk.core.execution.work import Work
from ropewalk.core.expression import ExpressionError
from ropewalk.core.plan import DEFAULT_ATTEMPT_TIMEOUT
from ropewalk.core.signals import Expanded, Failed, Signal, Succeeded, Suspended
from ropewalk.engines.native.evaluating import Evaluating
from ropewalk.engines.native.large import LargeValues
from ropewalk.engines.native.live import Live, Load, Running
from ropewalk.engines.native.stored import full
from ropewalk.engines.native.timers import LATEST
from ropewalk.engines.run import Desk
from ropewalk.engines.runner import STOPPED, Outcome, overdue, run_node, with_inputs_at
from ropewalk.nodes.failure import NodeFailure

MOST_RESTING = 100
LOOK_EVERY = 8
LONGEST_TURN = SECOND // 100
"""After so many nodes a hand looks at the clock; if it is longer ago that it first did, the slice is over."""
NEVER = 2**62
Report = Callable[[Live, Signal], None]


class Hands:
    """Runs attempts and reports how they ended."""

    def __init__(
        self, desk: Desk, count: int, now: Callable[[], int], load: Load, report: Report, evaluating: Evaluating
    ) -> None:
        self._desk = msgspec.structs.replace(desk, beside=self._beside)
        self._evaluating = evaluating
        self.large = LargeValues(load, desk, evaluating)
        self._load = load
        self._count = count
        self._now = now
        self._report = report
        self._running: dict[Running, bool] = {}
        self._line: deque[Running] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._resting: list[asyncio.Future[None]] = []
        # Whether a hand was called that has not looked at the line yet.
        self._is_one_coming = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_for = NEVER
        self._idle = asyncio.Event()
        self._idle.set()
        # How many were decided, and wait for their commit.
        self.promised = 0
        # How many others would take besides.
        self.helped = 0
        self.is_closing = False

    @property
    def free(self) -> int:
        """How many more attempts may start here, those counted that were promised a hand."""
        return self._count - len(self._running) - self.promised

    @property
    def room(self) -> int:
        """How many more may be decided to start, here or elsewhere."""
        room = self._count + self.helped - len(self._running) - self.promised
        return room if room > 0 and not self.is_closing else 0

    @property
    def has_room(self) -> bool:
        """Whether one more attempt could start at once."""
        return len(self._running) < self._count

    @property
    def busy(self) -> int:
        return len(self._running)

    async def idle(self) -> None:
        """Wait until no attempt is under way."""
        await self._idle.wait()

    def start(self, live: Live, work: Work, now: int) -> None:
        """Carry out an attempt whose start is durable."""
        plan, node, item = live.execution.plan, work.node, work.item
        name, deadline = plan.ids[node], now + (plan.timeouts[node] or DEFAULT_ATTEMPT_TIMEOUT)
        running = Running(
            live.id, live.accepted.workspace, name, plan.types[node], work.attempt, item, None, now, deadline,
            work.held_since, plan.cache_ttl[node], plan.rate_limits[node], None, False, live, work,
        )  # fmt: skip
        live.running[name, item] = running
        if not self._running:
            self._idle.clear()
        self._running[running] = True
        if deadline < self._timer_for:
            self._set_timer(deadline)
        self._line.append(running)
        if not self._is_one_coming:
            self._call_one()

    # Hands

    def _call_one(self) -> None:
        """One more hand is to look at the line."""
        self._is_one_coming = True
        while self._resting:
            called = self._resting.pop()
            if not called.done():
                called.set_result(None)
                return
        task = asyncio.get_running_loop().create_task(self._serve())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self) -> None:
        """A hand: takes what is next in line, and rests when there is nothing."""
        task, untouched = asyncio.current_task(), copy_context()
        assert task is not None
        while await self._work_off(task, untouched) and len(self._resting) < MOST_RESTING:
            called = asyncio.get_running_loop().create_future()
            self._resting.append(called)
            await called

    async def _work_off(self, task: asyncio.Task[None], untouched: Context) -> bool:
        """Carry out what is in line; whether the task is as good as new afterwards."""
        self._is_one_coming = False
        line = self._line
        left, began = LOOK_EVERY, 0
        signal: Signal
        while line:
            if not left:
                left, now = LOOK_EVERY, self._now()
                began = began or now
                if now - began > LONGEST_TURN:
                    if not self._is_one_coming:
                        self._call_one()
                    return True  # another goes on with it in the next turn
            left -= 1
            running = line.popleft()
            if running not in self._running:
                continue  # it was called off
            if line and not self._is_one_coming:
                self._call_one()
            running.task = task
            try:
                live = running.live
                if not live.is_plain:
                    left = 0  # it may have taken a while: the clock is looked at before the next
                    signal = await self._look_around(running)
                else:
                    work, plan = running.work, live.execution.plan
                    try:
                        running.inputs = inputs_briefly(live.execution, work)
                        running.is_little = plan.with_template(work.node).is_little
                    except Unfinished:
                        running.inputs = await self._evaluate(running, inputs_later(live.execution, work))
                    signal = await run_node(running, self._desk)
                if running.inputs_at is not None and isinstance(signal, Outcome):
                    signal = with_inputs_at(signal, running.inputs_at)
                if type(signal) is Suspended or (type(signal) is Succeeded and signal.blob is not None):
                    await live.expect(self._load, signal)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 -- it ends one way or another
                signal = _failed(running, _why(error))
            self._end(running, signal)
            # What a node sets for itself, or a cancellation that has not come through yet, is not for the next one.
            if task.cancelling() or copy_context() != untouched:
                return False
        return True

    async def _look_around(self, running: Running) -> Signal:
        """Carry out what may be a map or an item of one, and may have large results among its inputs."""
        live, work, item = running.live, running.work, running.item
        if live.stored >= self._desk.most_stored:
            return _failed(running, full(self._desk.most_stored))
        if item is None and live.execution.plan.for_each[work.node] is not None:
            return await self._expand(running, work)
        if live.has_large:
            running.inputs_at = work.inputs if isinstance(work.inputs, Blob) else None
            async with self.large.inputs(live, work, partial(self._evaluate, running)) as running.inputs:
                return await run_node(running, self._desk)
        of = None if item is None else (await self.large.items(live, work.node))[item]
        try:
            running.inputs = inputs_briefly(live.execution, work, of)
        except Unfinished:
            running.inputs = await self._evaluate(running, inputs_later(live.execution, work, of))
        return await run_node(running, self._desk)

    async def _evaluate(self, running: Running, later: Later) -> Any:
        """Inputs that take long, or of an execution that has evaluated much; the attempt's time begins afterwards."""
        running.deadline, live, now = NEVER, running.live, self._now()
        if now >= live.steps_until:
            live.execution.steps, live.steps_until = 0, now + SECOND
        inputs = await self._evaluating.beside(live, later)
        self._limit_to(running, _limit(running))
        return inputs

    async def _beside(self, running: Running, work: Callable[[], Any]) -> Any:
        """What goes through a large value of an attempt; the time of its node does not pass meanwhile."""
        left, running.deadline = running.deadline - self._now(), NEVER
        try:
            return await self._evaluating.of_run(running, work)
        finally:
            self._limit_to(running, left)

    def _limit_to(self, running: Running, left: int) -> None:
        running.deadline = self._now() + left
        if running.deadline < self._timer_for:
            self._set_timer(running.deadline)

    async def _expand(self, running: Running, work: Work) -> Signal:
        """Evaluate a map's list; it stays at hand for its items."""
        live = running.live
        try:
            items = await self.large.items(live, work.node)
        except (ExpressionError, TooMuch) as error:
            return _failed(running, RunError(ErrorType.PERMANENT, f"forEach: {error}"))
        if not isinstance(items, list):
            return _failed(running, RunError(ErrorType.PERMANENT, f"forEach gives no list but {kind_of(items)}"))
        return Expanded(running.node, running.attempt, len(items))

    def _end(self, running: Running, signal: Signal) -> None:
        """Report an end, unless it was reported already."""
        if not self._running.pop(running, False):
            return
        live, key = running.live, (running.node, running.item)
        if live.running.get(key) is running:
            del live.running[key]
        if not self._running:
            self._idle.set()
        self._report(live, signal)

    # Stopping

    def stop(self, live: Live, node: str, attempt: int, item: int | None) -> None:
        """Tell an attempt to stop; what it reports still counts."""
        running = live.running.get((node, item))
        if running is None or running.attempt != attempt:
            return
        if running.task is not None:
            running.task.cancel()
        else:
            self._end(running, _failed(running, STOPPED))  # still in line: no hand begins with it any more

    def drop(self, live: Live) -> None:
        """Stop everything of an execution that is not ours any more; nothing of it is reported."""
        for running in list(live.running.values()):
            self._running.pop(running, None)
            if running.task is not None:
                running.task.cancel()
        live.running.clear()
        if not self._running:
            self._idle.set()

    async def drain(self, seconds: float) -> list[Running]:
        """Wait for what is under way; what does not end in time is stopped and returned unfinished."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        left = list(self._running)
        for running in left:
            self.drop(running.live)
        return left

    # Time limits

    def _set_timer(self, deadline: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_for = deadline
        delay = min(LATEST, max(0.001, (deadline - self._now()) / 1_000_000))
        self._timer = asyncio.get_running_loop().call_later(delay, self._look)

    def _look(self) -> None:
        self._timer, self._timer_for = None, NEVER
        now = self._now()
        for running in [each for each in self._running if each.deadline <= now]:
            self._overdue(running)
        if self._running:
            self._set_timer(min(running.deadline for running in self._running))

    def _overdue(self, running: Running) -> None:
        if running.task is not None:
            running.task.cancel()
        self._end(running, _failed(running, overdue(_limit(running))))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for called in self._resting:
            called.cancel()


def _limit(running: Running) -> int:
    """How long the attempt may take (µs)."""
    return running.live.execution.plan.timeouts[running.work.node] or DEFAULT_ATTEMPT_TIMEOUT


def _failed(running: Running, error: RunError) -> Failed:
    return Failed(running.node, running.attempt, error, running.item)


def _why(error: BaseException) -> RunError:
    """What kept an attempt from ending by itself."""
    if isinstance(error, asyncio.CancelledError):
        return STOPPED
    if isinstance(error, NodeFailure):
        return error.error
    if isinstance(error, ExpressionError | TooMuch):
        return RunError(ErrorType.PERMANENT, f"with: {error}")
    return RunError(ErrorType.TRANSIENT, f"{type(error).__name__}: {error}")

"""An event loop in virtual time: when nothing is ready, the clock jumps to the next timer."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar, TypeVarTuple, Unpack

MOST_TURNS = 300_000

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class Livelock(Exception):
    """The loop goes round and round, or nothing will ever happen again."""


class Actor:
    """Someone whose tasks and timers are known, and can all be held up as if its process were stopped."""

    def __init__(self) -> None:
        self.is_paused = False
        self.held: list[asyncio.Handle] = []
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.context = copy_context()
        self.context.run(_actor.set, self)

    def begin(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """A task of this actor; whatever comes of it is the actor's too."""
        return asyncio.get_running_loop().create_task(work, context=self.context.copy())

    def pause(self) -> None:
        """Nothing of it runs from now on."""
        self.is_paused = True

    def resume(self) -> None:
        """What would have run meanwhile runs now, in order."""
        self.is_paused = False
        held, self.held = self.held, []
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "actors live in virtual time"
        loop.run_soon(held)

    async def end(self) -> None:
        """Stop every task, whatever it does about it."""
        self.resume()
        mine = asyncio.current_task()
        while left := [task for task in self.tasks if task is not mine]:
            for task in left:
                task.cancel()
            await asyncio.sleep(0)


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)


class _Ready(deque[asyncio.Handle]):
    """What is to run next; what belongs to a paused actor is put aside instead."""

    def __init__(self, nothing: asyncio.Handle) -> None:
        super().__init__()
        self._nothing = nothing

    def popleft(self) -> asyncio.Handle:
        handle = super().popleft()
        actor = handle._context.get(_actor)  # type: ignore[attr-defined]  # the loop's own: it runs handles in theirs
        if actor is None or not actor.is_paused:
            return handle
        actor.held.append(handle)
        return self._nothing


class VirtualLoop(asyncio.BaseEventLoop):
    """Waits for nothing but its own timers: no threads, no sockets, no time that passes by itself."""

    def __init__(self, most_turns: int = MOST_TURNS) -> None:
        super().__init__()
        self._moment = 0.0
        self.most_turns = self.turns_left = most_turns
        # The base loop asks its selector to wait; here that is the loop itself.
        self._selector = self
        nothing = asyncio.Handle(print, (), self)
        nothing.cancel()
        self._ready: deque[asyncio.Handle] = _Ready(nothing)

    def time(self) -> float:
        return self._moment

    def select(self, timeout: float | None) -> list[Any]:
        """Nothing comes from outside: let the time pass until the next timer."""
        self.turns_left -= 1
        if timeout is None or self.turns_left < 0:
            raise Livelock("nothing is on the agenda" if timeout is None else f"no end after {self.most_turns} turns")
        self._moment += timeout
        return []

    def create_task(
        self,
        coro: Generator[Any, None, Result] | Coroutine[Any, Any, Result],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[Result]:
        """The task is known to the actor it belongs to."""
        task = super().create_task(coro, name=name, context=context)
        actor = _actor.get() if context is None else context.get(_actor)
        if actor is not None:
            actor.tasks[task] = None
            task.add_done_callback(lambda done: actor.tasks.pop(done, None), context=Context())
        return task

    def run_soon(self, handles: list[asyncio.Handle]) -> None:
        """These were held up and go on."""
        self._ready.extend(handles)

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Arguments]], Result], *args: *Arguments
    ) -> asyncio.Future[Result]:
        """What would be done by a thread is done here and now."""
        done: asyncio.Future[Result] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

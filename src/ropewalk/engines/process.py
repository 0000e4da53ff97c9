"""What a process that does nothing but execute sets for itself before it opens its store, and how it ends."""

import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, TypeVar

from ropewalk.store.loops import tell_in_a_line

# An execution is some hundred objects that live until it ends and hardly ever form a cycle. With Python's own
# thresholds the collector walks all of them again and again while they live: a fifth of the time of 1,000 at once.
# It begins when more is alive than 2,000 of them bring along; at a third of that it still took a tenth of the time.
# What has survived is looked at again the next time, and so in small numbers: every twentieth time, one look at the
# millions of objects of a large plan held the interpreter for a second.
_THRESHOLDS: Final = (150_000, 0, 1_500)
# The thread that writes a file needs the interpreter twice for each commit, and a busy loop lets go of it when so much
# time is over (s). With Python's own 5 ms, commits that take 10 were kept waiting for as long again.
_TURN: Final = 0.0005
_PATIENCE: Final = 1.0
Answer = TypeVar("Answer")


def settle_in() -> None:
    """Let the collector look less often, and never again at what the imports have left behind; let threads take turns.

    For the process of a worker, which is ours; see `while_executing` for one that only uses the library.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    sys.setswitchinterval(_TURN)


_PYTHONS_OWN: Final = ((700, 10, 10), (2000, 10, 10), (2000, 10, 0))
"""The thresholds of the collector in a process that has not set any."""
_PYTHONS_TURN: Final = 0.005


@contextmanager
def while_executing() -> Iterator[None]:
    """The same thresholds and turns in a program that uses the library, while it has an engine.

    A program that has set its own keeps them, and everything is as it was when the first engine was opened once that
    one is closed.
    """
    thresholds, turn = gc.get_threshold(), sys.getswitchinterval()
    if is_eased := thresholds in _PYTHONS_OWN:
        gc.set_threshold(*_THRESHOLDS)
    if is_quick := abs(turn - _PYTHONS_TURN) < _TURN / 10:
        sys.setswitchinterval(_TURN)
    try:
        yield
    finally:
        if is_eased and gc.get_threshold() == _THRESHOLDS:
            gc.set_threshold(*thresholds)
        if is_quick and abs(sys.getswitchinterval() - _TURN) < _TURN / 10:
            sys.setswitchinterval(turn)


# A collection looks at all that was made since the last one and is still there, and holds the interpreter meanwhile:
# for 90 ms at 150,000 objects, for 8 ms at so many. Each object is looked at as often either way.
_FEW: Final = 20_000


class _Easing:
    """How many need short collections now; the thresholds are as they were when the last of these is done."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self._before: tuple[int, int, int] | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._count += 1
            before = gc.get_threshold()
            if self._count == 1 and before[0] > _FEW:
                self._before = before
                gc.set_threshold(_FEW, *before[1:])

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._count -= 1
            before = self._before
            if self._count > 0 or before is None:
                return
            self._before = None
            if gc.get_threshold() == (_FEW, *before[1:]):  # others that were set meanwhile stay
                gc.set_threshold(*before)


_easing: Final = _Easing()


def in_short_pauses(work: Callable[[], Answer]) -> Answer:
    """What the work gives, which makes very many objects in a thread: the loop waits for no long collection of them."""
    with _easing:
        return work()


async def and_no_longer(work: Coroutine[Any, Any, Answer]) -> Answer:
    """The work of a whole loop: other tasks that are left when that is done do not keep the process from ending.

    A loop that closes waits for every task it has cancelled: for ever, if a node does not stop when it is told to. What
    fails on it without a task that waits is told in the log, in a line.
    """
    asyncio.get_running_loop().set_exception_handler(tell_in_a_line)
    try:
        return await work
    finally:
        await _let_go_of_the_rest()


async def _let_go_of_the_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    _, deaf = await asyncio.wait(rest, timeout=_PATIENCE) if rest else (rest, rest)
    if deaf:
        # What became of them is recorded, or handed back; that they never ended is worth no line.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    for task in deaf:
        asyncio._unregister_task(task)  # the loop's own way to know of no such task

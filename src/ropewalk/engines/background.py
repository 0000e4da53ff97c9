"""What an engine does beside everything else: the tasks of one process, until it leaves."""

import asyncio
import logging
from collections.abc import Coroutine

_log = logging.getLogger("ropewalk.engine")


class Background:
    """Tasks that no caller waits for."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        # Whether the engine is about to leave: nothing new begins.
        self.is_closing = False

    def spawn(self, coroutine: Coroutine[None, None, None]) -> None:
        """Have it done beside everything else; that it failed is told, what then is for the work itself to know."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being done."""
        return not self._tasks

    async def idle(self) -> None:
        """Wait until what is being done now is."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed", task.get_coro().__qualname__, exc_info=error)  # type: ignore[union-attr]  # of ours

    async def close(self) -> None:
        """Stop everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

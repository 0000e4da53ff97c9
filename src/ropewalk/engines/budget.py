"""A bound on what is in memory at once: a caller that does not fit waits for those before it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Budget:
    """So many bytes at once, first come first served; one that is larger than the whole budget has it alone."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.taken = 0

    @asynccontextmanager
    async def room_for(self, size: int) -> AsyncIterator[None]:
        """So many bytes are the caller's until the end."""
        if not size:
            yield
            return
        await self._take(size)
        try:
            yield
        finally:
            self.give_back(size)

    def fits(self, size: int) -> bool:
        """Whether there is room for so many more bytes now."""
        return not self.taken or self.taken + size <= self._limit

    async def _take(self, size: int) -> None:
        if not self._line and self.fits(size):
            self.taken += size
            return
        turn = asyncio.get_running_loop().create_future()
        self._line.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(size)
            else:
                self._line.remove((size, turn))
                self._call_next()
            raise

    def give_back(self, size: int) -> None:
        """So many bytes are free again."""
        self.taken -= size
        self._call_next()

    def _call_next(self) -> None:
        while self._line and self.fits(self._line[0][0]):
            size, turn = self._line.popleft()
            if not turn.done():
                self.taken += size
                turn.set_result(None)

"""Admission of many starts at once, by halves: one half is read while the commit of the other is written.

What is read in one turn of the loop is written by one commit. If all requests were read at once, all would wait for one
commit, and the server would have nothing to do meanwhile.
"""

import asyncio
from collections import deque
from typing import Final

FEW: Final = 8
"""So many requests are read at once, however many wait: a commit of fewer is not worth its cost."""


class Admission:
    """Counts the requests, and admits half of them at a time; the other half after the next turn of the loop."""

    def __init__(self) -> None:
        self._there = 0
        self._gone = 0
        self._line: deque[asyncio.Future[None]] = deque()

    def __enter__(self) -> None:
        """A request is counted until it leaves the block."""
        self._there += 1

    def __exit__(self, *_: object) -> None:
        self._there -= 1

    async def wait(self) -> None:
        """Returns when the request is admitted: mostly at once, and in the order of arrival."""
        if not self._gone:
            asyncio.get_running_loop().call_soon(self._pause)
        if self._has_room and not self._line:
            self._gone += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        await turn

    @property
    def _has_room(self) -> bool:
        return self._gone < max(FEW, self._there // 2)

    def _pause(self) -> None:
        # One turn more: a commit begins in the turn after the one that it is asked for.
        asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        """Admit the next half; a request that was cancelled while it waited does not count."""
        self._gone = 0
        while self._line and self._has_room:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                self._gone += 1
        if self._gone:
            asyncio.get_running_loop().call_soon(self._pause)

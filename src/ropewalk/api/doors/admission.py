"""A crowd in two halves: one is read while the commit of the other is on its way to the disk.

What is read in one turn of the loop is written by one commit. A crowd that is read at once waits for its commit
together, and the server has nothing to do meanwhile.
"""

import asyncio
from collections import deque
from typing import Final

FEW: Final = 8
"""So many are read at once whoever else there is: with less in it, a commit is not worth its while."""


class Admission:
    """Knows who is there, and lets half of them go on at a time; the others when the loop has been round."""

    def __init__(self) -> None:
        self._there = 0
        self._gone = 0
        self._line: deque[asyncio.Future[None]] = deque()

    def __enter__(self) -> None:
        """Somebody is there until the end."""
        self._there += 1

    def __exit__(self, *_: object) -> None:
        self._there -= 1

    async def wait(self) -> None:
        """Returns when it is the caller's turn: mostly at once, and in the order they came."""
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
        """The next half; one who has left meanwhile takes nobody's place."""
        self._gone = 0
        while self._line and self._has_room:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)
                self._gone += 1
        if self._gone:
            asyncio.get_running_loop().call_soon(self._pause)

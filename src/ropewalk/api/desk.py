"""The desk where documents are looked at: four megabytes of one are half a minute that everybody else could use.

One small and one large document are looked at at a time: large ones keep no small one waiting, and the threads by which
values are read and written stay free. Whoever brings more than a few at once has to come back.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from ropewalk.api.problems import Refused

SMALL: Final = 64 * 1024
MOST_SMALL: Final = 32
MOST_LARGE: Final = 2
RETRY_AFTER: Final = 5


class Desk:
    """Documents in the order they came, and nobody's pile too high."""

    def __init__(self) -> None:
        self._small = _Line(MOST_SMALL)
        self._large = _Line(MOST_LARGE)

    def turn(self, who: str, size: int) -> AbstractAsyncContextManager[None]:
        """Inside it is the turn of a document of somebody; Refused if they wait with too many others."""
        return (self._small if size <= SMALL else self._large).turn(who)


class _Line:
    def __init__(self, most: int) -> None:
        self._most = most
        self._there: Counter[str] = Counter()
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, who: str) -> AsyncIterator[None]:
        if self._there.get(who, 0) >= self._most:
            raise Refused(429, f"{self._most} documents of yours are being looked at", retry_after=RETRY_AFTER)
        self._there[who] += 1
        try:
            async with self._turn:
                yield
        finally:
            self._there[who] -= 1
            if not self._there[who]:
                del self._there[who]

"""Callers who wait for something at one server, without a database connection.

A wait ends with what is waited for, with its time, with the caller who hangs up, and with the server.
"""

import asyncio
from typing import Any, Final

from starlette.requests import Request

from ropewalk.api.shapes.problems import Refused

DEPARTED: Final = "ropewalk.departed"
"""In the scope of a request: a future that is done when the caller has hung up; its handler cancels it."""


class Waiters:
    """Every caller who waits for the end of an execution."""

    def __init__(self) -> None:
        self._there: set[asyncio.Future[Any]] = set()
        self._is_ending = False

    def __len__(self) -> int:
        return len(self._there)

    async def wait(self, request: Request, waiting: asyncio.Future[Any], seconds: float) -> None:
        """Returns when the future is done, or the time is over; refused if the caller has hung up."""
        if self._is_ending:
            waiting.cancel()
            return
        gone = _departure(request)
        self._there.add(waiting)
        try:
            await asyncio.wait((waiting, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                raise Refused(400, "the caller hung up before the execution ended")
            if waiting.done() and not waiting.cancelled():
                waiting.exception()  # what cannot be waited for cannot be read either, and the reading says why
        finally:
            self._there.discard(waiting)
            waiting.cancel()
            gone.cancel()

    def end(self) -> None:
        """Every caller who waits is answered now, and every later one at once."""
        self._is_ending = True
        for waiting in self._there:
            waiting.cancel()


def _departure(request: Request) -> asyncio.Future[None]:
    """Done when the caller has hung up: our own server says so, another one has to be asked by a task."""
    departed = request.scope.get(DEPARTED)
    if departed is None:
        return asyncio.ensure_future(hung_up(request))
    gone: asyncio.Future[None] = departed()
    return gone


async def hung_up(request: Request) -> None:
    """Returns when the caller is not there any more to hear the answer."""
    while (await request.receive())["type"] != "http.disconnect":
        continue

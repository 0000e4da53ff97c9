"""How many clients may be connected, and how long each may take.

One monitor looks at every connection twice a second, which costs less than a timer per request.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

LOOKS_EVERY: Final = 0.5
_log = logging.getLogger("ropewalk.api")


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """How long a client may take (s), how slow it may be (bytes/s, once `grace` is over), how many there may be.

    A body has one more second for each `steady` bytes of it that have come.
    """

    headers: float = 10.0
    body: float = 30.0
    grace: float = 5.0
    slowest: int = 1024
    steady: int = 256 * 1024
    idle: float = 15.0
    writing: float = 20.0
    linger: float = 3.0
    connections: int = 10_000
    per_address: int = 2_500
    longest_line: int = 16 * 1024
    largest_head: int = 64 * 1024
    most_headers: int = 100
    most_pipelined: int = 16


class ConnectionMonitor:
    """Counts the connections, and ends those that take too long."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.now = asyncio.get_running_loop().time()
        self._hosts: Counter[str] = Counter()
        self._total = 0

    def admits(self, host: str) -> bool:
        """Counts a new connection; whether there is room for it."""
        self._total += 1
        self._hosts[host] += 1
        return self._total <= self.limits.connections and self._hosts[host] <= self.limits.per_address

    def left(self, host: str) -> None:
        """A connection that was counted is closed."""
        self._total -= 1
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]

    async def watch(self, connections: Iterable[Any]) -> None:
        """Looks at every connection, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOKS_EVERY)
            self.now = loop.time()
            for each in list(connections):
                try:
                    each.look(self.now)
                except Exception:  # noqa: BLE001 -- a fault with one connection must not let the others stay for ever
                    _log.exception("a connection cannot be looked at")


class Outgoing:
    """How long a client has not read what was written, or has kept a connection open that is closed here."""

    def __init__(self, transport: asyncio.Transport, limits: ConnectionLimits) -> None:
        self._transport = transport
        self._limits = limits
        self._stuck_since: float | None = None
        self._closing_since: float | None = None

    def look(self, now: float, *, is_stuck: bool) -> None:
        """Breaks off a connection that does not end by itself."""
        self._stuck_since = (self._stuck_since or now) if is_stuck else None
        self._closing_since = (self._closing_since or now) if self._transport.is_closing() else None
        is_overdue = self._stuck_since is not None and now - self._stuck_since > self._limits.writing
        if is_overdue or (self._closing_since is not None and now - self._closing_since > self._limits.linger):
            self._transport.abort()

"""How often a caller may come: a bucket each, that fills at a steady rate and from which every request takes.

Pure: the time comes in. Memory is bounded; the caller who has not come for longest is forgotten first, and would have
a full bucket by then in all but the worst storms.
"""

import math
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from msgspec import Struct

from ropewalk.core.duration import SECOND

MOST_BUCKETS: Final = 50_000
MOST_REMEMBERED: Final = 10_000


class Rate(Struct, frozen=True):
    """So many per second in the long run, and so many at once."""

    per_second: float
    burst: int


SESSIONS: Final = Rate(0.1, 30)
"""How often a caller may open a session: each is a row for twelve hours, and one in the audit log."""


class Limits(Struct, frozen=True, kw_only=True):
    """What is let through; None for no limit. Failures are proofs of identity that prove nothing."""

    per_actor: Rate | None = Rate(1_000, 2_000)
    per_address: Rate | None = Rate(500, 1_000)
    failures: Rate | None = Rate(0.5, 30)


class Buckets:
    """One bucket for each caller."""

    def __init__(self, rate: Rate | None, most: int = MOST_BUCKETS) -> None:
        self._rate = rate
        self._most = most
        self._levels: dict[str, tuple[float, int]] = {}

    def take(self, who: str, now: int) -> int | None:
        """None if one more is let through; else the seconds after which it would be."""
        if self._rate is None:
            return None
        level = self._level(self._rate, who, now)
        if level >= 1:
            self._keep(who, level - 1, now)
            return None
        self._keep(who, level, now)
        return _wait(self._rate, level)

    def wait(self, who: str, now: int) -> int | None:
        """What `take` would say, and nothing taken."""
        if self._rate is None or (level := self._level(self._rate, who, now)) >= 1:
            return None
        return _wait(self._rate, level)

    def _level(self, rate: Rate, who: str, now: int) -> float:
        level, then = self._levels.get(who, (float(rate.burst), now))
        return min(rate.burst, level + (now - then) / SECOND * rate.per_second)

    def _keep(self, who: str, level: float, now: int) -> None:
        # Taken out and put in again: a dict remembers who came last.
        self._levels.pop(who, None)
        if len(self._levels) >= self._most:
            del self._levels[next(iter(self._levels))]
        self._levels[who] = (level, now)

    def __len__(self) -> int:
        return len(self._levels)


def _wait(rate: Rate, level: float) -> int:
    return max(1, math.ceil((1 - level) / rate.per_second))


def address_of(client: str) -> str:
    """What counts as one address: a network of /64 in IPv6, where a caller has as many addresses as they like."""
    try:
        address = ip_address(client.partition("%")[0])
    except ValueError:
        return client
    if not isinstance(address, IPv6Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64))


@lru_cache(MOST_REMEMBERED)
def is_loopback(client: str) -> bool:
    """Whether the request comes from this machine."""
    try:
        address = ip_address(client.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback

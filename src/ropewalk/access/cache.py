"""What was looked up a moment ago, kept for a few seconds.

A busy caller costs no read per request, and a caller who lost a role is out on every server within `CACHED_FOR`. Only
what was found is kept: what was not is looked up again each time, so a grant holds at once.
"""

from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from ropewalk.core.duration import SECOND

CACHED_FOR: Final = 3 * SECOND
MOST: Final = 10_000

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Cache(Generic[Key, Value]):
    """Values by key, each kept for a while, and at most `most` of them."""

    def __init__(self, now: Callable[[], int], most: int = MOST) -> None:
        self._now = now
        self._most = most
        self._held: dict[Key, tuple[int, Value]] = {}
        self._forgotten = -1

    async def ask(self, key: Key, look_up: Callable[[], Awaitable[Value]]) -> Value:
        """What is kept, else what the look-up finds; kept from now on unless it is empty."""
        known = self.get(key)
        if known is not None:
            return known
        # Dated before the look-up: what it finds may be old by the time it is here.
        since, found = self._now(), await look_up()
        if found:
            self.put(key, found, since)
        return found

    def get(self, key: Key) -> Value | None:
        """What is still kept under this key."""
        held = self._held.get(key)
        return held[1] if held is not None and self._now() < held[0] else None

    def put(self, key: Key, value: Value, since: int, ends: int | None = None) -> None:
        """Kept for a while, but not past its own end."""
        if len(self._held) >= self._most:
            self._held.clear()
        # What was looked up before something changed here may be how it was.
        until = since + CACHED_FOR if since > self._forgotten else 0
        self._held[key] = (until if ends is None else min(until, ends), value)

    def has_known(self, key: Key) -> bool:
        """Whether this was found once, be it long ago."""
        return key in self._held

    def forget(self) -> None:
        """Everything is looked up again, what is being looked up at this moment included."""
        self._forgotten = self._now()
        self._held = {key: (0, value) for key, (_, value) in self._held.items()}

"""What a run does once, however often its attempt is repeated: its answer is written in the transaction of the effect.

The run is known by its idempotency key, here called its work. The row of the work is locked before anything else: a
worker that was thought dead, and the one in its place, come one by one.
"""

from typing import Final

from ropewalk.core.duration import DAY
from ropewalk.store import kept_values
from ropewalk.store.access import Transaction
from ropewalk.store.kept_values import KeptValue

SPACE: Final = "work"
"""Where the answers lie that runs have got."""
REMEMBERED: Final = DAY
"""How long an attempt that is repeated gets the answer of the first."""


class Work:
    """The work of one run, locked in a transaction; `answer` is what it got before, as JSON, if it did."""

    def __init__(self, tx: Transaction, about: tuple[str, str], now: int, answer: str | None, version: int) -> None:
        self._tx = tx
        self._about = about
        self._now = now
        self._version = version
        self.answer = answer

    async def remember(self, answer: str) -> None:
        """The attempt that repeats this work gets the same answer."""
        workspace, work = self._about
        kept = KeptValue(answer, self._version, self._now + REMEMBERED)
        await kept_values.put(self._tx, workspace, SPACE, work, kept)


async def lock(tx: Transaction, workspace: str, work: str, now: int) -> Work:
    """The work of this key; no other attempt at it goes on until the transaction is over."""
    found, version = await kept_values.lock(tx, workspace, SPACE, work, now)
    return Work(tx, (workspace, work), now, None if found is None else found.value, version)

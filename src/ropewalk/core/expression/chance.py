"""What `now`, `uuid()` and `random()` give: made of what the log says about a start, so that a replay gives it too."""

import hashlib

from ropewalk.core.instant import rfc3339


class Chance:
    """The moment and the chance of one evaluation; the same draws come from the same seed, in the same order."""

    __slots__ = ("_at", "_drawn", "_seed")

    def __init__(self, at: int, seed: str) -> None:
        self._at = at
        self._seed = seed
        self._drawn = 0

    @property
    def now(self) -> str:
        return rfc3339(self._at)

    def uuid(self) -> str:
        """Another one at each call; by its look a random one (version 4)."""
        digits = self._draw()[:16].hex()
        variant = "89ab"[int(digits[16], 16) % 4]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def number(self) -> float:
        """Another one at each call, from 0 to less than 1."""
        return (int.from_bytes(self._draw()[:7]) >> 3) / (1 << 53)

    def _draw(self) -> bytes:
        self._drawn += 1
        return hashlib.sha256(f"{self._seed} {self._at} {self._drawn}".encode()).digest()

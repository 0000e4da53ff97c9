"""How long one goes on trying."""

import random
import time
from typing import Final

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0


class Trial:
    """Trying something again and again for so many seconds at most, with pauses that grow."""

    def __init__(self, patience: float) -> None:
        self._end = time.monotonic() + patience
        self._pause = FIRST_PAUSE

    def pause(self, wish: float | None = None) -> float | None:
        """How long to wait before the next try, never less than the other side wishes; None if it is enough."""
        # Chance spreads the clients that were turned away together.
        pause = max(wish or 0.0, self._pause * random.uniform(0.5, 1.0))
        self._pause = min(LONGEST_PAUSE, 2 * self._pause)
        return pause if time.monotonic() + pause <= self._end else None

"""The queue of documents to be checked: a document of four megabytes takes half a minute.

One small and one large document are checked at a time, so that a large one keeps no small one waiting, and the threads
by which values are read and written stay free. Callers take turns; a caller with more than a few at once is refused.
"""

from contextlib import AbstractAsyncContextManager
from typing import Final

from ropewalk.engines.fair_turns import FairTurns

SMALL: Final = 64 * 1024
MOST_SMALL: Final = 32
MOST_LARGE: Final = 2


class DocumentQueue:
    """Which caller's document is checked next."""

    def __init__(self) -> None:
        self._small, self._large = FairTurns(), FairTurns()

    def turn(self, workspace: str, caller: str, size: int) -> AbstractAsyncContextManager[object]:
        """Inside the block it is the turn of a document of this caller; TooManyWaiting if too many of theirs wait."""
        if size <= SMALL:
            return self._small.turn(workspace, caller, MOST_SMALL)
        return self._large.turn(workspace, caller, MOST_LARGE)

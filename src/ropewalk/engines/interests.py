"""What other processes follow: while a process follows an execution, it is told of each commit that concerns it.

Only hints, said again every few seconds and forgotten when that stops. A process that follows looks for itself as well,
only less often.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from ropewalk.store.access import Store

LASTING: Final = 15.0
MOST: Final = 10_000
FOLLOW: Final = "follow "
MOVED: Final = "moved "


def of_workspace(workspace: str) -> str:
    """What stands for everything in a workspace where otherwise an execution is named."""
    return f"@{workspace}"


class Interests:
    """Who elsewhere wants to hear of what."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._until: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._until)

    def announce(self, topics: Iterable[str]) -> None:
        """Say to everyone what is followed here."""
        for topic in topics:
            self._store.hint(f"{FOLLOW}{self._store.worker} {topic}")

    def heard(self, hint: str) -> None:
        """A process says what it follows; what this process says comes back to it as well, and is not counted."""
        worker, _, topic = hint.removeprefix(FOLLOW).partition(" ")
        if worker == self._store.worker or not topic:
            return
        if len(self._until) >= MOST:
            self._forget_old()
        if len(self._until) < MOST:
            self._until[topic] = _now() + LASTING

    def tell(self, execution: str, workspace: str) -> None:
        """This execution has moved."""
        if self._is_wanted(execution):
            self._store.hint(f"{MOVED}{execution}")
        if self._is_wanted(of_workspace(workspace)):
            self._store.hint(f"{MOVED}{execution} {of_workspace(workspace)}")

    def _is_wanted(self, topic: str) -> bool:
        until = self._until.get(topic)
        if until is None:
            return False
        if until < _now():
            del self._until[topic]
            return False
        return True

    def _forget_old(self) -> None:
        now = _now()
        self._until = {topic: until for topic, until in self._until.items() if until >= now}


def _now() -> float:
    return asyncio.get_running_loop().time()

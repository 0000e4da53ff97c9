"""Clocks that can be moved, and a store with one."""

from typing import Any

from ropewalk.store.access import Store


class Clock:
    """Any time one likes."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.ahead = 0

    def now(self) -> int:
        return self.start + self.ahead


class Clocked:
    """The store, some time later."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.ahead = 0

    def now(self) -> int:
        return self._store.now() + self.ahead

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

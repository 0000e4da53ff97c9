"""What survives any kill: what clients were answered, what the outside world saw, and by whom."""

import os
from pathlib import Path

from msgspec import Struct

from ropewalk.checker import Effect
from tests.crash.ledgers import Accepted, Ledger


class Seen(Struct, frozen=True):
    """A process was seen to begin, or to end, an attempt; `at` is the machine's monotonic time."""

    pid: int
    execution: str
    node: str
    item: int | None
    attempt: int
    is_begun: bool
    at: float


class Place(Struct, frozen=True):
    """A directory with the ledgers and logs of a fleet, and the switches its nodes look at."""

    folder: str

    @property
    def clients(self) -> Ledger[Accepted]:
        return Ledger(Path(self.folder, "clients.jsonl"), Accepted)

    @property
    def effects(self) -> Ledger[Effect]:
        return Ledger(Path(self.folder, "effects.jsonl"), Effect)

    @property
    def seen(self) -> Ledger[Seen]:
        return Ledger(Path(self.folder, "seen.jsonl"), Seen)

    def log(self, member: str) -> str:
        """Where a member writes what it has to say."""
        return str(Path(self.folder, f"{member}.log"))

    def is_on(self, switch: str) -> bool:
        return os.path.exists(self._switch(switch))

    def turn_on(self, switch: str) -> None:
        Path(self._switch(switch)).touch()

    def turn_off(self, switch: str) -> None:
        Path(self._switch(switch)).unlink(missing_ok=True)

    def _switch(self, name: str) -> str:
        return f"{self.folder}/{name}.switch"

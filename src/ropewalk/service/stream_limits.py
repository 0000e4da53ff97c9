"""How much live streams may take; apart from them, so that whoever only says so does without an engine."""

from msgspec import Struct


class StreamLimits(Struct, frozen=True, kw_only=True):
    """How many may read, how far behind they may be, and how long nobody is heard of. Times are in seconds."""

    per_actor: int = 100
    readers: int = 5_000
    kept: int = 10_000
    kept_mib: int = 4
    stalled: float = 10.0
    beat: float = 15.0

    @property
    def kept_bytes(self) -> int:
        return self.kept_mib * 1024 * 1024

"""How much live streams may take; apart from the streams, so that the settings import no engine."""

from msgspec import Struct


class StreamLimits(Struct, frozen=True, kw_only=True):
    """How many readers there may be, how far behind, and how long a reader may stay silent. Times are in seconds."""

    per_actor: int = 100
    readers: int = 5_000
    kept: int = 10_000
    kept_mib: int = 4
    stalled: float = 10.0
    beat: float = 15.0

    @property
    def kept_bytes(self) -> int:
        return self.kept_mib * 1024 * 1024

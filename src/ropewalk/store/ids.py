"""Ids are UUIDv7: they begin with the moment they were made in, so that their order is that of time."""

from ropewalk.core.duration import MILLISECOND


def first_id(at: int) -> str:
    """What every id made from this millisecond on is after, and every older one before."""
    moment = f"{max(0, at) // MILLISECOND:012x}"
    return f"{moment[:8]}-{moment[8:]}"


def begins_or_ends(part: str | None) -> tuple[str, ...]:
    """The patterns of ids that begin, and of those that end so; none if nothing is said about ids."""
    return () if part is None else (f"{part}%", f"%{part}")

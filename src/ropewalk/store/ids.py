"""Ids are UUIDv7: they begin with the moment they were made in, so that their order is that of time."""

from ropewalk.core.duration import MILLISECOND


def first_id(at: int) -> str:
    """What every id made from this millisecond on is after, and every older one before."""
    moment = f"{max(0, at) // MILLISECOND:012x}"
    return f"{moment[:8]}-{moment[8:]}"

"""Singletons: what one worker of a fleet does for all of them, one at a time."""

from ropewalk.store.access import Transaction


async def take(tx: Transaction, name: str, holder: str, until: int, now: int) -> bool:
    """The holder does it until then, or goes on doing it; false while another's time lasts."""
    return await tx.fetch_one("take_singleton", name, holder, until, now) is not None


async def leave(tx: Transaction, name: str, holder: str) -> None:
    """The holder does it no more."""
    await tx.execute("leave_singleton", name, holder)

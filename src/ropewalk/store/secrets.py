"""What the servers of one store sign with: the first to come decides, the others take it over."""

from ropewalk.store.access import Transaction


async def keep(tx: Transaction, name: str, proposed: str) -> str:
    """The secret of this name; the proposed one if there was none."""
    await tx.execute("keep_secret", name, proposed)
    row = await tx.fetch_one("get_secret", name)
    assert row is not None, "it was inserted, or there"
    return str(row[0])

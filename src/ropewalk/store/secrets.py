"""Values that the servers of one store agree on: the first to come decides, the others take it over.

Despite the name of the table none of them is secret: every user of the database can read them.
"""

from ropewalk.store.access import Reader, Transaction


async def keep(tx: Transaction, name: str, proposed: str) -> str:
    """The value of this name; the proposed one if there was none."""
    await tx.execute("keep_secret", name, proposed)
    row = await tx.fetch_one("get_secret", name)
    assert row is not None, "it was inserted, or there"
    return str(row[0])


async def get(reader: Reader, name: str) -> str | None:
    """The value of this name, if there is one."""
    row = await reader.fetch_one("get_secret", name)
    return None if row is None else str(row[0])


async def replace(tx: Transaction, name: str, value: str) -> None:
    """The value of this name is another from now on."""
    await tx.execute("replace_secret", name, value)


async def drop(tx: Transaction, name: str) -> None:
    """There is no value of this name any more."""
    await tx.execute("drop_secret", name)

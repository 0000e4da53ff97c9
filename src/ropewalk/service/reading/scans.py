"""Reads that may take long, without keeping other requests waiting."""

from ropewalk.store.access import Reader, Row, Store, Value


class _ThreadReader:
    """Reads an embedded store in a thread: there, a question would keep the loop as long as it takes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        return await self._store.scan(name, *arguments)

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        rows = await self.fetch(name, *arguments)
        return rows[0] if rows else None


def scan_reader(store: Store) -> Reader:
    """A reader for lists whose filters no index serves; a shared store is asked over a wire anyway."""
    return store if store.is_shared else _ThreadReader(store)

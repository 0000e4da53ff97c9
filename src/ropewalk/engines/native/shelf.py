"""Where this worker keeps results that are large, and results that may be used again."""

from collections.abc import Callable
from typing import Any

import msgspec

from ropewalk.core.events import Blob
from ropewalk.nodes.values import Output
from ropewalk.store import cache
from ropewalk.store.access import Blobs, Reader
from ropewalk.store.files import names_inside
from ropewalk.store.naming import NAMES_FILE
from ropewalk.store.rows import CachedResult

Write = Callable[[str, tuple[Any, ...]], None]


class WorkerShelf:
    """Blobs by hash, cached results by what they were made of."""

    def __init__(self, blobs: Blobs, reader: Reader, now: Callable[[], int], write: Write) -> None:
        self._blobs = blobs
        self._reader = reader
        self._now = now
        self._write = write

    async def keep(self, data: bytes) -> Blob:
        """Durable before anything refers to it."""
        blob = await self._blobs.put(data)
        self._write("insert_blob", (blob.hash, blob.size, self._now()))
        for reference in names_inside(blob, data):
            self._write("insert_blob_reference", reference)
        return blob

    async def cached(self, workspace: str, key: str) -> Output | None:
        found = await cache.get(self._reader, workspace, key, self._now())
        if found is None or found.output is None or found.ports is None:
            return None
        return Output(msgspec.json.decode(found.output), tuple(msgspec.json.decode(found.ports)))

    def cache(self, workspace: str, key: str, output: Output, ttl: int) -> None:
        value, ports = msgspec.json.encode(output.value), msgspec.json.encode(output.ports).decode()
        # A file is kept for executions, not for a result that none of them may have.
        if NAMES_FILE not in value:
            row = CachedResult(workspace, key, value.decode(), None, ports, self._now() + ttl)
            self._write("upsert_cached_result", row)

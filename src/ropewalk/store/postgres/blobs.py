"""Values too large for the log, kept in the database, where every worker can read them.

A worker that puts one says so first, in the blob's row, and that is durable before the bytes are looked at: removing it
deletes that row before the bytes, in one transaction, unless it was put lately. So the two wait for each other at the
row; either the bytes stay, or both are gone and the bytes are written anew.
"""

import hashlib
from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

from ropewalk.core.errors import NotFound
from ropewalk.core.events import Blob
from ropewalk.store.access import Batch, Row, Transaction, Value
from ropewalk.store.blobs import CHUNK, LARGEST, BlobTooLarge, is_hash, verified
from ropewalk.store.errors import StoreCorrupted
from ropewalk.store.rows import BlobContent, BlobEntry


class Keeper(Protocol):
    """The store, as far as blobs need it."""

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        """The first row the statement gives, if any."""

    async def keep(self, name: str, *arguments: Value) -> None:
        """Carries one statement out that any worker may."""

    def now(self) -> int:
        """The store's time (µs)."""


class PostgresBlobs:
    """Blobs as rows. What is put without a pause is remembered, and goes along with the next write."""

    def __init__(self, keeper: Keeper, largest: int = LARGEST) -> None:
        self.largest = largest
        self._keeper = keeper
        self._unwritten: dict[str, bytes] = {}

    async def put(self, value: bytes | bytearray | memoryview) -> Blob:
        """Keeps the value; durable on return."""
        blob = self._checked(value)
        # No fence: under its hash it is the same from any worker.
        await self._keeper.keep("insert_blob", *self._mark(blob.hash, blob.size))
        await self._keeper.keep("insert_blob_content", blob.hash, bytes(value))
        return blob

    def put_here(self, value: bytes | bytearray | memoryview) -> Blob:
        """Keeps the value without a pause: it is durable with the store's next write, so before anything names it."""
        blob = self._checked(value)
        self._unwritten[blob.hash] = bytes(value)
        return blob

    async def get(self, digest: str) -> bytes:
        """The value under this hash, checked against it."""
        if (remembered := self._unwritten.get(digest)) is not None:
            return remembered
        row = await self._keeper.fetch_one("get_blob_content", digest) if is_hash(digest) else None
        if row is None:
            raise NotFound(f"there is no blob {digest[:80]!r}")
        value: bytes = row[0]
        if hashlib.sha256(value).hexdigest() != digest:
            raise StoreCorrupted(f"blob {digest} is damaged: restore it from a backup")
        return value

    async def chunks(self, digest: str) -> AsyncGenerator[bytes, None]:
        """The same a part at a time. The last part comes only if all of them together are what they should be."""
        remembered = self._unwritten.get(digest)

        async def read(at: int) -> bytes:
            if remembered is not None:
                return remembered[at : at + CHUNK]
            row = await self._keeper.fetch_one("get_blob_slice", digest, at + 1, CHUNK) if is_hash(digest) else None
            if row is None:
                raise NotFound(f"there is no blob {digest[:80]!r}")
            return bytes(row[0])

        async for chunk in verified(read, digest, "the database"):
            yield chunk

    async def remove(self, tx: Transaction, digest: str) -> bool:
        """The value goes together with its row; a worker that puts it again would have kept that row."""
        await tx.execute("remove_blob_content", digest)
        return True

    def sweep(self) -> int:
        """Nothing is ever half written here."""
        return 0

    def unwritten(self) -> Mapping[str, bytes]:
        """What the next write has to take along."""
        return dict(self._unwritten) if self._unwritten else {}

    def marks(self, taken: Mapping[str, bytes]) -> Batch:
        """What must be durable before these are written."""
        return [("insert_blob", [self._mark(digest, len(value)) for digest, value in taken.items()])]

    def _mark(self, digest: str, size: int) -> BlobEntry:
        return BlobEntry(digest, size, self._keeper.now())

    def written(self, taken: Mapping[str, bytes]) -> None:
        """These are durable now."""
        for digest in taken:
            self._unwritten.pop(digest, None)

    def _checked(self, value: bytes | bytearray | memoryview) -> Blob:
        if len(value) > self.largest:
            raise BlobTooLarge(f"{len(value)} bytes are too many for a blob, at most {self.largest} are kept")
        return Blob(hashlib.sha256(value).hexdigest(), len(value))


def with_blobs(batch: Batch, unwritten: Mapping[str, bytes]) -> Batch:
    """The batch with the blobs that go along."""
    rows = [BlobContent(digest, value) for digest, value in unwritten.items()]
    return [("insert_blob_content", rows), *batch] if rows else batch

"""Values too large for the log, kept in the database, where every worker can read them.

A worker that puts one says so first, in the blob's row, and that is durable before the bytes are looked at: removing it
deletes that row before the bytes, in one transaction, unless it was put lately. So the two wait for each other at the
row; either the bytes stay, or both are gone and the bytes are written anew.

What comes as a stream is written in parts of one size, each in a transaction of its own, under a name that is no hash.
One short transaction gives the parts their hash, so that no reader finds some of them. A name of parts that were left
has a row like a blob's, and goes like a blob that nothing names.
"""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final, Protocol

from uuid_utils import uuid7

from ropewalk.core.errors import NotFound, RopewalkError
from ropewalk.core.events import Blob
from ropewalk.store.access import Batch, Row, Transaction, Value
from ropewalk.store.blobs import CHUNK, LARGEST, BlobTooLarge, is_hash, parts_of, verified
from ropewalk.store.errors import StoreCorrupted, StoreUnavailable
from ropewalk.store.rows import BlobContent, BlobEntry

MARKED_EVERY: Final = 64
"""After so many parts the store is told again that a worker is writing them."""


class Keeper(Protocol):
    """The store, as far as blobs need it."""

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        """The first row the statement gives, if any."""

    async def keep(self, name: str, *arguments: Value) -> None:
        """Carries one statement out that any worker may."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Several statements as one."""

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

    async def put_stream(self, chunks: AsyncIterable[bytes], most: int) -> Blob:
        """Keeps what comes in parts; durable on return, and nothing of it stays if it does not come whole."""
        parts = parts_of(chunks, most)
        first, second = await anext(parts, b""), await anext(parts, None)
        if second is None:
            return await self.put(first)
        return await _Arriving(self._keeper).put(first, second, parts)

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
            return b"".join([chunk async for chunk in self.chunks(digest)])
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
            if at % CHUNK:
                return b""  # what came last was less than a whole part, so it was the end
            about = (digest, at + 1, CHUNK, at // CHUNK)
            row = await self._keeper.fetch_one("get_blob_slice", *about) if is_hash(digest) else None
            if row is None and at == 0:
                raise NotFound(f"there is no blob {digest[:80]!r}")
            return b"" if row is None else bytes(row[0])

        async for chunk in verified(read, digest, "the database"):
            yield chunk

    async def remove(self, tx: Transaction, digest: str) -> bool:
        """The value goes together with its row; a worker that puts it again would have kept that row."""
        await tx.execute("remove_blob_content", digest)
        await tx.execute("remove_blob_parts", digest)
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


class _Arriving:
    """A value that comes in parts, under a name that is no hash until it is whole."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._name = f"unfinished {uuid7()}"
        self._summed, self._size, self._count = hashlib.sha256(), 0, 0

    async def put(self, first: bytes, second: bytes, rest: AsyncIterable[bytes]) -> Blob:
        try:
            await self._add(first)
            await self._add(second)
            async for part in rest:
                await self._add(part)
            blob = Blob(self._summed.hexdigest(), self._size)
            await self._finish(blob)
        except BaseException:
            # If the store does not answer, a sweep removes them after a day.
            with suppress(RopewalkError):
                await self._discard()
            raise
        return blob

    async def _add(self, part: bytes) -> None:
        if self._count % MARKED_EVERY == 0:
            await self._keeper.keep("insert_blob", self._name, self._size, self._keeper.now())
        await self._keeper.keep("insert_blob_part", self._name, self._count, part)
        self._summed.update(part)
        self._size += len(part)
        self._count += 1

    async def _finish(self, blob: Blob) -> None:
        async with self._keeper.transaction() as tx:
            # First of all: a worker that has the same content, or removes it, is waited for here, and seen afterwards.
            await tx.execute("insert_blob", blob.hash, blob.size, self._keeper.now())
            if await tx.fetch_one("has_blob_content", blob.hash) is not None:
                await tx.execute("remove_blob_parts", self._name)
            elif await tx.execute("name_blob_parts", blob.hash, self._name) != self._count:
                raise StoreUnavailable("some parts of the content are gone: write it again")
            await tx.execute("forget_blob", self._name)

    async def _discard(self) -> None:
        await self._keeper.keep("remove_blob_parts", self._name)
        await self._keeper.keep("forget_blob", self._name)


def with_blobs(batch: Batch, unwritten: Mapping[str, bytes]) -> Batch:
    """The batch with the blobs that go along."""
    rows = [BlobContent(digest, value) for digest, value in unwritten.items()]
    return [("insert_blob_content", rows), *batch] if rows else batch

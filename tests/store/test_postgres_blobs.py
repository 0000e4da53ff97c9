"""Blobs in the database: readable by every worker, whole or absent, and what was damaged is noticed."""

import hashlib

import pytest

from ropewalk.core.errors import NotFound
from ropewalk.core.events import Blob
from ropewalk.store.blobs import BlobTooLarge
from ropewalk.store.errors import StaleWriter, StoreCorrupted
from ropewalk.store.postgres import PostgresStore
from ropewalk.store.postgres.blobs import PostgresBlobs
from tests.postgres import ask
from tests.store.samples import entries

VALUE = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(VALUE).hexdigest()


@pytest.mark.parametrize(
    "value", [VALUE, bytearray(VALUE), memoryview(VALUE)], ids=["bytes", "bytearray", "memoryview"]
)
async def test_a_blob_is_read_by_every_worker_as_it_was_written(
    postgres_store: PostgresStore, database: str, value: bytes
):
    other = await PostgresStore.open(database, worker="two", notify=False)
    blob = await postgres_store.blobs.put(value)
    await postgres_store.blobs.put(value)

    assert blob == Blob(DIGEST, len(VALUE))
    assert await other.blobs.get(DIGEST) == VALUE
    assert other.blobs.sweep() == 0
    await other.close()


async def test_a_blob_put_without_a_pause_can_be_read_before_it_is_written(
    postgres_store: PostgresStore, database: str
):
    blob = postgres_store.blobs.put_here(VALUE)
    early = await postgres_store.blobs.get(blob.hash)
    before = await ask(database, "select hash from blob_content")
    await postgres_store.write([("insert_log", entries("e1", 1))])

    assert (early, before) == (VALUE, [])
    assert await ask(database, "select hash from blob_content") == [(DIGEST,)]
    assert postgres_store.blobs.unwritten() == {}


async def test_a_blob_goes_with_no_write_that_was_refused(postgres_store: PostgresStore, database: str):
    postgres_store.blobs.put_here(VALUE)
    await ask(database, "update worker set epoch = epoch + 1")
    with pytest.raises(StaleWriter):
        await postgres_store.write([("insert_log", entries("e1", 1))])

    assert await ask(database, "select hash from blob_content") == []
    assert postgres_store.blobs.unwritten() == {DIGEST: VALUE}


@pytest.mark.parametrize("name", [DIGEST, "", DIGEST.upper(), "a\0b"])
async def test_what_is_not_there_or_no_hash_is_not_found(postgres_store: PostgresStore, name: str):
    with pytest.raises(NotFound, match="no blob"):
        await postgres_store.blobs.get(name)


async def test_a_damaged_blob_is_noticed(postgres_store: PostgresStore, database: str):
    await postgres_store.blobs.put(VALUE)
    await ask(database, "update blob_content set data = 'x'")

    with pytest.raises(StoreCorrupted, match="is damaged"):
        await postgres_store.blobs.get(DIGEST)


async def test_a_value_too_large_is_refused_before_anything_is_written(postgres_store: PostgresStore):
    small = PostgresBlobs(postgres_store, largest=10)
    await small.put(b"x" * 10)

    with pytest.raises(BlobTooLarge, match="11 bytes are too many for a blob, at most 10"):
        small.put_here(b"x" * 11)

"""Blobs in the database: readable by every worker, whole or absent, what was damaged is noticed, and what is old goes
unless a worker is about to name it.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from ropewalk.core.duration import DAY
from ropewalk.core.errors import NotFound
from ropewalk.core.events import Blob
from ropewalk.store import retention
from ropewalk.store.blobs import BlobTooLarge, record
from ropewalk.store.errors import StaleWriter, StoreCorrupted
from ropewalk.store.postgres import PostgresStore
from ropewalk.store.postgres.blobs import PostgresBlobs
from ropewalk.store.retention import Cutoffs
from ropewalk.store.rows import BlobReference
from tests.postgres import ask
from tests.store.samples import entries
from tests.store.test_postgres_store import blocked, in_the_way

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


# What is old goes


Make = Callable[[PostgresStore], Awaitable[object]]


async def put(store: PostgresStore) -> None:
    await store.blobs.put(VALUE)


async def put_here(store: PostgresStore) -> None:
    """Written with the next commit; what names it may come with a later one."""
    store.blobs.put_here(VALUE)
    await store.write([("insert_log", entries("another", 1))])


every_way = pytest.mark.parametrize("make", [put, put_here])


async def old_blob(store: PostgresStore, database: str) -> None:
    """One that was put long ago, and that nothing names."""
    await store.blobs.put(VALUE)
    await ask(database, "update blob set created_at = created_at - $1", 2 * DAY)


@asynccontextmanager
async def sweeping(database: str) -> AsyncIterator[int]:
    """Another worker removes what nothing names; how much that was. Committed in the end."""
    other = await PostgresStore.open(database, worker="two", notify=False)
    now = other.now()
    cut = Cutoffs(now=now, executions=now, letters=now, blobs=now - DAY)
    try:
        async with other.transaction() as tx:
            removed, _ = await retention.remove_blobs(tx, other.blobs, "", cut, 100)
            yield removed
    finally:
        await other.close()


async def swept(database: str) -> int:
    async with sweeping(database) as removed:
        return removed


async def kept(database: str) -> tuple[int, int]:
    """How many blobs the store knows of, and how many it has."""
    [counts] = await ask(database, "select (select count(*) from blob), (select count(*) from blob_content)")
    return counts[0], counts[1]


async def test_a_blob_that_nothing_names_goes_with_its_row(postgres_store: PostgresStore, database: str):
    await old_blob(postgres_store, database)

    assert await swept(database) == 1
    assert await kept(database) == (0, 0)


async def test_a_blob_that_a_log_names_stays(postgres_store: PostgresStore, database: str):
    await old_blob(postgres_store, database)
    await postgres_store.write([("insert_blob_reference", [BlobReference(DIGEST, "e1")])])

    assert await swept(database) == 0
    assert await kept(database) == (1, 1)


@every_way
async def test_a_blob_that_was_put_just_now_stays_though_nothing_names_it_yet(
    postgres_store: PostgresStore, database: str, make: Make
):
    await make(postgres_store)

    assert await swept(database) == 0
    assert await kept(database) == (1, 1)


@every_way
async def test_an_old_blob_that_is_put_again_is_not_removed(postgres_store: PostgresStore, database: str, make: Make):
    await old_blob(postgres_store, database)
    await make(postgres_store)

    assert await swept(database) == 0
    assert await kept(database) == (1, 1)


@every_way
async def test_a_worker_that_puts_a_blob_while_it_is_removed_puts_it_anew(
    postgres_store: PostgresStore, database: str, make: Make
):
    await old_blob(postgres_store, database)
    async with sweeping(database) as removed:
        making = asyncio.create_task(make(postgres_store))
        await blocked(database)
    await making

    assert removed == 1
    assert await kept(database) == (1, 1)
    assert await postgres_store.blobs.get(DIGEST) == VALUE


@every_way
async def test_a_worker_that_removes_a_blob_while_it_is_put_leaves_it(
    postgres_store: PostgresStore, database: str, make: Make
):
    await old_blob(postgres_store, database)
    async with in_the_way(database, "lock table blob_content in exclusive mode"):
        making = asyncio.create_task(make(postgres_store))
        await blocked(database)
        removed = await swept(database)
    await making

    assert removed == 0
    assert await kept(database) == (1, 1)


async def test_a_worker_that_finds_a_blob_being_marked_waits_and_leaves_it(
    postgres_store: PostgresStore, database: str
):
    await old_blob(postgres_store, database)
    async with postgres_store.transaction() as tx:
        await record(tx, Blob(DIGEST, len(VALUE)), postgres_store.now())
        removing = asyncio.create_task(swept(database))
        await blocked(database)

    assert await removing == 0
    assert await kept(database) == (1, 1)

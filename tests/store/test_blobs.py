"""Blobs: whole or absent, under their hash, and what was damaged is noticed."""

import hashlib
import os
import random
from pathlib import Path
from typing import Any

import pytest

from ropewalk.core import log
from ropewalk.core.errors import NotFound
from ropewalk.core.events import Blob, Event, ExecutionSucceeded, NodesCarriedOver, NodeSucceeded
from ropewalk.store import naming
from ropewalk.store.blobs import LATELY, BlobFiles, BlobTooLarge, record
from ropewalk.store.errors import StoreCorrupted, StoreUnavailable
from ropewalk.store.sqlite import SqliteStore
from tests.store.samples import NOON, known_blobs

VALUE = random.Random(7).randbytes(300_000)  # the same in every process: it names the tests
DIGEST = hashlib.sha256(VALUE).hexdigest()
NO_TRANSACTION: Any = None
"""Files go without one."""


@pytest.fixture
def store(sqlite_store: SqliteStore) -> SqliteStore:
    """Only this kind is spoken of here."""
    return sqlite_store


@pytest.fixture
def files(tmp_path: Path) -> BlobFiles:
    return BlobFiles(str(tmp_path / "x.db.blobs"))


def place(files: BlobFiles) -> Path:
    return Path(files.root) / DIGEST[:2] / DIGEST


@pytest.mark.parametrize("value", [VALUE, bytearray(VALUE), memoryview(VALUE)])
async def test_a_blob_is_read_as_it_was_written(files: BlobFiles, value: bytes):
    blob = await files.put(value)

    assert blob == Blob(DIGEST, len(VALUE))
    assert await files.get(DIGEST) == VALUE
    assert [path.name for path in place(files).parent.iterdir()] == [DIGEST]


async def test_an_empty_blob_is_a_blob(files: BlobFiles):
    blob = await files.put(b"")

    assert await files.get(blob.hash) == b""


async def test_the_same_value_is_written_once(files: BlobFiles):
    await files.put(VALUE)
    before = place(files).stat().st_ino
    await files.put(VALUE)

    assert place(files).stat().st_ino == before


@pytest.mark.parametrize("damage", [b"", VALUE[:-1], VALUE[:-1] + bytes([VALUE[-1] ^ 1])])
async def test_a_damaged_blob_is_noticed(files: BlobFiles, damage: bytes):
    await files.put(VALUE)
    place(files).write_bytes(damage)

    with pytest.raises(StoreCorrupted, match="is damaged"):
        await files.get(DIGEST)


async def test_a_blob_cut_short_is_written_anew(files: BlobFiles):
    await files.put(VALUE)
    place(files).write_bytes(VALUE[:100])
    await files.put(VALUE)

    assert await files.get(DIGEST) == VALUE


@pytest.mark.parametrize("name", [DIGEST, "../../../etc/passwd", "", DIGEST.upper(), f"{DIGEST}\n"])
async def test_what_is_not_there_or_no_hash_is_not_found(files: BlobFiles, name: str):
    with pytest.raises(NotFound, match="no blob"):
        await files.get(name)


async def test_a_link_leads_nowhere(files: BlobFiles, tmp_path: Path):
    await files.put(VALUE)
    elsewhere = tmp_path / "elsewhere"
    place(files).rename(elsewhere)
    place(files).symlink_to(elsewhere)

    with pytest.raises(StoreUnavailable):
        await files.get(DIGEST)


async def test_a_value_too_large_is_refused_before_anything_is_written(tmp_path: Path):
    files = BlobFiles(str(tmp_path / "blobs"), largest=10)
    await files.put(b"x" * 10)

    with pytest.raises(BlobTooLarge, match="11 bytes are too many for a blob, at most 10"):
        await files.put(b"x" * 11)


async def test_a_place_that_cannot_hold_blobs_is_named(tmp_path: Path):
    (tmp_path / "file").touch()

    with pytest.raises(StoreUnavailable, match="file/blobs cannot be used"):
        await BlobFiles(str(tmp_path / "file" / "blobs")).put(VALUE)


async def test_what_a_crash_left_unfinished_is_swept_away_when_the_store_opens(path: str):
    store = await SqliteStore.open(path)
    blob = await store.blobs.put(VALUE)
    await store.close()
    (Path(store.blobs.root) / "half.unfinished").write_bytes(b"half")

    store = await SqliteStore.open(path)

    assert os.listdir(store.blobs.root) == [DIGEST[:2]]
    assert await store.blobs.get(blob.hash) == VALUE
    await store.close()


async def test_the_store_knows_the_blobs_it_was_told_of(store: SqliteStore):
    blob = await store.blobs.put(VALUE)
    async with store.transaction() as tx:
        for _ in range(2):
            await record(tx, blob, NOON)

    assert await known_blobs(store) == {DIGEST: blob.size}


@pytest.mark.parametrize(("age", "is_removed"), [(LATELY - 60, False), (LATELY + 60, True)])
async def test_a_value_is_removed_unless_it_was_used_lately(files: BlobFiles, age: int, is_removed: bool):
    await files.put(VALUE)
    made_older(files, age)

    assert await files.remove(NO_TRANSACTION, DIGEST) is is_removed
    assert place(files).exists() is not is_removed


async def test_a_value_that_is_put_again_counts_as_used(files: BlobFiles):
    await files.put(VALUE)
    made_older(files, 2 * LATELY)
    await files.put(VALUE)

    assert not await files.remove(NO_TRANSACTION, DIGEST)
    assert await files.get(DIGEST) == VALUE


async def test_a_value_that_is_gone_already_counts_as_removed(files: BlobFiles):
    assert await files.remove(NO_TRANSACTION, DIGEST)


def made_older(files: BlobFiles, age: int) -> None:
    then = place(files).stat().st_mtime - age
    os.utime(place(files), (then, then))


@pytest.mark.parametrize(
    ("event", "named"),
    [
        (NodeSucceeded(NOON, "a", 1, None, blob=Blob(DIGEST, 9)), [DIGEST]),
        (ExecutionSucceeded(NOON, None, Blob(DIGEST, 9)), [DIGEST]),
        (NodesCarriedOver(NOON, "e1", {"a": Blob(DIGEST, 9), "b": [None, Blob("0" * 64, 9)]}), [DIGEST, "0" * 64]),
        (ExecutionSucceeded(NOON, {"hash": "of something else"}), []),
        (ExecutionSucceeded(NOON, "a text"), []),
    ],
)
def test_the_blobs_a_log_names_are_found_wherever_it_does(event: Event, named: list[str]):
    assert naming.named_in(log.encode(1, [event])) == named

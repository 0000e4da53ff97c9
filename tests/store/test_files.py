"""Files on both kinds of store: whole or absent, of one workspace, within their limits, kept while they are named."""

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from ropewalk.core.duration import DAY
from ropewalk.core.errors import ErrorType
from ropewalk.engines.files import RunRoom, StoredFiles
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.files import File, as_value, file_name, file_of, media_type
from ropewalk.store import blobs as stored_blobs
from ropewalk.store import files as stored_files
from ropewalk.store import retention
from ropewalk.store.access import Store
from ropewalk.store.blobs import CHUNK
from ropewalk.store.naming import files_named_in, named_in
from ropewalk.store.retention import Cutoffs
from ropewalk.store.rows import BlobReference
from ropewalk.store.sqlite import SqliteStore

CONTENT = random.Random(3).randbytes(3 * CHUNK + 17)
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def files(store: Store) -> StoredFiles:
    return StoredFiles(store)


async def in_chunks(content: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]


async def broken_off(content: bytes) -> AsyncIterator[bytes]:
    async for chunk in in_chunks(content):
        yield chunk
    raise NodeFailure.transient("the other side hung up")


async def read(files: StoredFiles, file: File) -> bytes:
    return b"".join([chunk async for chunk in files.read(file)])


async def sizes(files: StoredFiles, file: File) -> list[int]:
    return [len(chunk) async for chunk in files.read(file)]


async def rows(store: Store) -> list[str]:
    return [row[0] for row in await store.fetch("walk_blobs", "", 2**60, 100)]


@pytest.mark.parametrize("content", [b"", b"x", CONTENT[:CHUNK], CONTENT], ids=["empty", "one byte", "a part", "parts"])
async def test_a_file_is_read_as_it_was_written_in_bounded_parts(files: StoredFiles, content: bytes):
    file = await files.write(in_chunks(content), "orders.csv", "text/csv")

    assert file == File(hashlib.sha256(content).hexdigest(), len(content), "orders.csv", "text/csv")
    assert await read(files, file) == content
    assert max(await sizes(files, file), default=0) <= CHUNK


async def test_the_same_content_is_kept_once_and_read_under_both_names(files: StoredFiles, store: Store):
    one, two = await asyncio.gather(
        files.write(in_chunks(CONTENT), "a", "text/csv"), files.write(in_chunks(CONTENT, 7_777), "b", "text/csv")
    )

    assert one.hash == two.hash == DIGEST
    assert await read(files, one) == await read(files, two) == CONTENT
    assert await rows(store) == [DIGEST]


async def test_content_that_does_not_come_whole_leaves_nothing(files: StoredFiles, store: Store, path: str):
    with pytest.raises(NodeFailure, match="hung up"):
        await files.write(broken_off(CONTENT), "a", "text/csv")

    assert await rows(store) == []
    assert await store.fetch_one("has_blob_content", DIGEST) is None
    assert [each for each in Path(f"{path}.blobs").rglob("*") if each.is_file()] == []


async def test_a_writer_that_is_cancelled_leaves_nothing(files: StoredFiles, store: Store, path: str):
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield bytes(CHUNK)
        begun.set()
        await asyncio.Event().wait()

    writing = asyncio.ensure_future(files.write(endless(), "a", "text/csv"))
    await begun.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing

    assert await rows(store) == []
    assert [each for each in Path(f"{path}.blobs").rglob("*") if each.is_file()] == []


async def test_a_file_over_its_limit_fails_for_good_as_soon_as_it_is(store: Store):
    asked = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal asked
        while True:
            asked += 1
            yield bytes(10_000)

    with pytest.raises(NodeFailure, match=r"larger than 25000 bytes.*files\.max_mib") as caught:
        await StoredFiles(store, largest=25_000).write(endless(), "a", "text/csv")

    assert caught.value.error.type is ErrorType.PERMANENT
    assert asked == 3


async def test_the_files_of_an_attempt_have_no_more_room_than_its_execution(store: Store):
    files = StoredFiles(store).bound("w", RunRoom(150_000))
    await files.write(in_chunks(CONTENT[:100_000]), "a", "text/csv")

    with pytest.raises(NodeFailure, match=r"execution\.max_mib"):
        await files.write(in_chunks(CONTENT[:100_000]), "b", "text/csv")


async def test_what_was_not_written_takes_no_room(store: Store):
    files = StoredFiles(store).bound("w", RunRoom(150_000))
    with pytest.raises(NodeFailure, match="hung up"):
        await files.write(broken_off(CONTENT[:100_000]), "a", "text/csv")

    assert (await files.write(in_chunks(CONTENT[:140_000]), "b", "text/csv")).size == 140_000


async def test_no_other_workspace_reads_a_file_by_its_hash(store: Store):
    file = await StoredFiles(store, workspace="mine").write(in_chunks(CONTENT), "a", "text/csv")
    theirs = StoredFiles(store, workspace="theirs")

    with pytest.raises(NodeFailure, match="no content") as caught:
        await read(theirs, file)

    assert caught.value.error.type is ErrorType.PERMANENT
    await theirs.write(in_chunks(CONTENT), "b", "text/csv")
    assert await read(theirs, file) == CONTENT


async def test_a_value_with_another_size_is_refused(files: StoredFiles):
    file = await files.write(in_chunks(CONTENT), "a", "text/csv")

    with pytest.raises(NodeFailure, match="unchanged"):
        await read(files, msgspec.structs.replace(file, size=5))


async def test_content_that_was_damaged_is_noticed_before_its_end(sqlite_store: SqliteStore, path: str):
    files = StoredFiles(sqlite_store)
    file = await files.write(in_chunks(CONTENT), "a", "text/csv")
    place = Path(f"{path}.blobs") / DIGEST[:2] / DIGEST
    place.write_bytes(CONTENT[:-1] + b"?")

    with pytest.raises(NodeFailure, match="damaged"):
        await read(files, file)


# Values


def test_a_file_is_a_value_and_back():
    file = File(DIGEST, 5, "a.csv", "text/csv")

    assert file_of(as_value(file)) == file
    assert list(as_value(file)["$file"]) == ["hash", "size", "name", "type"]
    assert [file_of(value) for value in (None, "x", [], {}, {"hash": DIGEST})] == [None] * 5


@pytest.mark.parametrize(
    "inside",
    [None, {}, {"hash": "x", "size": 1, "name": "a", "type": "b"}, {"hash": DIGEST, "size": -1, "name": "", "type": ""},
     {"hash": DIGEST, "size": 1, "name": "a", "type": "b", "more": 1}, {"hash": DIGEST.upper(), "size": 1, "name": "a",
     "type": "b"}, {"hash": DIGEST, "size": "1", "name": "a", "type": "b"}],
)  # fmt: skip
def test_a_value_that_only_looks_like_a_file_is_refused(inside: object):
    with pytest.raises(NodeFailure) as caught:
        file_of({"$file": inside})

    assert caught.value.error.type is ErrorType.PERMANENT


def test_a_name_is_the_last_part_of_a_path_without_what_a_header_cannot_have():
    told = ["/etc/passwd", "..\\..\\x.csv", "a\r\nSet-Cookie: b", "", "..", "/", "\u202egnp.exe", "ü" * 300 + ".csv"]

    assert [file_name(name) for name in told[:-1]] == [
        "passwd", "x.csv", "aSet-Cookie: b", "file", "file", "file", "gnp.exe",
    ]  # fmt: skip
    assert len(file_name(told[-1])) == 200
    assert file_name(told[-1]).endswith(".csv")


def test_a_media_type_that_no_header_can_have_is_unknown():
    told = ["text/csv", "text/csv; charset=utf-8", "text", "a/b\r\nX: y", ""]

    assert [media_type(each) for each in told] == [
        "text/csv", "text/csv; charset=utf-8", *["application/octet-stream"] * 3,
    ]  # fmt: skip


# How long they are kept


def test_a_text_names_a_file_wherever_it_does_and_in_any_order_of_its_fields():
    given = {"$file": {"name": "}", "type": "t", "size": 5, "hash": DIGEST}}
    entry = msgspec.json.encode([{"deep": [given]}])

    assert named_in(entry) == files_named_in(entry) == [DIGEST]
    assert files_named_in(b'{"hash":"%s","size":1}' % DIGEST.encode()) == []


async def sweep(store: Store, now: int) -> int:
    cut = Cutoffs(now=now, executions=0, letters=0, blobs=now - DAY)
    assert isinstance(store.blobs, retention.RemovableBlobs)
    async with store.transaction() as tx:
        return (await retention.remove_blobs(tx, store.blobs, "", cut, 100))[0]


async def test_a_file_stays_as_long_as_a_large_value_names_it(
    store: Store, files: StoredFiles, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stored_blobs, "LATELY", -60)
    file = await files.write(in_chunks(CONTENT), "a", "text/csv")
    text = msgspec.json.encode({"rows": ["x" * 70_000], "file": as_value(file)})
    value = await store.blobs.put(text)
    async with store.transaction() as tx:
        await stored_blobs.record(tx, value, store.now())
        inside = stored_files.names_inside(value, text)
        await tx.execute_many("insert_blob_reference", [*inside, BlobReference(value.hash, "e1")])
    later = store.now() + 2 * DAY

    assert await sweep(store, later) == 0
    assert await stored_files.is_named(store, file.hash, "e1")
    assert not await stored_files.is_named(store, file.hash, "e2")

    async with store.transaction() as tx:
        await tx.execute("release_blobs", later, "e1")
    swept = [await sweep(store, later + 1), await sweep(store, later + 1)]

    assert sum(swept) == 2
    assert await stored_files.size_of(store, file.hash, "default") is None
    with pytest.raises(NodeFailure, match="no content"):
        await read(files, file)
    assert await store.fetch_one("has_blob_content", file.hash) is None


async def test_what_a_worker_left_half_written_goes_after_a_day(postgres_store):
    await postgres_store.keep("insert_blob", "unfinished 1", 0, postgres_store.now())
    await postgres_store.keep("insert_blob_part", "unfinished 1", 0, b"some")

    assert await sweep(postgres_store, postgres_store.now()) == 0
    assert await sweep(postgres_store, postgres_store.now() + 2 * DAY) == 1
    assert await postgres_store.fetch_one("has_blob_content", "unfinished 1") is None

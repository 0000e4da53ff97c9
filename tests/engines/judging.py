"""The judgement over a store that nobody writes any more: the audit's, with what the world outside has seen."""

import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ropewalk.checker import Effect, Limits
from ropewalk.service.auditing import Audit, LoadBlob
from ropewalk.store import auditing
from ropewalk.store.access import Reader
from ropewalk.store.address import is_shared
from ropewalk.store.blobs import BlobFiles
from ropewalk.store.postgres import PostgresReader
from ropewalk.store.sqlite import SqliteReader


async def judge(
    db: str, effects: Sequence[Effect] = (), limits: Limits | None = None, *, at_rest: bool = True
) -> list[str]:
    """Everything that is wrong with what the store at `db` has; what was only claimed is, if it is `at_rest`."""
    async with _reading(db) as reader:
        load_blob = _blobs_in(reader) if is_shared(db) else BlobFiles(f"{db}.blobs").get
        return await judged(reader, load_blob, effects, limits, at_rest=at_rest)


async def kept_executions(db: str) -> list[str]:
    """Every execution the store at `db` has."""
    async with _reading(db) as reader:
        return [execution async for execution in auditing.every_execution(reader)]


@asynccontextmanager
async def _reading(db: str) -> AsyncIterator[Reader]:
    reader = await (PostgresReader if is_shared(db) else SqliteReader).open(db)
    try:
        yield reader
    finally:
        await reader.close()


def _blobs_in(reader: Reader) -> LoadBlob:
    async def load(digest: str) -> bytes:
        row = await reader.fetch_one("get_blob_content", digest)
        assert row is not None, f"blob {digest} is gone"
        value: bytes = row[0]
        return value

    return load


async def judged(
    reader: Reader,
    load_blob: LoadBlob,
    effects: Sequence[Effect] = (),
    limits: Limits | None = None,
    *,
    at_rest: bool = True,
) -> list[str]:
    """Everything that is wrong with a store at rest, or with what was seen of it from outside."""
    seen: defaultdict[str, list[Effect]] = defaultdict(list)
    for effect in effects:
        seen[effect.execution].append(effect)
    audit = Audit(reader, at_rest=at_rest, limits=limits, effects=seen, load_blob=load_blob)
    wrong = [violation async for each in audit.executions() for violation in each.violations]
    return [str(each) for each in (*wrong, *await audit.together())]


def every_execution(db: str) -> list[str]:
    return [row[0] for row in ask(db, "select id from execution order by id")]


def ask(db: str, question: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(db)
    try:
        return connection.execute(question).fetchall()
    finally:
        connection.close()

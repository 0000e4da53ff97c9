"""The files of executions: which an execution names, and content that is brought for a start."""

import re
from collections.abc import AsyncIterable
from typing import Any, Final

import msgspec

from ropewalk.core.errors import NotFound
from ropewalk.core.events import Blob
from ropewalk.store import files
from ropewalk.store import log as stored_log
from ropewalk.store.access import Reader, Store

MOST: Final = 1_000
"""So many files of an execution are listed."""
Json = dict[str, Any]

# A file has texts and numbers in it, and nothing nested.
_FILE: Final = re.compile(rb'"\$file":(\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})')


async def list_files(reader: Reader, workspace: str, execution: str) -> list[Json]:
    """The files that an execution names, by hash; what only a large value names has no name here."""
    found = await files.of_execution(reader, execution, workspace, MOST)
    names = await _names(reader, execution, {blob.hash for blob in found})
    return [
        {"hash": blob.hash, "size": blob.size, "name": None, "type": None, **names.get(blob.hash, {})} for blob in found
    ]


async def _names(reader: Reader, execution: str, wanted: set[str]) -> dict[str, Json]:
    """What files are called where the log names them first."""
    found: dict[str, Json] = {}
    async for page in stored_log.pages(reader, execution):
        for entry in page:
            for text in _FILE.findall(entry):
                told = msgspec.json.decode(text)
                if told.get("hash") in wanted and told["hash"] not in found:
                    found[told["hash"]] = {name: told.get(name) for name in ("name", "type")}
        if len(found) == len(wanted):
            break
    return found


async def find_file(reader: Reader, workspace: str, execution: str, digest: str) -> Blob:
    """The content of a file that the execution names; NotFound for any other, also if it is there."""
    size = await files.size_of(reader, digest, workspace)
    if size is None or not await files.is_named(reader, digest, execution):
        raise NotFound(f"execution {execution} names no file {digest}")
    return Blob(digest, size)


async def bring(store: Store, workspace: str, chunks: AsyncIterable[bytes], most: int) -> Blob:
    """Keeps content for the workspace; it goes after a day unless an execution names it by then.

    BlobTooLarge if there are more bytes than `most`, and then nothing is kept.
    """
    blob = await store.blobs.put_stream(chunks, most)
    async with store.transaction() as tx:
        await files.own(tx, blob, workspace, store.now())
    return blob

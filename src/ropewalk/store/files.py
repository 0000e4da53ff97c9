"""Files: content among the blobs that values name by its hash, in logs and in the large values that logs name.

A blob that is a large value may name files too. That is written down like the names in a log, with the blob in the
place of the execution, before any log names the blob; so a file goes after the last blob that names it.
"""

from typing import Final

from ropewalk.core.events import Blob
from ropewalk.store.access import Reader, Transaction
from ropewalk.store.blobs import record
from ropewalk.store.naming import files_named_in
from ropewalk.store.rows import BlobReference

INSIDE: Final = "in "
"""What stands before the hash of a blob that names files, where the id of an execution would be."""


async def own(tx: Transaction, blob: Blob, workspace: str, now: int) -> None:
    """The store knows of the content, and that the workspace has brought it."""
    await record(tx, blob, now)
    await tx.execute("insert_file_owner", blob.hash, workspace)


async def size_of(reader: Reader, digest: str, workspace: str) -> int | None:
    """How large the content of a file is; None if the workspace has not brought it, or it is gone."""
    row = await reader.fetch_one("get_file_size", digest, workspace)
    return None if row is None else row[0]


async def is_named(reader: Reader, digest: str, execution: str) -> bool:
    """Whether the log of the execution names the file, or a large value does that the log names."""
    return await reader.fetch_one("file_named_by", digest, execution, INSIDE) is not None


async def of_execution(reader: Reader, execution: str, workspace: str, limit: int) -> list[Blob]:
    """The files of the workspace that the log of an execution names, or a large value does that the log names."""
    return [Blob(*row) for row in await reader.fetch("files_of_execution", execution, workspace, INSIDE, limit)]


def names_inside(blob: Blob, text: bytes) -> list[BlobReference]:
    """The files that a large value names; to be written before a log names the value."""
    return [BlobReference(digest, f"{INSIDE}{blob.hash}") for digest in files_named_in(text)]


async def forget(tx: Transaction, digest: str) -> None:
    """The content of a blob is gone, and with it what it named."""
    await tx.execute("remove_file_owners", digest)
    await tx.execute("remove_references_of", f"{INSIDE}{digest}")

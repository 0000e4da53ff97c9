"""What is wrong with the files that an execution names: content that is gone or damaged, names the store has missed."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from ropewalk.core.errors import RopewalkError
from ropewalk.core.events import Blob
from ropewalk.store import files
from ropewalk.store.access import Reader
from ropewalk.store.naming import files_named_in

ReadFile = Callable[[str], AsyncIterator[bytes]]
"""The content under a hash, in parts."""
MOST: Final = 10_000


class AuditedFiles:
    """Looks at the files of one execution after the other."""

    def __init__(self, reader: Reader, read: ReadFile | None) -> None:
        self._reader = reader
        self._read = read

    async def troubles(
        self, execution: str, workspace: str, entries: Sequence[tuple[int, bytes]], has_large: bool
    ) -> AsyncIterator[str]:
        """What is wrong. A value that claims to be a file, of content that was never brought, is none of ours."""
        named = dict.fromkeys(digest for _, entry in entries for digest in files_named_in(entry))
        if not named and not has_large:
            return
        for digest in named:
            is_ours = await files.size_of(self._reader, digest, workspace) is not None
            if is_ours and not await files.is_named(self._reader, digest, execution):
                yield f"file {digest}: the store does not know that this execution names it"
        for blob in await files.of_execution(self._reader, execution, workspace, MOST):
            if trouble := await self._trouble(blob):
                yield f"file {blob.hash}: {trouble}"

    async def _trouble(self, blob: Blob) -> str | None:
        if self._read is None:
            return None
        try:
            size = sum([len(chunk) async for chunk in self._read(blob.hash)])
        except RopewalkError as error:
            return str(error)
        return None if size == blob.size else f"{size} bytes were kept, {blob.size} were recorded"

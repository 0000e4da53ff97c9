"""Files in the store of the worker: content among the blobs, read by the workspace that has brought it alone."""

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import aclosing
from typing import Final, Protocol, Self

from ropewalk.core.errors import NotFound, RopewalkError
from ropewalk.core.events import Blob
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.files import File, file_name, media_type
from ropewalk.store import files
from ropewalk.store.access import Store
from ropewalk.store.blobs import BlobTooLarge
from ropewalk.store.workspaces import DEFAULT

LARGEST: Final = 2**30
MIB: Final = 2**20


class Room(Protocol):
    """What an execution may still store."""

    def take(self, size: int) -> None:
        """So many bytes are about to be written; NodeFailure if there is no room for them."""

    def give_back(self, size: int) -> None:
        """So many bytes that were taken are counted otherwise now, or were not written."""

    def count(self, blob: Blob) -> None:
        """The content is stored."""


class RunRoom:
    """What one attempt may write, where the execution is another worker's: that worker counts what is reported."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, size: int) -> None:
        if size > self._left:
            raise NodeFailure.permanent(
                "the files of this attempt are more than an execution may store: make them smaller, or raise "
                "execution.max_mib and retry"
            )
        self._left -= size

    def give_back(self, size: int) -> None:
        self._left += size

    def count(self, blob: Blob) -> None:
        self._left -= blob.size


class StoredFiles:
    """The files of one store, as one workspace reaches them."""

    def __init__(
        self, store: Store, largest: int = LARGEST, workspace: str = DEFAULT, room: Room | None = None
    ) -> None:
        self._store = store
        self._largest = largest
        self._workspace = workspace
        self._room: Room = RunRoom(2**62) if room is None else room

    def bound(self, workspace: str, room: Room) -> Self:
        """The same for one attempt: in its workspace, and within what its execution may store."""
        return type(self)(self._store, self._largest, workspace, room)

    async def read(self, file: File) -> AsyncIterator[bytes]:
        """The content in parts; the last comes only if all of them together are what the hash says."""
        try:
            await self._require(file)
            async with aclosing(self._store.blobs.chunks(file.hash)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except NodeFailure:
            raise
        except NotFound as error:
            raise _gone(file) from error
        except RopewalkError as error:
            raise NodeFailure.transient(f"the file {file.name!r} cannot be read: {error}") from error

    async def _require(self, file: File) -> None:
        size = await files.size_of(self._store, file.hash, self._workspace)
        if size is None:
            raise _gone(file)
        if size != file.size:
            raise NodeFailure.permanent(
                f"the file {file.name!r} has {size} bytes, and its value says {file.size}: hand it on unchanged"
            )

    async def write(self, chunks: AsyncIterable[bytes], name: str, type: str) -> File:  # noqa: A002 -- what a file calls it
        """Keeps what comes, durable on return; a permanent failure if it is more than a limit."""
        counting = _Counting(chunks, self._room)
        try:
            blob = await self._store.blobs.put_stream(counting.counted(), self._largest)
            async with self._store.transaction() as tx:
                await files.own(tx, blob, self._workspace, self._store.now())
        except NodeFailure:
            raise
        except BlobTooLarge as error:
            most = f"{self._largest // MIB} MiB" if self._largest >= MIB else f"{self._largest} bytes"
            raise NodeFailure.permanent(
                f"the file {file_name(name)!r} is larger than {most}: make it smaller, or raise files.max_mib"
            ) from error
        except RopewalkError as error:
            raise NodeFailure.transient(f"the file {file_name(name)!r} cannot be kept: {error}") from error
        finally:
            self._room.give_back(counting.taken)
        self._room.count(blob)
        return File(blob.hash, blob.size, file_name(name), media_type(type))


class _Counting:
    """Takes room for what goes through."""

    def __init__(self, chunks: AsyncIterable[bytes], room: Room) -> None:
        self._chunks = chunks
        self._room = room
        self.taken = 0

    async def counted(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            self._room.take(len(chunk))
            self.taken += len(chunk)
            yield chunk


def _gone(file: File) -> NodeFailure:
    return NodeFailure.permanent(
        f"there is no content of the file {file.name!r} in this workspace: it was removed with the last execution that "
        "named it, or was never brought here"
    )

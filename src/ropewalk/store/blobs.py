"""Values too large for the log, kept as files under their hash: `<root>/ab/abcdef…`.

A blob is whole or absent: written under another name, synced, renamed, and every directory on its way synced. That is
before the commit that names it, so nothing in the store ever points to a missing one, not after a loss of power either.
What a crash leaves half written is swept away at the next opening, when no other process can be writing.

A value that is there already is not written again but marked as used, and what was used lately is not removed: the
writer that found it there is about to name it. Marking and removing keep out of each other's way by a lock on the
directory.
"""

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from typing import Final, ParamSpec, TypeVar

from uuid_utils import uuid7

from ropewalk.core.errors import NotFound, RopewalkError
from ropewalk.core.events import Blob
from ropewalk.store import private_files
from ropewalk.store.access import Transaction
from ropewalk.store.errors import StoreCorrupted, StoreFull, StoreUnavailable
from ropewalk.store.rows import BlobEntry

LARGEST: Final = 64 * 1024 * 1024
CHUNK: Final = 512 * 1024
"""How much of a value is read at once by a reader that hands it on."""
LATELY: Final = 24 * 3600
"""How long (s) a value is not removed after it was written or found."""

_HASH: Final = re.compile("[0-9a-f]{64}")
_UNFINISHED: Final = ".unfinished"
P = ParamSpec("P")
T = TypeVar("T")
# By handle and never through a link: a link cannot lead us out of our directory.
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class BlobTooLarge(RopewalkError):
    """The value is larger than a blob may be; hand on a reference instead."""


def is_hash(digest: str) -> bool:
    """Whether there can be a blob under this name."""
    return _HASH.fullmatch(digest) is not None


class BlobFiles:
    """Blobs in one directory, which comes to be with the first."""

    def __init__(self, root: str, largest: int = LARGEST) -> None:
        self.root = root
        self.largest = largest

    async def put(self, value: bytes | bytearray | memoryview) -> Blob:
        """Keeps the value; durable on return. A value that is there already is not written again."""
        return await asyncio.to_thread(self.put_here, value)

    async def put_stream(self, chunks: AsyncIterable[bytes], most: int) -> Blob:
        """Keeps what comes in parts; durable on return, and nothing of it stays if it does not come whole."""
        arriving = await to_its_end(_Arriving, self.root)
        try:
            async for part in parts_of(chunks, most):
                await to_its_end(arriving.add, part)
            return await to_its_end(self._take_over, arriving)
        finally:
            await to_its_end(arriving.discard)

    async def get(self, digest: str) -> bytes:
        """The value under this hash, checked against it."""
        return await asyncio.to_thread(self._get, digest)

    async def chunks(self, digest: str) -> AsyncGenerator[bytes, None]:
        """The same a part at a time. The last part comes only if all of them together are what they should be."""
        file = await asyncio.to_thread(self._opened, digest)
        try:
            async for chunk in verified(lambda at: to_its_end(file.read, CHUNK), digest, self.root):
                yield chunk
        finally:
            file.close()

    async def remove(self, tx: Transaction, digest: str) -> bool:
        """The value goes, whether or not its row's transaction is kept; false if it was written or found lately."""
        return await asyncio.to_thread(self._remove, digest)

    def sweep(self) -> int:
        """Removes what was never finished; how many there were. Only for the owner, before it writes."""
        private_files.tighten(self.root)
        with contextlib.suppress(FileNotFoundError), _opened(self.root, None) as root:
            unfinished = [name for name in os.listdir(root) if name.endswith(_UNFINISHED)]
            for name in unfinished:
                os.unlink(name, dir_fd=root)
            return len(unfinished)
        return 0

    def put_here(self, value: bytes | bytearray | memoryview) -> Blob:
        """The same on the calling thread, for where nothing may come in between."""
        if len(value) > self.largest:
            raise BlobTooLarge(f"{len(value)} bytes are too many for a blob, at most {self.largest} are kept")
        blob = Blob(hashlib.sha256(value).hexdigest(), len(value))
        with _in_our_words(self.root):
            _make(self.root)
            self._place(blob, lambda root, folder: _write_whole(root, folder, blob.hash, value))
        return blob

    def _take_over(self, arriving: "_Arriving") -> Blob:
        """What has come is whole: it is kept under its hash from now on."""
        with _in_our_words(self.root):
            blob = arriving.finish()
            self._place(blob, lambda root, folder: arriving.move(root, folder, blob.hash))
        return blob

    def _place(self, blob: Blob, write: Callable[[int, int], None]) -> None:
        """The value is under its hash, written there unless it is already, and that is durable."""
        with _opened(os.path.dirname(self.root), None) as home, _opened(self.root, None) as root:
            with contextlib.suppress(FileExistsError):
                os.mkdir(blob.hash[:2], 0o700, dir_fd=root)
            with _opened(blob.hash[:2], root) as folder:
                with _locked(root, fcntl.LOCK_SH):
                    is_there = _is_there(folder, blob.hash, blob.size)
                    if is_there:
                        os.utime(blob.hash, dir_fd=folder, follow_symlinks=False)
                if not is_there:
                    write(root, folder)
                os.fsync(folder)
            # Each time: what is there already may have been made by another writer that has not come to this yet.
            os.fsync(root)
            os.fsync(home)

    def _remove(self, digest: str) -> bool:
        try:
            with (
                _in_our_words(self.root),
                _opened(self.root, None) as root,
                _opened(digest[:2], root) as folder,
                _locked(root, fcntl.LOCK_EX),
            ):
                return _remove_unless_used(folder, digest)
        except FileNotFoundError:
            return True

    def _get(self, digest: str) -> bytes:
        with self._opened(digest) as file:
            value = file.readall()
        if hashlib.sha256(value).hexdigest() != digest:
            raise StoreCorrupted(f"blob {digest} in {self.root} is damaged: restore it from a backup")
        return value

    def _opened(self, digest: str) -> FileIO:
        if not is_hash(digest):
            raise NotFound(f"there is no blob {digest[:80]!r}")
        try:
            with _in_our_words(self.root), _opened(self.root, None) as root, _opened(digest[:2], root) as folder:
                descriptor = os.open(digest, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                return FileIO(descriptor)
        except FileNotFoundError as error:
            raise NotFound(f"there is no blob {digest}") from error


class _Arriving:
    """A value that comes in parts, in a file under another name until it is whole."""

    def __init__(self, root: str) -> None:
        self._root, self._name = root, f"{uuid7()}{_UNFINISHED}"
        self._summed, self._size = hashlib.sha256(), 0
        with _in_our_words(root):
            _make(root)
            with _opened(root, None) as folder:
                self._file = FileIO(_created(folder, self._name), "w")

    def add(self, part: bytes) -> None:
        """The next part."""
        self._summed.update(part)
        self._size += len(part)
        with _in_our_words(self._root):
            _write_all(self._file, part)

    def finish(self) -> Blob:
        """Nothing follows, and what has come is on the disk."""
        os.fsync(self._file.fileno())
        self._file.close()
        return Blob(self._summed.hexdigest(), self._size)

    def move(self, root: int, folder: int, digest: str) -> None:
        """From now on it is what it is called."""
        os.rename(self._name, digest, src_dir_fd=root, dst_dir_fd=folder)

    def discard(self) -> None:
        """What was not moved goes."""
        self._file.close()
        with contextlib.suppress(FileNotFoundError), _in_our_words(self._root), _opened(self._root, None) as root:
            os.unlink(self._name, dir_fd=root)


async def to_its_end(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the call gives, on another thread. A caller that is cancelled waits for it all the same: what the call works
    with is closed next, and its number may be given to another file."""
    work = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


async def parts_of(chunks: AsyncIterable[bytes], most: int) -> AsyncGenerator[bytes, None]:
    """The same bytes in parts of one size, but for the last; BlobTooLarge as soon as there are too many."""
    rest, size = bytearray(), 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise BlobTooLarge(f"there are more than {most} bytes")
        rest += chunk
        while len(rest) >= CHUNK:
            yield bytes(memoryview(rest)[:CHUNK])
            del rest[:CHUNK]
    if rest:
        yield bytes(rest)


async def verified(read: Callable[[int], Awaitable[bytes]], digest: str, where: str) -> AsyncGenerator[bytes, None]:
    """What `read` gives from each place on, until there is no more; held against the hash before the last of it."""
    summed, at = hashlib.sha256(), 0
    chunk = await read(at)
    while chunk:
        summed.update(chunk)
        at += len(chunk)
        following = await read(at)
        if not following and summed.hexdigest() != digest:
            raise StoreCorrupted(f"blob {digest} in {where} is damaged: restore it from a backup")
        yield chunk
        chunk = following


@contextmanager
def _opened(name: str, parent: int | None) -> Iterator[int]:
    descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _in_our_words(root: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreFull(f"there is no room left in {root}: make some on its disk, then try again") from error
        raise StoreUnavailable(f"{root} cannot be used ({error.strerror}): it must be a directory of ours") from error


@contextmanager
def _locked(root: int, how: int) -> Iterator[None]:
    """Ours until the end, in this process and in others; every opening of the directory is a holder of its own."""
    fcntl.flock(root, how)
    try:
        yield
    finally:
        fcntl.flock(root, fcntl.LOCK_UN)


def _remove_unless_used(folder: int, digest: str) -> bool:
    used = os.stat(digest, dir_fd=folder, follow_symlinks=False).st_mtime
    # The time of the file system against the clock it is taken from: neither decides anything else.
    if time.time() - used < LATELY:
        return False
    os.unlink(digest, dir_fd=folder)
    return True


def _is_there(folder: int, digest: str, size: int) -> bool:
    try:
        return os.stat(digest, dir_fd=folder, follow_symlinks=False).st_size == size
    except FileNotFoundError:
        return False


def _write_whole(root: int, folder: int, digest: str, value: bytes | bytearray | memoryview) -> None:
    name = f"{uuid7()}{_UNFINISHED}"
    try:
        _write_synced(root, name, value)
        os.rename(name, digest, src_dir_fd=root, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=root)
        raise


def _write_synced(root: int, name: str, value: bytes | bytearray | memoryview) -> None:
    with FileIO(_created(root, name), "w") as file:
        _write_all(file, value)
        os.fsync(file.fileno())


def _created(root: int, name: str) -> int:
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=root)


def _write_all(file: FileIO, value: bytes | bytearray | memoryview) -> None:
    rest = memoryview(value)
    while rest:
        rest = rest[file.write(rest) :]


def _make(root: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkdir(root, 0o700)


async def record(tx: Transaction, blob: Blob, now: int) -> None:
    """The store knows of the blob."""
    await tx.execute("insert_blob", *BlobEntry(blob.hash, blob.size, now))

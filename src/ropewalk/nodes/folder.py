"""The folder of a workspace on the worker's disk: every file there is opened by handle, below one root, by no link.

A path is walked a part at a time, each part opened in the folder before it and never through a link. So neither `..`
nor a link that was put there meanwhile leads out of the folder. What is written comes to be under its name whole: it
is written elsewhere in the same file system first.
"""

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from itertools import islice
from typing import Final, ParamSpec, TypeVar

import uuid_utils
from msgspec import Struct

from ropewalk.nodes.failure import NodeFailure

UNFINISHED: Final = ".ropewalk-unfinished"
LONGEST_PATH: Final = 1_000
LONGEST_PART: Final = 255
DEEPEST: Final = 32
MOST_SEEN: Final = 100_000
"""How many files and folders one listing looks at."""
ABANDONED: Final = 24 * 3600
"""After so long (s) what is unfinished is finished by no worker."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
P = ParamSpec("P")
T = TypeVar("T")


class Found(Struct, frozen=True):
    """A file or folder, as it was when it was looked at."""

    path: str
    size: int
    modified: float
    is_folder: bool = False


async def on_a_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the call gives. A caller that is cancelled waits for it all the same: what it works with is closed next."""
    work = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


def path_problem(path: str, *, may_be_empty: bool = False) -> str | None:
    """Why a text is no path in the folder, if it is none."""
    parts = path.split("/")
    if not path:
        return None if may_be_empty else "must name a file"
    if len(path) > LONGEST_PATH or len(parts) > DEEPEST:
        return f"must have at most {LONGEST_PATH:,} characters and {DEEPEST} parts"
    if _CONTROL.search(path) or any(len(part.encode(errors="replace")) > LONGEST_PART for part in parts):
        return f"must have no control characters, and no part of more than {LONGEST_PART} bytes"
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        return "must be a path below the workspace's folder, like reports/may.csv: no / in front, no . or .. in it"
    return f"{UNFINISHED} is not for workflows" if parts[0] == UNFINISHED else None


class Folder:
    """What one workspace has below the root."""

    def __init__(self, root: str, workspace: str) -> None:
        self._root = root
        self._name = workspace if _PLAIN.fullmatch(workspace) else hashlib.sha256(workspace.encode()).hexdigest()

    def open(self, path: str) -> FileIO:
        """The file, to be read."""
        with self._parent(path) as (folder, name), _told(path):
            # Without waiting: a pipe that was put there has no writer.
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            file = FileIO(descriptor)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                file.close()
                raise NodeFailure.permanent(f"{path!r} is no file")
            return file

    def real_path(self, path: str) -> str:
        """Where a file is on the disk, for a library that opens it by itself; no part of the path is a link."""
        with self._parent(path) as (folder, name), _told(path):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        real = os.path.join(os.path.realpath(self._root), self._name, path)
        if not stat.S_ISREG(found.st_mode) or not os.path.samestat(found, os.lstat(real)):
            raise NodeFailure.permanent(f"{path!r} is no file")
        return real

    def write(self, path: str) -> "Writing":
        """A file that comes to be under this name once it is whole."""
        return Writing(self, path)

    def stat(self, path: str) -> Found | None:
        """What is there, if anything is; a link is nothing."""
        try:
            with self._parent(path) as (folder, name), _told(path):
                return _found(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
        except FileNotFoundError:
            return None

    def move(self, source: str, target: str, *, replaces: bool) -> None:
        """The file has the other name, at once; FileExistsError if there is one and it is not to be replaced."""
        found = self.stat(source)
        if found is None:
            raise FileNotFoundError(source)
        if found.is_folder:
            raise NodeFailure.permanent(f"{source!r} is a folder: files are moved one by one")
        with self._parent(source) as (old, name), self._parent(target, make=True) as (new, other), _told(target):
            _put(old, name, new, other, replaces=replaces)
            os.fsync(new)

    def delete(self, path: str) -> bool:
        """It is gone, a folder only if nothing is in it; false if there was none."""
        try:
            with self._parent(path) as (folder, name), _told(path):
                is_folder = stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
                (os.rmdir if is_folder else os.unlink)(name, dir_fd=folder)
                os.fsync(folder)
        except FileNotFoundError:
            return False
        return True

    def entries(self, path: str) -> list[Found]:
        """What is directly in a folder, by name; links and what is neither file nor folder are left out."""
        with self._opened(path.split("/") if path else [], make=False) as folder, os.scandir(folder) as entries:
            made = [_looked_at(path, each) for each in islice(entries, MOST_SEEN + 1)]
        if len(made) > MOST_SEEN:
            raise NodeFailure.permanent(f"there are more than {MOST_SEEN:,} files in the folder {path!r}")
        return sorted((each for each in made if each is not None), key=lambda each: each.path)

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        *parts, name = path.split("/")
        if problem := path_problem(path):
            raise NodeFailure.permanent(f"{path[:80]!r}: {problem}")
        with self._opened(parts, make=make) as folder:
            yield folder, name

    @contextmanager
    def _opened(self, parts: list[str], *, make: bool) -> Iterator[int]:
        """The one way in."""
        assert not {"", ".", ".."} & set(parts), "a path is checked before it is walked"
        try:
            folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise NodeFailure.permanent(f"files.root cannot be used where this node runs: {error.strerror}") from None
        try:
            for at, part in enumerate([self._name, *parts]):
                if make or at == 0:
                    with contextlib.suppress(FileExistsError), _told("/".join(parts)):
                        os.mkdir(part, 0o700, dir_fd=folder)
                with _told("/".join(parts)):
                    inner = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)


class Writing:
    """A file on its way: written elsewhere, then given its name at once, or never."""

    def __init__(self, folder: Folder, path: str) -> None:
        self._folder, self._path, self._name = folder, path, str(uuid_utils.uuid7())
        with folder._opened([UNFINISHED], make=True) as unfinished, _told(path):
            _sweep(unfinished)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = FileIO(os.open(self._name, flags, 0o600, dir_fd=unfinished), "w")

    def add(self, chunk: bytes) -> None:
        """What comes next."""
        rest = memoryview(chunk)
        with _told(self._path):
            while rest:
                rest = rest[self._file.write(rest) :]

    def finish(self, *, replaces: bool) -> None:
        """It is under its name, durable; FileExistsError if there is one and it is not to be replaced."""
        with (
            self._folder._opened([UNFINISHED], make=False) as unfinished,
            self._folder._parent(self._path, make=True) as (folder, name),
            _told(self._path),
        ):
            os.fsync(self._file.fileno())
            _put(unfinished, self._name, folder, name, replaces=replaces)
            os.fsync(folder)

    def close(self) -> None:
        """What has no name yet is gone."""
        self._file.close()
        with (
            contextlib.suppress(FileNotFoundError),
            self._folder._opened([UNFINISHED], make=False) as unfinished,
        ):
            os.unlink(self._name, dir_fd=unfinished)


def _put(old: int, name: str, new: int, other: str, *, replaces: bool) -> None:
    if replaces:
        os.rename(name, other, src_dir_fd=old, dst_dir_fd=new)
        return
    # A link of the file system itself: it is made at once, and never in the place of another.
    os.link(name, other, src_dir_fd=old, dst_dir_fd=new, follow_symlinks=False)
    os.unlink(name, dir_fd=old)


def _sweep(unfinished: int) -> None:
    """What workers have left there a day ago goes; no more than a few at a time."""
    with os.scandir(unfinished) as entries:
        for each, _ in zip(entries, range(20), strict=False):
            with contextlib.suppress(FileNotFoundError):
                # The time of the file system against the clock that it is taken from.
                if time.time() - each.stat(follow_symlinks=False).st_mtime > ABANDONED:
                    os.unlink(each.name, dir_fd=unfinished)


def _looked_at(path: str, entry: os.DirEntry[str]) -> Found | None:
    try:
        about = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # it was removed meanwhile
    is_ours = not path and entry.name == UNFINISHED
    return None if is_ours else _found(f"{path}/{entry.name}" if path else entry.name, about)


def _found(path: str, about: os.stat_result) -> Found | None:
    if stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode):
        is_folder = stat.S_ISDIR(about.st_mode)
        return Found(path, 0 if is_folder else about.st_size, about.st_mtime, is_folder)
    return None


@contextmanager
def _told(path: str) -> Iterator[None]:
    """What the file system refuses, as a failure that says which path; that a file is there or not is left alone."""
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except OSError as error:
        told = f"{path!r}: {error.strerror}"
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EACCES, errno.EPERM,
                           errno.ENAMETOOLONG, errno.EROFS, errno.EXDEV):  # fmt: skip
            raise NodeFailure.permanent(told) from None
        raise NodeFailure.transient(told) from None

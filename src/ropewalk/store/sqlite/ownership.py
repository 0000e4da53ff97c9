"""One process owns a store: the one that holds the lock on `<database>.lock`.

The lock is the kernel's, so it is gone the moment its holder is, however it died. What is written in the file is for
people and for the command line, and means nothing unless the lock is held.
"""

import fcntl
import os
import socket
import time
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.core.errors import Unavailable
from ropewalk.core.instant import rfc3339
from ropewalk.store import private_files
from ropewalk.store.errors import StoreInUse
from ropewalk.store.sqlite.files import Files

# Always written whole and in one piece, so that no reader gets the end of an older text.
_SIZE: Final = 1024
# A process that only looks holds the lock for a moment; that must not turn an owner away.
_TRIES: Final = 10
_PAUSE: Final = 0.02


class OwnerInfo(Struct, frozen=True, rename="camel"):
    """Who owns a store, since when, and the control socket it listens on."""

    pid: int
    host: str
    started_at: str
    socket: str | None = None


class _Held(Struct, frozen=True):
    """What the lock file says besides: which files its owner has open."""

    files: Files | None = None


class Ownership:
    """The lock of one store, held until `release` or the end of the process."""

    def __init__(self, path: str, started_at: int) -> None:
        """Takes the lock; StoreInUse if another process, or this one, has it."""
        self.lock = lock_path(path)
        self._descriptor = _locked(path)
        private_files.tighten(self.lock)
        _held[self._descriptor] = self
        self.left = self._files()
        """The files of the last owner, if it did not close them."""
        self._info = OwnerInfo(os.getpid(), socket.gethostname()[:255], rfc3339(started_at))
        self._held = _Held(self.left)
        self._say()

    def set_socket(self, path: str | None) -> None:
        """Says where the owner listens."""
        self._info = msgspec.structs.replace(self._info, socket=path)
        self._say()

    def set_files(self, files: Files) -> None:
        """Says which files the owner has open, for the one that comes after a crash."""
        self._held = _Held(files)
        self._say()

    def release(self, *, is_closed: bool = True) -> None:
        """Lets the next one in. The file stays: one that came for it meanwhile may hold it open.

        If the files are not closed as they should be, the next one still learns which they were.
        """
        self._write(b"" if is_closed else msgspec.json.encode(self._held))
        _held.pop(self._descriptor, None)
        os.close(self._descriptor)

    def _files(self) -> Files | None:
        try:
            return msgspec.json.decode(os.pread(self._descriptor, _SIZE, 0), type=_Held).files
        except msgspec.DecodeError:
            return None

    def _say(self) -> None:
        self._write(msgspec.json.encode({**msgspec.to_builtins(self._info), **msgspec.to_builtins(self._held)}))

    def _write(self, text: bytes) -> None:
        assert len(text) < _SIZE, "the path of a socket is short"
        os.pwrite(self._descriptor, text.ljust(_SIZE - 1) + b"\n", 0)


def owner_info(path: str) -> OwnerInfo | None:
    """Who owns the store now; None if no process does."""
    try:
        descriptor = os.open(lock_path(path), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _holder(descriptor, path)
    finally:
        os.close(descriptor)


def is_owned_here(path: str) -> bool:
    """Whether this process is the owner of the store."""
    return any(each.lock == lock_path(path) for each in _held.values())


def lock_path(path: str) -> str:
    """The lock file of a database, the same through every link to it."""
    return f"{os.path.realpath(path)}.lock"


def _holder(descriptor: int, path: str) -> OwnerInfo | None:
    for _ in range(_TRIES):
        if _try_lock(descriptor, fcntl.LOCK_SH):
            return None
        try:
            return msgspec.json.decode(os.pread(descriptor, _SIZE, 0), type=OwnerInfo)
        except msgspec.DecodeError:
            time.sleep(_PAUSE)  # between taking the lock and signing it, or the other way round
    raise Unavailable(f"{lock_path(path)} is held, but does not say by whom: try again")


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locked(path: str) -> int:
    for _ in range(_TRIES):
        descriptor = os.open(lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _try_lock(descriptor, fcntl.LOCK_EX) and _is_current(descriptor, path):
            return descriptor
        os.close(descriptor)
        time.sleep(_PAUSE)
    raise _in_use(path)


def _is_current(descriptor: int, path: str) -> bool:
    """Whether the file we locked is still the one others will find."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(lock_path(path)))
    except FileNotFoundError:
        return False


def _in_use(path: str) -> StoreInUse:
    owner = owner_info(path)
    whose = f"process {owner.pid} on {owner.host} since {owner.started_at}" if owner else "a process that just left"
    return StoreInUse(
        f"{path} is in use by {whose}: stop it, send it your request with the `ropewalk` command, or choose another "
        "database"
    )


_held: dict[int, Ownership] = {}


def _let_go_in_child() -> None:
    """A forked child shares the lock; it must not keep it beyond its parent."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_let_go_in_child)

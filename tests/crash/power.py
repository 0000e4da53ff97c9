"""What a loss of power leaves of a store: told from the system calls of the process that wrote it.

A kill takes the process and leaves the operating system, which writes everything out. A machine that goes down takes
along what was not synced: writes, whole or from any sector on, and names in directories, one and not the other. Here a
process is traced while it works; then the disk is put together as it may be found after any of its calls.
"""

import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, field

SECTOR: Final = 512
TRACER: Final = "strace"
LUCK: Final = (0.0, 0.1, 0.5, 0.9, 1.0)
"""How likely a write that was not synced has reached the disk."""

_TRACED: Final = (
    "openat", "close", "write", "pwrite64", "ftruncate", "fsync", "fdatasync", "mkdir", "mkdirat", "unlink", "unlinkat",
    "rename", "renameat", "renameat2",
)  # fmt: skip
_LINE: Final = re.compile(r"(\d+) +(.*)")
_CALL: Final = re.compile(r"(\w+)\((.*)\) += (-?\d+)(?:<(.*)>)?", re.DOTALL)
_RESUMED: Final = re.compile(r"<\.\.\. \w+ resumed>(.*)", re.DOTALL)
_UNFINISHED: Final = " <unfinished ...>"


class NoTracer(Exception):
    """There is no strace: install it, as `make setup` does where it may."""


def traced(log: Path) -> list[str]:
    """What to write before a command, so that all it does to files is in this log."""
    tracer = shutil.which(TRACER)
    if tracer is None:
        raise NoTracer("the tests of power losses need strace: apt-get install strace")
    subprocess.run([tracer, "-o", "/dev/null", "true"], check=True)  # or this place does not allow tracing
    calls = f"trace={','.join(_TRACED)}"
    return [tracer, "--seccomp-bpf", "-f", "-y", "-xx", "-s", "16777216", "-e", calls, "-o", str(log)]


class Call(Struct, frozen=True):
    """A system call that was answered; `after` calls had been answered when it was made."""

    name: str
    arguments: list[str]
    answer: int
    path: str | None
    after: int

    def is_on(self, *names: str) -> bool:
        """Whether its handle is one on a file of such a name."""
        return Path(_text(self.arguments[0].partition("<")[2].removesuffix(">"))).name in names


def calls_in(log: Path) -> Iterator[Call]:
    """Every call that succeeded, in the order of the answers."""
    made: dict[str, tuple[str, int]] = {}
    answered = 0
    with log.open() as lines:
        for line in lines:
            found = _LINE.match(line)
            assert found, f"strace said {line[:200]!r}"
            thread, text = found.groups()
            if text.endswith(_UNFINISHED):
                made[thread] = text.removesuffix(_UNFINISHED), answered
                continue
            after = answered
            if resumed := _RESUMED.match(text):
                begun, after = made.pop(thread)
                text = begun + resumed[1]
            call = _CALL.match(text)
            if call and int(call[3]) >= 0:
                path = None if call[4] is None else _text(call[4])
                yield Call(call[1], call[2].split(", "), int(call[3]), path, after)
                answered += 1


def _bytes(quoted: str) -> bytes:
    return bytes.fromhex(quoted.strip('"').replace("\\x", ""))


def _text(quoted: str) -> str:
    return _bytes(quoted).decode().removesuffix(" (deleted)")


class Change(Struct):
    """Something done to a file or a directory, on the disk for sure once it is synced."""

    at: int
    """The call that did it."""
    offset: int = 0
    data: bytes | None = None
    """None: everything from `offset` on is cut off."""
    name: str = ""
    entry: "Node | None" = None


class Node(Struct):
    """A file or a directory: what is on the disk for sure, and what may be."""

    is_directory: bool
    content: bytearray = field(default_factory=bytearray)
    entries: dict[str, "Node"] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)
    size: int = 0
    is_elsewhere: bool = False
    """On another machine's disk: what was written is there."""

    def change(self, change: Change) -> None:
        self.pending.append(change)
        if self.is_elsewhere:
            self.sync(change.at + 1)

    def sync(self, before: int) -> None:
        """What was done before that call is on the disk."""
        for change in [each for each in self.pending if each.at < before]:
            _apply(change, self.content, self.entries)
        self.pending = [each for each in self.pending if each.at >= before]


def _apply(change: Change, content: bytearray, entries: dict[str, Node]) -> None:
    if change.name:
        if change.entry is None:
            entries.pop(change.name, None)
        else:
            entries[change.name] = change.entry
    elif change.data is None:
        del content[change.offset :]
    else:
        content.extend(bytes(max(0, change.offset - len(content))))
        content[change.offset : change.offset + len(change.data)] = change.data


class Handle(Struct):
    """An open file, and where the next write goes."""

    node: Node
    is_appending: bool
    position: int = 0


class Disk:
    """A directory, as it is told by the calls of a process that began with it empty."""

    def __init__(self, folder: str, elsewhere: tuple[str, ...]) -> None:
        self._folder = folder
        self._elsewhere = elsewhere
        self._root = Node(is_directory=True)
        self._nodes: dict[str, Node] = {folder: self._root}
        self._handles: dict[int, Handle] = {}
        self._told = 0

    def tell(self, call: Call) -> None:
        """This was done."""
        getattr(self, f"_{call.name}")(call)
        self._told += 1

    def leave(self, target: Path, chance: random.Random, luck: float | None = None) -> None:
        """Put there what may be found once the power is back."""
        likely = chance.choice(LUCK) if luck is None else luck
        _put(self._root, target, lambda: chance.random() < likely, chance)

    def _openat(self, call: Call) -> None:
        path, flags = call.path or "", call.arguments[2]
        if path not in self._nodes and "O_CREAT" in flags and path.startswith(f"{self._folder}/"):
            self._create(path, is_directory=False)
        node = self._nodes.get(path)
        if node is None:
            self._handles.pop(call.answer, None)
            return
        self._handles[call.answer] = Handle(node, "O_APPEND" in flags)
        if "O_TRUNC" in flags:
            self._cut(node, 0)

    def _close(self, call: Call) -> None:
        self._handles.pop(_descriptor(call), None)

    def _write(self, call: Call) -> None:
        if handle := self._handles.get(_descriptor(call)):
            offset = handle.node.size if handle.is_appending else handle.position
            handle.position = self._put_in(handle.node, offset, _bytes(call.arguments[1])[: call.answer])

    def _pwrite64(self, call: Call) -> None:
        if handle := self._handles.get(_descriptor(call)):
            self._put_in(handle.node, int(call.arguments[3]), _bytes(call.arguments[1])[: call.answer])

    def _put_in(self, node: Node, offset: int, data: bytes) -> int:
        node.change(Change(self._told, offset, data))
        node.size = max(node.size, offset + len(data))
        return offset + len(data)

    def _ftruncate(self, call: Call) -> None:
        if handle := self._handles.get(_descriptor(call)):
            self._cut(handle.node, int(call.arguments[1]))

    def _cut(self, node: Node, size: int) -> None:
        if size > node.size:
            node.change(Change(self._told, size - 1, b"\0"))
        else:
            node.change(Change(self._told, size))
        node.size = size

    def _fsync(self, call: Call) -> None:
        if handle := self._handles.get(_descriptor(call)):
            handle.node.sync(call.after)

    _fdatasync = _fsync

    def _mkdir(self, call: Call) -> None:
        self._make(_text(call.arguments[0]))

    def _mkdirat(self, call: Call) -> None:
        self._make(_at(*call.arguments[:2]))

    def _make(self, path: str) -> None:
        if path.startswith(f"{self._folder}/"):
            self._create(path, is_directory=True)

    def _unlink(self, call: Call) -> None:
        self._remove(_text(call.arguments[0]))

    def _unlinkat(self, call: Call) -> None:
        self._remove(_at(*call.arguments[:2]))

    def _rename(self, call: Call) -> None:
        self._move(*map(_text, call.arguments[:2]))

    def _renameat(self, call: Call) -> None:
        self._move(_at(*call.arguments[:2]), _at(*call.arguments[2:4]))

    _renameat2 = _renameat

    def _move(self, path: str, to: str) -> None:
        if node := self._nodes.get(path):
            self._name(to, node)
            self._remove(path)

    def _create(self, path: str, *, is_directory: bool) -> None:
        is_elsewhere = Path(path).name in self._elsewhere
        self._name(path, Node(is_directory=is_directory, is_elsewhere=is_elsewhere))
        if is_elsewhere:
            self._root.sync(self._told + 1)

    def _name(self, path: str, node: Node) -> None:
        self._nodes[path] = node
        self._in_directory(path, node)

    def _remove(self, path: str) -> None:
        if self._nodes.pop(path, None):
            self._in_directory(path, None)

    def _in_directory(self, path: str, node: Node | None) -> None:
        place = Path(path)
        self._nodes[str(place.parent)].change(Change(self._told, name=place.name, entry=node))


def _descriptor(call: Call) -> int:
    return int(call.arguments[0].partition("<")[0])


def _at(directory: str, name: str) -> str:
    """A name in a directory: `5<path>` or `AT_FDCWD<path>`."""
    return str(Path(_text(directory.partition("<")[2].removesuffix(">")), _text(name)))


def _put(node: Node, target: Path, is_kept: Callable[[], bool], chance: random.Random) -> None:
    content, entries = bytearray(node.content), dict(node.entries)
    for change in node.pending:
        if is_kept():
            _apply(change, content, entries)
        elif change.data and is_kept():
            _apply(Change(change.at, change.offset, _torn(change.data, chance)), content, entries)
    if not node.is_directory:
        target.write_bytes(content)
        return
    target.mkdir()
    for name, entry in entries.items():
        _put(entry, target / name, is_kept, chance)


def _torn(data: bytes, chance: random.Random) -> bytes:
    return data[: SECTOR * chance.randrange(len(data) // SECTOR + 1)]

"""What survives a process that is killed: the client's list of accepted ids, and what the outside world saw."""

import os
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from ropewalk.checker import Effect

Line = TypeVar("Line", bound=Struct)


class Accepted(Struct, frozen=True):
    """A start that was answered with this id; `kind` names the workflow."""

    execution: str
    kind: str


class Ledger(Generic[Line]):
    """One line for each fact, each line one append: a kill leaves whole lines only."""

    def __init__(self, path: Path, line: type[Line]) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(line)
        self._descriptor: int | None = None

    def write(self, line: Line, *, is_synced: bool = False) -> None:
        """Add a line; on the disk when this returns if that is asked for."""
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.write(self._descriptor, msgspec.json.encode(line) + b"\n")
        if is_synced:
            os.fsync(self._descriptor)

    def rewrite(self, lines: list[Line]) -> None:
        """Have these lines and no others."""
        self._path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))

    def read(self) -> list[Line]:
        """Every line so far, in order."""
        text = self._path.read_bytes() if self._path.exists() else b""
        return self._decoder.decode_lines(text)


class Place(Struct, frozen=True):
    """A directory with a store and its ledgers."""

    folder: str

    @property
    def database(self) -> str:
        return str(Path(self.folder, "ropewalk.db"))

    @property
    def clients(self) -> Ledger[Accepted]:
        return Ledger(Path(self.folder, "clients.jsonl"), Accepted)

    @property
    def effects(self) -> Ledger[Effect]:
        return Ledger(Path(self.folder, "effects.jsonl"), Effect)

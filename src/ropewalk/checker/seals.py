"""The rule about what a log was committed as: I-02, on the bytes of its entries."""

import re
from collections.abc import Iterator
from typing import Final
from zlib import crc32

from ropewalk.checker.history import Violation
from ropewalk.checker.trace import Trace

_SEAL: Final = re.compile(rb',"sum":(\d+)\}\Z')
_LONGEST: Final = 32


def is_sealed(entry: bytes) -> bool:
    """Whether the entry was sealed by its writer; earlier versions did not."""
    return _found(entry) is not None


def entries_are_as_committed(t: Trace) -> Iterator[Violation]:
    """I-02: every entry has the seal it was committed with, which goes on from that of the entry before.

    Entries of earlier versions have none; the one after them begins anew.
    """
    seal = 0
    for seq, entry in t.history.entries:
        found = _found(entry)
        if found is None:
            seal = 0
            continue
        told = int(found[1])
        if crc32(entry[: found.start()] + b"}", seal) != told:
            yield t.violation("I-02", f"entry {seq} is not what was committed: its seal does not fit", seq)
        seal = told


def _found(entry: bytes) -> re.Match[bytes] | None:
    return _SEAL.search(entry, max(0, len(entry) - _LONGEST))

"""How events are written down and read again, in a versioned envelope.

What one append adds to one execution's log is one entry: `{"v": 2, "seq": 7, "events": [...]}`, the events
numbered from `seq`. Old versions are read for ever: an entry of version n goes through every upcaster from n
on, on plain JSON, before it becomes events.

An entry ends with its seal, `"sum"`: the CRC-32 of everything before it in the log, entry by entry without the seals,
so that one that was changed, exchanged or taken away later does not fit. It tells damage and meddling, not forgery by
those who make the seal anew. Entries of earlier versions have none, and the next one begins anew after them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Struct

from ropewalk.core.errors import UnknownVersion, Unreadable
from ropewalk.core.events import Event, ExecutionAccepted
from ropewalk.core.instant import rfc3339

VERSION: Final = 2
_LONGEST_SEAL: Final = len(b',"sum":4294967295}')


class _Entry(Struct, frozen=True, gc=False):
    v: int
    seq: int
    events: msgspec.Raw


class _CurrentEntry(Struct, frozen=True, gc=False):
    v: int
    seq: int
    events: Sequence[Event]


_encoder = msgspec.json.Encoder()
_entries = msgspec.json.Decoder(_Entry)
_events = msgspec.json.Decoder(list[Event])


def encode(seq: int, events: Sequence[Event]) -> bytes:
    """One log entry; `seq` is the number of its first event."""
    return _encoder.encode(_CurrentEntry(VERSION, seq, events))


def sealed(seq: int, events: Sequence[Event], seal: int) -> tuple[bytes, int]:
    """One log entry with its seal, which goes on from that of the entry before; and the seal."""
    entry = _encoder.encode(_CurrentEntry(VERSION, seq, events))
    seal = crc32(entry, seal)
    return b'%b,"sum":%d}' % (entry[:-1], seal), seal


def seal_of(entry: bytes) -> int:
    """What the seal of the next entry goes on from; 0 after one that has none."""
    seal = entry[-_LONGEST_SEAL:].rpartition(b',"sum":')[2][:-1]
    return int(seal) if seal.isdigit() else 0


def decode(entry: bytes) -> tuple[int, list[Event]]:
    """The number of the first event, and the events, brought up to the current version."""
    try:
        return _decoded(entry)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Unreadable(f"an entry of the log cannot be read: {error}") from error


def _decoded(entry: bytes) -> tuple[int, list[Event]]:
    head = _entries.decode(entry)
    if head.v == VERSION:
        return head.seq, _events.decode(head.events)
    if head.v > VERSION or head.v < 1:
        raise UnknownVersion(f"log entry {head.seq} has version {head.v}; this Ropewalk reads 1 to {VERSION}")
    return head.seq, msgspec.convert(_upcast(head.v, msgspec.json.decode(head.events)), list[Event])


def decode_all(entries: Iterable[bytes]) -> Iterator[Event]:
    """Every event of a log, in order."""
    for entry in entries:
        yield from decode(entry)[1]


def acceptance(events: Sequence[Event]) -> ExecutionAccepted:
    """What a log begins with."""
    if not events or not isinstance(events[0], ExecutionAccepted):
        raise Unreadable("its log does not begin with its acceptance")
    return events[0]


def envelope(execution: str, seq: int, event: Event) -> dict[str, Any]:
    """One event as the outside sees it: `{v, type, executionId, seq, at, data}`.

    Without `env`: it is of the workspace, and readers may have a share of the workflow alone.
    """
    data = msgspec.to_builtins(event)
    data.pop("env", None)
    at, kind = data.pop("at"), data.pop("type")
    return {"v": VERSION, "type": kind, "executionId": execution, "seq": seq, "at": rfc3339(at), "data": data}


# Upcasters: from each old version to the next


def _upcast(version: int, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for step in range(version, VERSION):
        events = [UPCAST[step](event) for event in events]
    return events


def _from_1(event: dict[str, Any]) -> dict[str, Any]:
    """Version 1 recorded every start by itself."""
    if event["type"] == "NodeStarted":
        return {"type": "NodesStarted", "at": event["at"], "nodes": [event["node"]]}
    return event


UPCAST: Final[dict[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {1: _from_1}

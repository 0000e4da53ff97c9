"""A log without the values in it: what happened, when and to which node, but not with what.

Most questions about an execution (where it stands, which nodes failed, what it waits for) need no input and no output,
and these are nearly all of a log's bytes. The decoder passes over them without making anything of them, so an outline
costs the number of events, with values of any size.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, Union

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields, replace

from ropewalk.core import log
from ropewalk.core.errors import Unreadable
from ropewalk.core.events import (
    Event,
    ExecutionSucceeded,
    ItemFailed,
    ItemSucceeded,
    NodeFailed,
    NodeFixed,
    NodeRequeued,
    NodesCarriedOver,
    NodeSucceeded,
    OutcomeDecided,
    RoundEnded,
    RunFailed,
    RunWaiting,
    SignalReceived,
)
from ropewalk.core.waits import Approval, ChildWait

VALUES: Final[dict[type[Struct], tuple[str, ...]]] = {
    ExecutionSucceeded: ("output",),
    OutcomeDecided: ("output",),
    NodeSucceeded: ("output", "inputs"),
    NodeFailed: ("inputs",),
    NodeRequeued: ("overrides",),
    NodeFixed: ("output",),
    ItemSucceeded: ("output", "inputs"),
    ItemFailed: ("inputs",),
    RunFailed: ("inputs",),
    RoundEnded: ("output", "inputs"),
    RunWaiting: ("inputs",),
    SignalReceived: ("payload",),
}
"""What an outline leaves out. An acceptance is kept whole: there is one, and its size is limited at the door."""
SHORT: Final = 256
SMALL: Final = 4 * 1024
"""An event, or an entry, of so few bytes is read whole: there is next to nothing to leave out."""


class _Entry(Struct, frozen=True, gc=False):
    v: int
    seq: int
    events: list[Raw]


class _CarriedOver(Struct, frozen=True, rename="camel", tag_field="type", tag="NodesCarriedOver", gc=False):
    at: int
    source: str
    outputs: dict[str, Raw]
    ports: dict[str, tuple[str, ...]] = {}
    skipped: tuple[str, ...] = ()
    rounds: dict[str, int] = {}


def _without_values(event: type[Struct], left_out: tuple[str, ...]) -> type[Struct]:
    """The same event with fewer fields: what a type does not have, its decoder does not make."""
    kept = [
        (each.name, each.type) if each.required else (each.name, each.type, each.default)
        for each in fields(event)
        if each.name not in left_out
    ]
    name = event.__name__
    return msgspec.defstruct(name, kept, frozen=True, rename="camel", tag_field="type", tag=name, gc=False)


_whole: Final[dict[type[Struct], type[Struct]]] = {_without_values(each, left): each for each, left in VALUES.items()}
_others: Final = [each for each in Event.__args__ if each not in VALUES and each is not NodesCarriedOver]
_entries: Final = msgspec.json.Decoder(_Entry)
_event: Final[msgspec.json.Decoder[Event]] = msgspec.json.Decoder(Event)
_outline: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(Union[(*_whole, *_others, _CarriedOver)])

IsWanted = Callable[[Event], bool]


def everything(event: Event) -> bool:
    """Whether an event is wanted with its values: each is."""
    return True


def nothing(event: Event) -> bool:
    """Whether an event is wanted with its values: none is."""
    return False


def outline(entry: bytes, is_wanted: IsWanted = nothing) -> tuple[int, list[Event]]:
    """The number of the first event of a log entry, and its events without values but for those that are wanted."""
    try:
        found = None if len(entry) <= SMALL else _entries.decode(entry)
        if found is None or found.v != log.VERSION:
            return log.decode(entry)
        return found.seq, [_outlined(each, is_wanted) for each in found.events]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Unreadable(f"an entry of the log cannot be read: {error}") from error


def numbered(entry: bytes, start: int, is_wanted: IsWanted) -> Iterator[tuple[int, int, Event]]:
    """The events of a log entry from number `start` on, each read when its turn comes: number, bytes, event."""
    try:
        found = _entries.decode(entry)
        if found.v != log.VERSION:
            first, events = log.decode(entry)
            yield from [(seq, 0, event) for seq, event in enumerate(events, first) if seq >= start]
            return
        for seq, text in enumerate(found.events, found.seq):
            if seq >= start:
                yield seq, len(memoryview(text)), _outlined(text, is_wanted)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Unreadable(f"an entry of the log cannot be read: {error}") from error


def _outlined(text: Raw, is_wanted: IsWanted) -> Event:
    if len(memoryview(text)) <= SHORT:
        return _event.decode(text)
    event = _shortened(_outline.decode(text))
    return _event.decode(text) if is_wanted(event) else event


def _shortened(found: Any) -> Event:
    """An outline as the event it is of; the values it has not are null."""
    if type(found) is _CarriedOver:
        outputs = dict.fromkeys(found.outputs)
        return NodesCarriedOver(found.at, found.source, outputs, found.ports, found.skipped, rounds=found.rounds)
    kind = _whole.get(type(found))
    if kind is None:
        event: Event = found
        return event
    made: Any = kind(**{name: getattr(found, name) for name in found.__struct_fields__})
    if type(made) is RunWaiting and type(made.wait) in (ChildWait, Approval):
        field = "input" if type(made.wait) is ChildWait else "details"
        made = replace(made, wait=replace(made.wait, **{field: None}))
    shown: Event = made
    return shown

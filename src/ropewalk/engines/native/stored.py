"""What an execution has stored: how many bytes, and which large values, each counted once.

The sum follows from the log alone (the lengths of its entries, the sizes of the values they name), so it is the same
after a restart. Files count as they are written; after a restart the store says which of them the log names, since any
value may claim to be a file of any size. An execution that has reached the limit records no further results: what it
would run fails for good.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import Blob, Event, NodesCarriedOver
from ropewalk.core.execution.view import blobs_of
from ropewalk.core.signals import Failed, Signal, Succeeded
from ropewalk.engines.run import Desk
from ropewalk.engines.runner import INLINE_LIMIT
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.recording import Large

if TYPE_CHECKING:
    from ropewalk.engines.native.live import Live

MIB: Final = 2**20
MOST_AT_HAND: Final = 256 * MIB
"""How much of large values the expressions of one node, or of the output, look at together."""


LITTLE: Final = MIB
"""What has stored less is looked at no closer: no limit is lower."""


def count(live: "Live", size: int, events: Sequence[Event]) -> None:
    """An entry of the log, so long and with these events, is stored."""
    live.stored += size
    for event in events:
        for blob in named_by(event):
            _count(live, blob)
    if live.blobs or size > INLINE_LIMIT:
        live.has_large = True
    if live.has_large or live.stored > LITTLE:
        live.is_plain = False


def count_files(live: "Live", files: Sequence[Blob]) -> None:
    """The execution names these files."""
    for file in files:
        _count(live, file)
    live.has_large, live.is_plain = live.has_large or bool(files), live.is_plain and not files


def _count(live: "Live", blob: Blob) -> None:
    live.blobs = {} if live.blobs is None else live.blobs
    if blob.hash not in live.blobs:
        live.blobs[blob.hash] = None
        live.stored += blob.size


async def keep(live: "Live", large: Large, desk: Desk) -> Blob:
    """Keeps a large value, unless it is kept already; fails the attempt if there is no room for it."""
    blob = Blob(large.hash, len(large.text))
    if live.blobs is not None and blob.hash in live.blobs:
        return blob
    if live.stored + blob.size > desk.most_stored:
        raise NodeFailure(full(desk.most_stored))
    # Before it is written: others are about to write theirs.
    live.stored += blob.size
    try:
        await desk.shelf.keep(large.text)
    finally:
        live.stored -= blob.size
    _count(live, blob)
    return blob


class FileRoom:
    """What an execution may still store, for the files that one of its attempts writes."""

    def __init__(self, live: "Live", most: int) -> None:
        self._live = live
        self._most = most

    def take(self, size: int) -> None:
        """So many bytes are about to be written; fails the attempt if there is no room for them."""
        if self._live.stored + size > self._most:
            raise NodeFailure(full(self._most))
        self._live.stored += size

    def give_back(self, size: int) -> None:
        """So many bytes that were taken are counted otherwise now, or were not written."""
        self._live.stored -= size

    def count(self, blob: Blob) -> None:
        """The content is stored; counted once, whichever nodes write it."""
        _count(self._live, blob)


def admitted(live: "Live", signal: Signal, most: int) -> Signal:
    """What another worker or a runner reports of an attempt, unless there is no room for its result."""
    if not isinstance(signal, Succeeded) or signal.blob is None or signal.blob.hash in (live.blobs or ()):
        return signal
    if live.stored + signal.blob.size <= most:
        return signal
    return Failed(signal.node, signal.attempt, full(most), signal.item, signal.inputs, inputs_blob=signal.inputs_blob)


def full(most: int) -> RunError:
    """Why an attempt fails whose result would be too much."""
    limit = f"{most // MIB} MiB" if most >= MIB else f"{most} bytes"
    return RunError(
        ErrorType.PERMANENT,
        f"the execution has stored as much as it may, {limit}: make its results smaller, store them elsewhere and "
        "hand on references, or raise execution.max_mib and retry",
    )


def named_by(event: Event) -> Iterator[Blob]:
    """The large values an event names."""
    for field in ("blob", "inputs_blob"):
        if (blob := getattr(event, field, None)) is not None:
            yield blob
    if type(event) is NodesCarriedOver:
        for node in event.large:
            yield from blobs_of(event.output(node))

"""Where this worker keeps results that are large, and results that may be used again."""

from collections.abc import Callable
from typing import Any

import msgspec

from ropewalk.core.events import Blob, ExecutionFailed, ExecutionSucceeded
from ropewalk.core.expression import Template
from ropewalk.core.measured import TooLarge, measured
from ropewalk.core.state import ExecutionState
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.stored import MIB, full
from ropewalk.engines.runner import INLINE_LIMIT
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.values import LARGEST_OUTPUT, Output
from ropewalk.store import cache
from ropewalk.store.access import Blobs, Reader
from ropewalk.store.blobs import BlobTooLarge
from ropewalk.store.rows import CachedResult

FEW_REFERENCES = 16

Write = Callable[[str, tuple[Any, ...]], None]


class WorkerShelf:
    """Blobs by hash, cached results by what they were made of."""

    def __init__(self, blobs: Blobs, reader: Reader, now: Callable[[], int], write: Write) -> None:
        self._blobs = blobs
        self._reader = reader
        self._now = now
        self._write = write

    async def keep(self, data: bytes) -> Blob:
        """Durable before anything refers to it."""
        blob = await self._blobs.put(data)
        self._write("insert_blob", (blob.hash, blob.size, self._now()))
        return blob

    async def cached(self, workspace: str, key: str) -> Output | None:
        found = await cache.get(self._reader, workspace, key, self._now())
        if found is None or found.output is None or found.ports is None:
            return None
        return Output(msgspec.json.decode(found.output), tuple(msgspec.json.decode(found.ports)))

    def cache(self, workspace: str, key: str, output: Output, ttl: int) -> None:
        value, ports = msgspec.json.encode(output.value).decode(), msgspec.json.encode(output.ports).decode()
        self._write("upsert_cached_result", CachedResult(workspace, key, value, None, ports, self._now() + ttl))


def shrink_output(live: Live, blobs: Blobs, most_stored: int) -> None:
    """An execution's output that is too large for the log goes where the nodes' large results are."""
    last = live.events[-1]
    if not isinstance(last, ExecutionSucceeded) or last.output is None:
        return
    # On this thread: nothing may come between the decision and its record. Rare, and bounded in size.
    try:
        is_small = live.is_plain and _is_little(live.execution.plan.output)
        encoded = msgspec.json.encode(last.output) if is_small else measured(last.output, LARGEST_OUTPUT)
        if len(encoded) <= INLINE_LIMIT:
            return
        if live.stored + len(encoded) > most_stored:
            raise NodeFailure(full(most_stored))
        blob = blobs.put_here(encoded)
    except (TooLarge, BlobTooLarge, NodeFailure) as error:
        why = f"is larger than {LARGEST_OUTPUT // MIB} MiB" if isinstance(error, TooLarge) else str(error)
        live.execution.state = ExecutionState.FAILED
        live.events = [*live.events[:-1], ExecutionFailed(last.at, f"output: {why}")]
    else:
        live.rows.append(("insert_blob", (blob.hash, blob.size, last.at)))
        live.events = [*live.events[:-1], ExecutionSucceeded(last.at, None, blob)]


def _is_little(output: Template | None) -> bool:
    """Whether an output is no more than a few times what the log has, which is little."""
    return output is None or len(output.references) <= FEW_REFERENCES

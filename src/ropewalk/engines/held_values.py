"""Large values that executions look at: read once for all that want the same one, and held while there is room."""

import asyncio
from collections import OrderedDict
from functools import partial
from typing import Any, Final

import msgspec

from ropewalk.core.errors import NotFound
from ropewalk.core.events import Blob
from ropewalk.engines.computing import Computing
from ropewalk.store.access import Blobs
from ropewalk.store.errors import StoreCorrupted

MOST_HELD: Final = 64 * 2**20
"""How much of large values is held for the executions that look at the same ones next."""
_ALL: Final = ""
"""The workspace in whose turn values are read: one value may be wanted by executions of several."""


class HeldValues:
    """The values that were looked at last, by hash, with their sizes."""

    def __init__(self, blobs: Blobs, computing: Computing) -> None:
        self._blobs = blobs
        self._computing = computing
        self._values: OrderedDict[str, tuple[int, Any]] = OrderedDict()
        self._held = 0
        self._reading: dict[str, asyncio.Task[Any]] = {}

    async def load(self, blob: Blob) -> Any:
        """The value, never to be changed: others have the same one."""
        if blob.hash in self._values:
            self._values.move_to_end(blob.hash)
            return self._values[blob.hash][1]
        reading = self._reading.get(blob.hash)
        if reading is None:
            reading = self._reading[blob.hash] = asyncio.get_running_loop().create_task(self._read(blob))
            reading.add_done_callback(partial(self._done, blob))
        # Cancelled, one execution does not keep the others from it.
        return await asyncio.shield(reading)

    async def _read(self, blob: Blob) -> Any:
        try:
            text = await self._blobs.get(blob.hash)
        except NotFound as error:
            # Not the same as an execution that is not there: what looks at the value waits until it is put back.
            raise StoreCorrupted(f"the large value {blob.hash} is gone: restore it from a backup") from error
        return await self._computing.of_caller(_ALL, blob.hash, partial(msgspec.json.decode, text))

    def _done(self, blob: Blob, reading: asyncio.Task[Any]) -> None:
        del self._reading[blob.hash]
        if reading.cancelled() or reading.exception() is not None:
            return
        self._values[blob.hash] = (blob.size, reading.result())
        self._held += blob.size
        while self._held > MOST_HELD:
            self._held -= self._values.popitem(last=False)[1][0]

    def forget(self) -> None:
        """They are read again when they are needed."""
        self._values.clear()
        self._held = 0

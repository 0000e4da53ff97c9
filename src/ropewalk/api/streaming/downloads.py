"""Values made by workflows on their way to a caller.

A large one is read from where it lies, a part at a time, as fast as the caller takes it: what is not taken is not read.
Each download keeps a few parts in memory, so one caller has only some under way, and its next ones wait for those.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ropewalk.api.shapes.problems import Refused, answer_to
from ropewalk.core.errors import RopewalkError
from ropewalk.core.events import Blob
from ropewalk.engines.budget import Budget
from ropewalk.store.blobs import CHUNK

if TYPE_CHECKING:
    from ropewalk.api.doors.authorization import Call

PER_CALLER: Final = 16 * 2**20
"""How many bytes of large values may be under way to one caller."""
PARTS: Final = 4
"""So many parts of a value are in memory at once: one that is read ahead, one that is checked, two that are sent."""
PATIENCE: Final = 10.0
"""How long (s) a download waits for the caller's earlier ones."""
RETRY_AFTER: Final = 5
_SAFE: Final = {"Content-Security-Policy": "sandbox; default-src 'none'", "X-Content-Type-Options": "nosniff"}
"""Nothing of such a value is to be taken for a page of ours."""
_PLAIN: Final = frozenset(ascii_letters + digits + " ._-()+,=@")
"""What needs no escape in a quoted name, in any program."""
_log = logging.getLogger("ropewalk.api")


class Downloads:
    """How many bytes are under way to each caller."""

    def __init__(self) -> None:
        self._callers: dict[str, tuple[Budget, int]] = {}

    @asynccontextmanager
    async def reserve(self, caller: str) -> AsyncIterator[None]:
        """Room for one value; Refused if the caller takes too long with those it has asked for before."""
        budget, count = self._callers.get(caller) or (Budget(PER_CALLER), 0)
        self._callers[caller] = (budget, count + 1)
        try:
            async with asyncio.timeout(PATIENCE) as waiting, budget.room_for(PARTS * CHUNK):
                waiting.reschedule(None)
                yield
        except TimeoutError as error:
            if not waiting.expired():
                raise
            most = PER_CALLER // (PARTS * CHUNK)
            raise Refused(
                429, f"{most} large values are under way to you: read them first", retry_after=RETRY_AFTER
            ) from error
        finally:
            count = self._callers[caller][1] - 1
            if count:
                self._callers[caller] = (budget, count)
            else:
                del self._callers[caller]


def raw_json(call: "Call", found: bytes | Blob) -> Response:
    """The answer that is nothing but this value."""
    if isinstance(found, bytes):
        return Response(found, headers=_SAFE, media_type="application/json")
    return _Streamed(call, found)


def attachment(call: "Call", blob: Blob, name: str) -> Response:
    """The answer that is the content of a file, to be saved under this name."""
    plain = "".join(each if each in _PLAIN else "_" for each in name)
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    return _Streamed(call, blob, "application/octet-stream", {"Content-Disposition": disposition})


class _Streamed(Response):
    """A large value, read while it is sent."""

    def __init__(
        self, call: "Call", blob: Blob, media_type: str = "application/json", more: Mapping[str, str] | None = None
    ) -> None:
        headers = {**_SAFE, "Content-Length": str(blob.size), **(more or {})}
        super().__init__(headers=headers, media_type=media_type)
        self._caller, self._downloads = call.actor.subject, call.backend.downloads
        self._chunks = call.backend.store.blobs.chunks(blob.hash)
        self._is_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with self._downloads.reserve(self._caller), aclosing(self._chunks):
                await self._send(receive, send)
        except (RopewalkError, Refused) as error:
            if not self._is_begun:
                await answer_to(error)(scope, receive, send)
            else:
                # Less was sent than was said: the caller sees that it is not all, and the connection ends with it.
                _log.error("a value cannot be sent to its end: %s", error)

    async def _send(self, receive: Receive, send: Send) -> None:
        # Before the answer begins: what is missing is said with a status of its own.
        chunk = await anext(self._chunks, None)
        self._is_begun = True
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        leaving = asyncio.ensure_future(_left(receive))
        try:
            while chunk is not None and not leaving.done():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                chunk = await anext(self._chunks, None)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            leaving.cancel()


async def _left(receive: Receive) -> None:
    """The caller has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass

"""One execution on a store that this process executes on."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ropewalk.core import log
from ropewalk.core.canonical import JSON
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ExecutionEnded, RopewalkError
from ropewalk.core.events import Blob
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import Ended
from ropewalk.engines.ends import End
from ropewalk.local.listing import Json, paged
from ropewalk.service import Service, explaining, reading
from ropewalk.service.reading.executions import kept_output

if TYPE_CHECKING:
    from ropewalk.client.answers import Event, Explanation, Node, Run


class LocalExecution:
    """One execution that was started here, or is known by its id."""

    def __init__(self, service: Service, execution: str, end: End | None = None) -> None:
        self._service = service
        self._end = end
        self.id = execution

    # Waiting

    async def result(self) -> JSON:
        """Wait for the end; the output, or `ExecutionEnded` if there is none."""
        ended = await self._ended()
        if ended.state is not ExecutionState.SUCCESS:
            raise ExecutionEnded(self.id, ended.state, ended.error, await self._error_detail())
        return ended.output if ended.blob is None else await self._read(ended.blob)

    async def _error_detail(self) -> str | None:
        """The traceback of the node that failed; that it cannot be read is not what the caller has to hear of."""
        try:
            detail: str | None = (await self.details())["errorDetail"]
        except RopewalkError:
            return None
        return detail

    async def wait(self) -> dict[str, Any]:
        """Wait for the end; the execution as it is then."""
        await self._service.ended(self.id)
        return await self.details()

    async def _ended(self) -> Ended:
        """As it was noted when it ended, once: a caller may change the output it is given."""
        end, self._end = self._end, None
        known = None if end is None else end.ended
        return await self._service.engine.watching.ended(self.id) if known is None else known

    async def _read(self, blob: Blob) -> JSON:
        return msgspec.json.decode(await self._service.store.blobs.get(blob.hash))

    # Looking

    async def state(self) -> ExecutionState:
        return ExecutionState((await self.details())["state"])

    async def details(self) -> dict[str, Any]:
        """The execution with its nodes, as recorded."""
        service = self._service
        return await reading.get_execution(service.store, service.store.blobs, service.workspace, self.id)

    async def output(self) -> JSON:
        """The output of an execution that succeeded, also one that is kept as a blob."""
        kept = await kept_output(self._service.store, self.id)
        return await self._read(kept) if isinstance(kept, Blob) else msgspec.json.decode(kept)

    async def explain(self, node: str | None = None) -> "Explanation":
        """Why it, or one node of it, does not run now, and what would help."""
        service, store = self._service, self._service.store
        # On a store of one process the worker is this process.
        alive = None if store.is_shared else lambda _: True
        return cast(
            "Explanation",
            await explaining.explain(
                store,
                service.workspace,
                self.id,
                store.now(),
                node=node,
                alive=alive,
                lease=round(store.lease_seconds * SECOND),
                accepts_only=service.engine.accepts_only,
                custody=service.engine.custody,
            ),
        )

    async def nodes(self) -> "AsyncIterator[Node]":
        """Every node, in the order of the document."""
        for each in (await self.details())["nodes"]:
            yield each

    async def runs(self) -> "AsyncIterator[Run]":
        """Every attempt, in the order they began."""
        found: list[Any] = await reading.list_runs(self._service.store, self.id)
        for each in found:
            yield each

    async def recorded(self, after: int = 0) -> "AsyncIterator[Event]":
        """The events recorded by now, after this number."""

        async def read(seq: int, size: int) -> list[Json]:
            return await reading.list_events(self._service.store, self.id, seq, size)

        async for each in paged(read, after, None, lambda each: each["seq"]):
            yield each

    async def events(self, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Every event, those recorded and those to come, until the end."""
        async for seq, event in self._service.follow(self.id, after):
            yield log.envelope(self.id, seq, event)

    # Telling

    async def signal(self, name: str, payload: JSON = None) -> None:
        await self._service.signal(self.id, name, payload)

    async def approve(self, node: str, payload: JSON = None, *, item: int | None = None) -> None:
        """Answer an approval; `item` is the place in its list of the one that a node with `for_each` asks about."""
        await self._service.decide(self.id, node, approved=True, payload=payload, item=item)

    async def reject(self, node: str, payload: JSON = None, *, item: int | None = None) -> None:
        await self._service.decide(self.id, node, approved=False, payload=payload, item=item)

    async def pause(self, reason: str | None = None) -> None:
        """Nothing new starts; what runs finishes."""
        await self._service.pause(self.id, reason=reason)

    async def resume(self) -> None:
        """What was paused goes on."""
        await self._service.resume(self.id)

    async def cancel(self, reason: str | None = None) -> None:
        """Running nodes and children are told to stop, and have ten seconds."""
        await self._service.cancel(self.id, reason=reason)

    async def retry(self) -> None:
        """Give every failed node another chance, in this execution."""
        await self._service.retry(self.id)

    async def rerun(self, node: str, version: int | None = None) -> "LocalExecution":
        """A new execution that keeps every result but those of `node` and of what is behind it."""
        return LocalExecution(self._service, await self._service.rerun(self.id, node, version=version))

    async def replay(self) -> "LocalExecution":
        """A new execution of the same version with the same input; its details say whether the output is the same."""
        return LocalExecution(self._service, await self._service.replay(self.id))

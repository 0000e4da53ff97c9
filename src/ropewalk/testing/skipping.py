"""Time that is skipped: whenever the engine has nothing to do, the store's clock moves to what is due next.

Time never moves while a node runs, a commit is written or one execution is being told of another; so what a test sees
is what would have happened on that day, in the same order.
"""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ropewalk.core.duration import parse_duration
from ropewalk.core.errors import InvalidInput, Problem, RopewalkError
from ropewalk.service import Service
from ropewalk.service.explaining import explain
from ropewalk.service.reasons import FEW, Cause
from ropewalk.store import executions
from ropewalk.store.sqlite import SqliteStore

MOST_MOMENTS = 100_000
"""So many due moments in one call are a loop that does not end."""
# A node that waits for other nodes, or for what is said of the whole execution, says nothing new.
_OF_OTHERS = (Cause.PREDECESSORS, Cause.EXECUTION)
_ENDED = ("SUCCESS", "FAILED", "CANCELLED", "TIMEOUT")


class StillWaiting(RopewalkError):
    """An execution waits for something that no time brings; the message says for what."""


class Skipping:
    """The time of one engine under test."""

    def __init__(self, service: Service) -> None:
        assert isinstance(service.store, SqliteStore)
        self.service = service
        self._engine = service.engine
        self._store = service.store

    async def quiet(self) -> None:
        """Wait until everything is done that can be before time passes."""
        await self._engine.quiet()

    async def skip(self, length: Any) -> None:
        """Let so much time pass; what is due meanwhile happens in the order of its time."""
        await self.quiet()
        end = self._store.now() + _microseconds(length)
        for _ in range(MOST_MOMENTS):
            due = await self._engine.next_due()
            await self._move_to(end if due is None else min(due, end))
            if due is None or due > end:
                return
        raise StillWaiting(f"{MOST_MOMENTS:,} moments were due before so much time had passed: skip less at once")

    async def until_ended(self, execution: str) -> None:
        """Let time pass until the execution has ended; StillWaiting if no time ends it."""
        ending = asyncio.ensure_future(self.service.ended(execution))
        try:
            for _ in range(MOST_MOMENTS):
                if await self._is_ended_or_quiet(execution, ending):
                    await ending
                    return
                due = await self._engine.next_due()
                if due is None:
                    raise StillWaiting(await self._why(execution))
                await self._move_to(due, is_awaited=False)
            raise StillWaiting(f"{MOST_MOMENTS:,} moments were due, and {await self._why(execution)}")
        finally:
            ending.cancel()

    async def _is_ended_or_quiet(self, execution: str, ending: "asyncio.Future[Any]") -> bool:
        """Whether the execution has ended, as soon as that is so or the engine is quiet."""
        quieting = asyncio.ensure_future(self.quiet())
        try:
            await asyncio.wait({ending, quieting}, return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                return True
            await quieting
        finally:
            quieting.cancel()
        row = await executions.get(self._store, self.service.workspace, execution)
        return row is None or row.state in _ENDED

    async def _move_to(self, moment: int, *, is_awaited: bool = True) -> None:
        """It is that time, unless it is later already; what is due then is carried out."""
        self._store.skip(max(0, moment - self._store.now()))
        self._engine.look()
        if is_awaited:
            await self.quiet()

    async def _why(self, execution: str) -> str:
        """What the execution waits for, in a sentence or two."""
        said = await self.explain(execution)
        whole = [_told(reason) for reason in said["reasons"] if reason["node"] is None]
        nodes = [
            f"{node['id']}: {_told(each)}"
            for node in said["nodes"]
            if node["code"] not in _OF_OTHERS
            for each in (node, *node["items"][:FEW])
        ]
        about = "; ".join([*whole, *nodes])
        return f"execution {execution} of {said['workflow']!r} waits for what no time brings: {about}"

    async def explain(self, execution: str, node: str | None = None) -> dict[str, Any]:
        """Why an execution, or a node of it, does not run now."""
        about = (self._store, self.service.workspace, execution, self._store.now())
        return await explain(*about, node=node, alive=lambda _: True, custody=self._engine.custody)


def _told(reason: Mapping[str, Any]) -> str:
    return reason["why"] if reason["action"] is None else f"{reason['why']} ({reason['action']})"


def _microseconds(length: Any) -> int:
    if isinstance(length, timedelta):
        length = length.total_seconds()
    try:
        return parse_duration(length)
    except ValueError as error:
        raise InvalidInput([Problem(("length",), str(error))]) from error

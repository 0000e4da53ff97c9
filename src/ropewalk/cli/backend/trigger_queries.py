"""Triggers on a store or on a server, as JSON like the API's."""

from typing import TYPE_CHECKING, Protocol, cast

from ropewalk.cli.backend.queries import WORKSPACE, Json, Queries, StoreQueries
from ropewalk.cli.views.progress import now
from ropewalk.core.errors import InvalidInput, NotFound, Problem
from ropewalk.core.state import TriggerType
from ropewalk.service.triggers import reading
from ropewalk.store import triggers, workflows

if TYPE_CHECKING:
    from ropewalk.cli.backend.server import ServerQueries


class TriggerQueries(Protocol):
    """What can be asked about triggers, here or there; each is named by its id or name."""

    async def listed(self, workflow: str | None, limit: int) -> list[Json]: ...
    async def trigger(self, named: str) -> Json: ...
    async def fires(self, named: str, limit: int) -> list[Json]: ...
    async def times(self, named: str, count: int) -> Json: ...
    async def reasons(self, named: str) -> Json: ...


def trigger_queries(queries: Queries) -> TriggerQueries:
    """The same place, asked about its triggers."""
    return _OnStore(queries) if isinstance(queries, StoreQueries) else _OnServer(cast("ServerQueries", queries))


class _OnStore:
    def __init__(self, queries: StoreQueries) -> None:
        self._reader = queries.reader

    async def listed(self, workflow: str | None, limit: int) -> list[Json]:
        found = None if workflow is None else await workflows.find(self._reader, WORKSPACE, workflow)
        if workflow is not None and found is None:
            raise NotFound(f"there is no workflow {workflow!r}")
        return await reading.list_triggers(self._reader, WORKSPACE, "" if found is None else found.id, limit=limit)

    async def trigger(self, named: str) -> Json:
        return await reading.get_trigger(self._reader, WORKSPACE, named)

    async def fires(self, named: str, limit: int) -> list[Json]:
        found = await reading.find(self._reader, WORKSPACE, named)
        return [reading.fire_of(each) for each in await triggers.fires(self._reader, found.id, limit=limit)]

    async def times(self, named: str, count: int) -> Json:
        found = await reading.find(self._reader, WORKSPACE, named)
        if found.kind != TriggerType.CRON:
            raise InvalidInput([Problem(("trigger",), "is no schedule: only a schedule has due times")])
        return reading.times(reading.settings_of(found), now(), count, found.changed_at)

    async def reasons(self, named: str) -> Json:
        return await reading.explain(self._reader, await reading.find(self._reader, WORKSPACE, named), now())


class _OnServer:
    def __init__(self, queries: "ServerQueries") -> None:
        self._client = queries.client

    async def listed(self, workflow: str | None, limit: int) -> list[Json]:
        return [each async for each in self._client.triggers(workflow=workflow, limit=limit)]

    async def trigger(self, named: str) -> Json:
        return await self._client.trigger(named)

    async def fires(self, named: str, limit: int) -> list[Json]:
        return [each async for each in self._client.fires(named, limit)]

    async def times(self, named: str, count: int) -> Json:
        return await self._client.next_times(named, count)

    async def reasons(self, named: str) -> Json:
        return await self._client.explain_trigger(named)

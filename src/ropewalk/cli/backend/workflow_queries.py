"""Workflows on a store or on a server, as JSON like the API's."""

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import msgspec

from ropewalk.cli.backend.queries import WORKSPACE, Json, Queries, StoreQueries
from ropewalk.core.definition.difference import Difference, difference
from ropewalk.core.errors import NotFound
from ropewalk.service.definitions import document_of, summary_of, version_summary_of
from ropewalk.store import workflows

if TYPE_CHECKING:
    from ropewalk.cli.backend.server import ServerQueries

_PAGE: Final = 1000


class WorkflowQueries(Protocol):
    """What can be asked about workflows, here or there; each is named by its id or name."""

    async def listed(self, prefix: str, *, archived: bool, limit: int) -> list[Json]: ...
    async def summary(self, name: str) -> Json: ...
    async def versions(self, workflow: str) -> list[Json]: ...
    async def version(self, workflow: str, version: int) -> Json: ...
    async def compared(self, workflow: str, before: int, after: int) -> Json: ...


def workflow_queries(queries: Queries) -> WorkflowQueries:
    """The same place, asked about its workflows."""
    return _OnStore(queries) if isinstance(queries, StoreQueries) else _OnServer(cast("ServerQueries", queries))


class _OnStore:
    def __init__(self, queries: StoreQueries) -> None:
        self._reader = queries.reader

    async def listed(self, prefix: str, *, archived: bool, limit: int) -> list[Json]:
        about = {"with_archived": archived, "prefix": prefix}
        found = await workflows.listed(self._reader, WORKSPACE, limit=limit, **about)  # type: ignore[arg-type]  # by name
        return [summary_of(each, each.latest) for each in found]

    async def summary(self, name: str) -> Json:
        found = await workflows.find(self._reader, WORKSPACE, name)
        if found is None:
            raise NotFound(f"there is no workflow {name!r}")
        newest = await workflows.latest(self._reader, found.id)
        return summary_of(found, 0 if newest is None else newest.version)

    async def versions(self, workflow: str) -> list[Json]:
        return [
            _without_reach(version_summary_of(each))
            for each in await workflows.versions(self._reader, workflow, limit=_PAGE)
        ]

    async def version(self, workflow: str, version: int) -> Json:
        found = await workflows.get_version(self._reader, workflow, version)
        if found is None:
            raise NotFound(f"the workflow has no version {version}")
        return {**_without_reach(version_summary_of(found)), "document": document_of(found)}

    async def compared(self, workflow: str, before: int, after: int) -> Json:
        old, new = [(await self.version(workflow, each))["document"] for each in (before, after)]
        return differences(difference(old, new))


class _OnServer:
    def __init__(self, queries: "ServerQueries") -> None:
        self._client = queries.client

    async def listed(self, prefix: str, *, archived: bool, limit: int) -> list[Json]:
        found: list[Json] = []
        async for each in self._client.definitions(prefix, archived=archived):
            found.append(cast(Json, each))
            if len(found) == limit:
                break
        return found

    async def summary(self, name: str) -> Json:
        found = cast(Json, await self._client.definition(name))
        return {each: found[each] for each in ("id", "name", "published", "latest", "archivedAt", "createdAt")}

    async def versions(self, workflow: str) -> list[Json]:
        return [_without_reach(each) async for each in self._client.versions(workflow)]

    async def version(self, workflow: str, version: int) -> Json:
        return _without_reach(await self._client.version(workflow, version))

    async def compared(self, workflow: str, before: int, after: int) -> Json:
        return await self._client.diff(workflow, before, after)


def _without_reach(version: Any) -> Json:
    return {name: value for name, value in version.items() if name != "reach"}


def differences(found: Difference) -> Json:
    """A difference with the names of the API."""
    said = msgspec.to_builtins(found)
    words = {name: name.split("_") for name in said}
    return {first + "".join(map(str.capitalize, rest)): said[name] for name, (first, *rest) in words.items()}

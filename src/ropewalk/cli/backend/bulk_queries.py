"""Many executions at once, on a store or on a server: counted, told together, and what of them waits for a person."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from msgspec import Struct

from ropewalk.cli.backend.queries import WORKSPACE, Json, Queries, Search, StoreQueries, filter_of
from ropewalk.service import execution_bulk
from ropewalk.service.execution_bulk import BulkOutcome, BulkProgress, BulkVerb
from ropewalk.store import executions
from ropewalk.store.executions import MOST_COUNTED, NEWEST

if TYPE_CHECKING:
    from ropewalk.cli.backend.server import ServerQueries
    from ropewalk.cli.backend.session import Verbs
    from ropewalk.client.many import Chosen


class Counted(Struct, frozen=True):
    """How many there are; not exact where there are more than were counted."""

    count: int
    is_exact: bool

    def words(self) -> str:
        return f"{self.count:,}" if self.is_exact else f"more than {self.count:,}"


NO_MORE: Final = Counted(0, is_exact=True)


class BulkQueries(Protocol):
    """What can be asked about many executions, here or there."""

    async def count(self, wanted: Search) -> Counted: ...
    async def count_to_tell(self, verb: BulkVerb, wanted: Search) -> Counted: ...
    def tell_all(self, verb: BulkVerb, wanted: Search, verbs: "Verbs", by: str, reason: str | None,
                 limit: int | None) -> AsyncIterator[BulkProgress]: ...  # fmt: skip
    async def approvals(self, workflow: str | None, limit: int) -> list[Json]: ...


def bulk_queries(queries: Queries) -> BulkQueries:
    """The same place, asked about many."""
    return _OnStore(queries) if isinstance(queries, StoreQueries) else _OnServer(cast("ServerQueries", queries))


class _OnStore:
    def __init__(self, queries: StoreQueries) -> None:
        self._reader = queries.reader

    async def count(self, wanted: Search) -> Counted:
        before = NEWEST if wanted.before is None else wanted.before
        found = await executions.counted(self._reader, WORKSPACE, filter_of(wanted), before=before)
        return Counted(found, found < MOST_COUNTED)

    async def count_to_tell(self, verb: BulkVerb, wanted: Search) -> Counted:
        found = await execution_bulk.count(self._reader, WORKSPACE, verb, filter_of(wanted))
        return Counted(found, found < MOST_COUNTED)

    async def tell_all(self, verb: BulkVerb, wanted: Search, verbs: "Verbs", by: str, reason: str | None,
                       limit: int | None) -> AsyncIterator[BulkProgress]:  # fmt: skip
        async def tell(execution: str) -> bool:
            return await (
                verbs.cancel(execution, by, reason) if verb is BulkVerb.CANCEL else verbs.retry(execution, by)
            )

        last = await execution_bulk.newest(self._reader, WORKSPACE)
        about = (self._reader, WORKSPACE, verb, filter_of(wanted), tell)
        async for each in execution_bulk.tell_all(*about, last=last, limit=limit):
            yield each

    async def approvals(self, workflow: str | None, limit: int) -> list[Json]:
        # Here, since nothing else that looks needs to know of node types.
        from ropewalk.access.answering import answerers
        from ropewalk.service.reading.approvals import START, waiting_approvals

        wanted, found, place = executions.Filter(workflow), list[Json](), START
        while place is not None and len(found) < limit:
            some, place = await waiting_approvals(self._reader, WORKSPACE, wanted, place, limit - len(found))  # type: ignore[assignment]  # None is the end
            found += some
        names = dict.fromkeys(each["workflowId"] for each in found)
        known = {each: await answerers(self._reader, WORKSPACE, each, is_named=True) for each in names}
        # A user who can write the store may answer, also where a server would ask for a right.
        return [{**each, "mayAnswer": True, "answerers": known[each["workflowId"]]} for each in found]


class _OnServer:
    def __init__(self, queries: "ServerQueries") -> None:
        self._client = queries.client

    async def count(self, wanted: Search) -> Counted:
        found = await self._client.count_executions(
            workflow=wanted.workflow, state=wanted.state, search=wanted.search, waiting=wanted.waiting,
            before=wanted.before,
        )  # fmt: skip
        return Counted(found["count"], found["exact"])

    async def count_to_tell(self, verb: BulkVerb, wanted: Search) -> Counted:
        ask = self._client.count_to_cancel if verb is BulkVerb.CANCEL else self._client.count_to_retry
        found = await ask(**_chosen(wanted))
        return Counted(found["count"], found["exact"])

    async def tell_all(self, verb: BulkVerb, wanted: Search, verbs: "Verbs", by: str, reason: str | None,
                       limit: int | None) -> AsyncIterator[BulkProgress]:  # fmt: skip
        chosen = _chosen(wanted)
        told: AsyncIterator[Any] = (
            self._client.cancel_all(reason=reason, limit=limit, **chosen)
            if verb is BulkVerb.CANCEL
            else self._client.retry_all(limit=limit, **chosen)
        )
        async for each in told:
            yield BulkProgress(each["id"], BulkOutcome(each["outcome"]), each["reason"])

    async def approvals(self, workflow: str | None, limit: int) -> list[Json]:
        found = self._client.approvals(workflow, limit)
        return [{name: value for name, value in each.items() if name != "payloads"} async for each in found]


def _chosen(wanted: Search) -> "Chosen":
    said = {"workflow": wanted.workflow, "state": wanted.state, "search": wanted.search, "waiting": wanted.waiting}
    # A caller without a filter has said on the command line that all are meant.
    return cast("Chosen", {**{name: value for name, value in said.items() if value}, "all": True})

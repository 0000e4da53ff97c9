"""Breakers as people see them, and the one thing they may do to one: close it."""

from typing import TYPE_CHECKING, Any

import uuid_utils

from ropewalk.core.breaker import Breaker, BreakerState
from ropewalk.core.errors import NotFound
from ropewalk.core.instant import moment
from ropewalk.store import audit, breakers
from ropewalk.store.access import Reader
from ropewalk.store.rows import AuditEntry

if TYPE_CHECKING:
    from ropewalk.engines.base import Engine

Json = dict[str, Any]


async def list_breakers(reader: Reader, workspace: str, *, after: str = "", limit: int = 50) -> list[Json]:
    """The targets of a workspace and how they are, by name; the last target is the cursor to go on."""
    return [_breaker(*each) for each in await breakers.listed(reader, workspace, after=after, limit=limit)]


def _breaker(target: str, breaker: Breaker) -> Json:
    return {
        "target": target,
        "state": str(breaker.state),
        "callCount": breaker.call_count,
        "failureCount": breaker.failure_count,
        "successCount": breaker.success_count,
        "windowStart": moment(breaker.window_start),
        "lastFailure": moment(breaker.last_failure),
        "openedAt": moment(breaker.opened_at),
        "nextRetry": moment(breaker.next_retry),
    }


async def reset(engine: "Engine", workspace: str, target: str, by: str) -> bool:
    """Close a breaker by hand and let the runs go on that it holds; False if it was closed."""
    store = engine.store
    # The calls that this worker has counted go to the store with its next commit: wait for it before the row is read.
    await engine.settled()
    async with store.transaction() as tx:
        if not await breakers.exists(tx, workspace, target):
            raise NotFound(f"there is no breaker of {target!r}; `ropewalk breakers ls` lists them")
        before = await breakers.lock(tx, workspace, target)
        if before.state is BreakerState.CLOSED:
            return False
        await breakers.put(tx, workspace, target, Breaker(last_failure=before.last_failure))
        await breakers.forget_calls(tx, workspace, target)
        about = (workspace, by, "reset", target, str(before.state), str(BreakerState.CLOSED), None)
        await audit.append(tx, AuditEntry(str(uuid_utils.uuid7()), store.now(), *about))
    engine.breakers.forget_calls(workspace, target)
    await engine.breakers.load()
    await engine.publishing.let_go(workspace, target)
    return True

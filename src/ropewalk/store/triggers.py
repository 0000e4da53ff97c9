"""Triggers: what starts executions besides a call, and what became of every time one should have.

A fire has a key: the due time, the id of a delivery or of a message. Its row is written in the transaction of what it
started, so a second server, or the same one after a crash, finds it and starts nothing.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from ropewalk.store.access import Reader, Transaction

KEPT: Final = 30 * 24 * 3600 * 1_000_000
"""How long (µs) it is told what became of a fire."""
_LATEST: Final = 2**62


class Trigger(Struct, frozen=True):
    """One trigger as it stands. `version` None: it starts the published one."""

    id: str
    workspace: str
    workflow: str
    name: str
    kind: str
    version: int | None
    settings: str
    is_declared: int
    is_enabled: int
    bounded_by: str | None
    created_at: int
    created_by: str
    changed_at: int
    removed_at: int | None
    cursor_at: int | None
    next_at: int | None
    last_execution: str | None
    token: str | None


class NewTrigger(NamedTuple):
    """insert_trigger"""

    id: str
    workspace: str
    workflow: str
    name: str
    kind: str
    version: int | None
    settings: str
    is_declared: int
    is_enabled: int
    bounded_by: str | None
    created_at: int
    created_by: str
    changed_at: int
    next_at: int | None
    token: str | None


class Fire(NamedTuple):
    """insert_fire: what became of one due time, delivery or message."""

    trigger: str
    key: str
    workspace: str
    at: int
    due_at: int | None
    execution: str | None
    reason: str | None
    detail: str | None


async def get(reader: Reader, workspace: str, trigger: str) -> Trigger | None:
    """The trigger of this id, if the workspace has it; also one that was removed."""
    row = await reader.fetch_one("get_trigger", workspace, trigger)
    return None if row is None else Trigger(*row)


async def by_token(reader: Reader, token: str) -> Trigger | None:
    """The webhook with this address."""
    row = await reader.fetch_one("get_trigger_by_token", token)
    return None if row is None else Trigger(*row)


async def listed(
    reader: Reader, workspace: str, workflow: str = "", *, after: str = "", limit: int = 50
) -> list[Trigger]:
    """The triggers of a workspace, of one workflow or of all, after a cursor."""
    return [Trigger(*row) for row in await reader.fetch("list_triggers", workspace, workflow, after, limit)]


async def queues(reader: Reader) -> list[Trigger]:
    """Those of all workspaces that are enabled and consume a queue."""
    return [Trigger(*row) for row in await reader.fetch("queue_triggers")]


async def of_workflow(tx: Transaction, workflow: str) -> list[Trigger]:
    """All triggers of a workflow, removed ones too, kept from others until the end of the transaction."""
    return [Trigger(*row) for row in await tx.fetch("triggers_of_workflow", workflow)]


async def claim_due(tx: Transaction, now: int, until: int, limit: int) -> list[Trigger]:
    """Those whose time has come, for the caller alone until then."""
    return [Trigger(*row) for row in await tx.fetch("claim_due_triggers", now, limit, until)]


async def next_time(reader: Reader) -> int | None:
    """When the first of all triggers has to be looked at."""
    row = await reader.fetch_one("next_trigger_time")
    return None if row is None else row[0]


async def fire_of(reader: Reader, trigger: str, key: str) -> Fire | None:
    """What became of this due time, delivery or message, if it was decided."""
    row = await reader.fetch_one("get_fire", trigger, key)
    return None if row is None else Fire(*row)


async def fires(
    reader: Reader, trigger: str, *, before: tuple[int, str] = (_LATEST, ""), limit: int = 50
) -> list[Fire]:
    """What became of the latest, before a cursor."""
    return [Fire(*row) for row in await reader.fetch("list_fires", trigger, *before, limit)]


async def tallies(reader: Reader, trigger: str, since: int) -> dict[str | None, int]:
    """How many were skipped for which reason since then; under None how many started something."""
    return dict(await reader.fetch("count_fires", trigger, since))


async def write(tx: Transaction, skipped: Sequence[Fire]) -> None:
    """Write down what became of these."""
    await tx.execute_many("insert_fire", skipped)


async def is_under_way(reader: Reader, execution: str) -> bool:
    """Whether the execution is not over."""
    return await reader.fetch_one("is_under_way", execution) is not None


async def under_way(reader: Reader, trigger: str) -> int:
    """How many executions that the trigger started are not over."""
    row = await reader.fetch_one("count_under_way", trigger)
    return 0 if row is None else row[0]


async def waiting(reader: Reader, workspace: str, most: int) -> int:
    """How many executions wait in the queue of a workspace, counted up to `most`."""
    row = await reader.fetch_one("count_backlog", workspace, most)
    return 0 if row is None else row[0]


async def forget_old(tx: Transaction, now: int, limit: int) -> int:
    """At most `limit` of what is told no more goes; how many did."""
    return await tx.execute("forget_fires", now - KEPT, limit)

"""Executions put into a store as a fleet would leave them there, without an engine."""

from typing import Any

from ropewalk.core import log
from ropewalk.core.definition import parse_definition
from ropewalk.core.events import Event, ExecutionAccepted, Parent
from ropewalk.core.execution import Execution
from ropewalk.core.plan import compile_plan
from ropewalk.core.signals import Signal, Start
from ropewalk.service.explaining import explain
from ropewalk.service.reasons import clock
from ropewalk.store import workflows
from ropewalk.store.access import Store
from ropewalk.store.rows import LogEntry
from ropewalk.store.sqlite import SqliteStore
from tests.core.node_types import NODE_TYPES
from tests.store.samples import SECOND, execution, live_row, register, tell, waiting

Json = dict[str, Any]

NOON = 4_102_488_000_000_000
"""Long after the time of the store itself, whose own worker is not to be taken for one of the fleet."""


def nodes(*ids: str, **fields: Any) -> Json:
    """A document of such nodes that depend on nothing."""
    return {"nodes": [{"id": name, "type": "noop", **fields} for name in ids]}


async def put(store: Store, id: str, document: Json, *signals: Signal, key: str | None = None,  # noqa: A002
              parent: Parent | None = None, room: int | None = None, **row: Any) -> str:  # fmt: skip
    """An execution that was told these at noon; `row` is what `live` says about it. One not started is queued.

    `room` is how many hands the worker that executes it has.
    """
    workflow = f"of {id}"
    plan = compile_plan(parse_definition({"ropewalk": 1, "name": workflow, **document}, NODE_TYPES))
    accepted = ExecutionAccepted(NOON, id, "default", workflow, 1, "", parent=parent, concurrency_key=key)
    machine = Execution(plan)
    machine.room = room
    events = _told(machine, accepted, signals)
    draft = workflows.Draft("default", workflow, plan.definition.canonical().decode(), "", "ann")
    about = {"state": str(machine.state), "concurrency_key": key, "parent": parent.execution if parent else None}
    async with store.transaction() as tx:
        await workflows.save(tx, draft, workflow, NOON)
        await tx.execute("insert_execution", *execution(id, workflow=workflow, accepted_at=NOON, **about))
        await tx.execute("insert_live", *live_row(id, concurrency_key=key, has_slot=int(machine.has_slot), **row))
        await tx.execute("insert_log", *LogEntry(id, 1, log.encode(1, events)))
        if machine.needs_slot:
            await tx.execute("insert_queue", *waiting(id, enqueued_at=NOON, not_before=NOON))
    return id


def _told(machine: Execution, accepted: ExecutionAccepted, signals: tuple[Signal, ...]) -> list[Event]:
    machine.apply([accepted])
    return [accepted, *(event for signal in signals for event in machine.handle(signal, NOON))]


async def started(store: Store, id: str, document: Json, *signals: Signal, owner: str = "w1",  # noqa: A002
                  **row: Any) -> str:  # fmt: skip
    """One that a worker has in hand."""
    return await put(store, id, document, Start(), *signals, owner=owner, **row)


async def worker(store: Store, name: str, *, heard: int = NOON, slots: int = 100, **about: Any) -> None:
    """A worker of the fleet, last heard of then."""
    async with store.transaction() as tx:
        await register(tx, name, heard, slots=slots, **about)


async def explained(store: Store, id: str, now: int = NOON, **more: Any) -> Json:  # noqa: A002
    return await explain(store, "default", id, now, **more)


def codes(answer: Json) -> list[str]:
    return [reason["code"] for reason in answer["reasons"]]


def node_codes(answer: Json) -> list[tuple[str, str]]:
    return [(each["id"], each["code"]) for each in answer["nodes"]]


def burden(store: SqliteStore, worker: str, load: int) -> None:
    """So much the worker says it has in hand."""
    tell(store.path, "update worker set load = ? where id = ?", load, worker)


def hour(seconds: int) -> str:
    """So long after noon, as a sentence has it."""
    return clock(NOON + seconds * SECOND, NOON)

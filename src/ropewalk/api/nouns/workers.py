"""Workers over HTTP: how much each has under way, and which are alive."""

from typing import Any

from msgspec.structs import replace
from pydantic import Field

from ropewalk.access.rights import Right
from ropewalk.api.routes import Caller, Routes
from ropewalk.api.shapes.base import Answer, exemplified
from ropewalk.api.shapes.executions import A_MOMENT
from ropewalk.core.duration import SECOND
from ropewalk.service.reading.workers import worker_of
from ropewalk.store import workers
from ropewalk.store.access import Store
from ropewalk.store.workers import Worker

routes = Routes("/workers", "Workers")


class WorkerAnswer(Answer):
    """A process that executes; `slots` is 0 for one that only tells something."""

    model_config = exemplified(Answer, {
        "id": "w-7c4e9d53", "host": "node-1", "pid": 4711, "version": "1.0.0", "pool": "default", "load": 3,
        "slots": 20_000, "startedAt": A_MOMENT, "heartbeatAt": A_MOMENT, "silence": 12_000, "isAlive": True,
    })  # fmt: skip

    id: str
    host: str
    pid: int
    version: str
    pool: str
    load: int
    slots: int
    started_at: str
    heartbeat_at: str | None = Field(description="Null once it has said that it leaves.")
    silence: int | None = Field(description="For how long it was not heard of (µs).")
    is_alive: bool


class Workers(Answer):
    """Every worker that the store knows of."""

    items: list[WorkerAnswer]


@routes.get("", Right.OPERATE, response_model=Workers)
async def list_workers(call: Caller) -> dict[str, Any]:
    """The workers of this store, those heard of last first; at most a thousand."""
    store = call.backend.store
    known = await workers.listed(store, workers.MOST_SHOWN)
    return {"items": [_worker(each, store) for each in known]}


def _worker(worker: Worker, store: Store) -> dict[str, Any]:
    has_left = worker.heartbeat_at == 0
    silence = max(0, store.now() - worker.heartbeat_at)
    # A store of one process is ours; its lock proves that its owner lives, and there is no lease to renew.
    is_alive = silence <= round(store.lease_seconds * SECOND) if store.is_shared else worker.id == store.worker
    # This process knows what it has under way better than its last heartbeat.
    known = replace(worker, load=store.load) if worker.id == store.worker else worker
    return worker_of(known, silence=None if has_left else silence, is_alive=is_alive and not has_left)

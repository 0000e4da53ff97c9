"""Workers as people read them."""

from ropewalk.core.instant import moment, rfc3339
from ropewalk.service.reading.recorded import Json
from ropewalk.store.workers import Worker


def worker_of(worker: Worker, *, silence: int | None, is_alive: bool) -> Json:
    """A worker, and for how long (µs) it was not heard of; None once it has said that it leaves."""
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.version,
        "pool": worker.pool,
        "load": worker.load,
        "slots": worker.slots,
        "startedAt": rfc3339(worker.started_at),
        "heartbeatAt": moment(None if silence is None else worker.heartbeat_at),
        "silence": silence,
        "isAlive": is_alive,
    }

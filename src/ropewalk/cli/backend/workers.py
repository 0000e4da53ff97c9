"""The workers of a store, and which of them are alive."""

from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from ropewalk.cli.backend.project import Project
from ropewalk.cli.views.progress import now
from ropewalk.core.duration import SECOND
from ropewalk.engines.settings import DEFAULT_POOL
from ropewalk.store import workers
from ropewalk.store.sqlite import SqliteReader, owner_info
from ropewalk.store.workers import Worker

if TYPE_CHECKING:
    from ropewalk.store.postgres import PostgresReader

AnyReader: TypeAlias = "SqliteReader | PostgresReader"


class WorkerStatus(Struct, frozen=True):
    """A worker as it looks now. `silence` (µs) is how long it was not heard of, None if it said that it leaves."""

    worker: Worker
    is_alive: bool
    silence: int | None

    @property
    def is_worker(self) -> bool:
        """Whether it is there to work; a command that only tells something is not."""
        return self.worker.slots > 0

    @property
    def owns_executions(self) -> bool:
        """Whether executions go on with it: a worker of a pool only carries out the nodes of its pool."""
        return self.is_worker and self.worker.pool == DEFAULT_POOL


async def worker_statuses(project: Project, reader: AnyReader) -> list[WorkerStatus]:
    """Every worker that the store knows of, the one heard of last first."""
    known = await workers.listed(reader, workers.MOST_SHOWN)
    return _of_file(project, known) if isinstance(reader, SqliteReader) else await _of_fleet(project, reader, known)


async def _of_fleet(project: Project, reader: "PostgresReader", known: list[Worker]) -> list[WorkerStatus]:
    """A worker is alive while it renews its lease, unless the database has seen its session end."""
    from ropewalk.store.postgres import looking as postgres  # here, since a command on a file does without the driver

    at, gone = await postgres.database_time(reader), await postgres.vanished(reader)
    lease = round(project.fleet.lease_seconds * SECOND)
    silences = {each.id: at - each.heartbeat_at if each.heartbeat_at else None for each in known}
    return [
        WorkerStatus(each, _is_heard(silences[each.id], lease) and each.id not in gone, silences[each.id])
        for each in known
    ]


def _is_heard(silence: int | None, lease: int) -> bool:
    return silence is not None and silence <= lease


def _of_file(project: Project, known: list[Worker]) -> list[WorkerStatus]:
    """The one worker of a file lives as long as its lock is held."""
    owner = owner_info(project.db)
    return [
        WorkerStatus(each, owner is not None and owner.pid == each.pid, now() - each.heartbeat_at) for each in known
    ]


async def count_alive(project: Project, reader: AnyReader) -> int:
    """How many workers are alive that executions can go on with."""
    return sum(each.is_alive and each.owns_executions for each in await worker_statuses(project, reader))

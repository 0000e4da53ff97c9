"""What a command can read: from a store, beside the process that owns it, or from a server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct

from ropewalk.cli.backend.project import Project
from ropewalk.cli.backend.workers import AnyReader, WorkerStatus, worker_statuses
from ropewalk.cli.views.progress import now
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import NotFound, RopewalkError, Unavailable
from ropewalk.core.state import ENDED, ExecutionState, Resolution
from ropewalk.service import breakers, dead_letter_bulk, dead_letters, files, reading
from ropewalk.service.dead_letter_bulk import DeadLetterVerbs, Pace, Progress
from ropewalk.service.reading import Recorded
from ropewalk.service.reading.workers import worker_of
from ropewalk.store import dlq, executions, workflows
from ropewalk.store.access import Blobs
from ropewalk.store.blobs import BlobFiles
from ropewalk.store.dlq import Wanted
from ropewalk.store.sqlite import OwnerInfo, SqliteReader, owner_info
from ropewalk.store.workers import Worker

WORKSPACE: Final = "default"
_PAGE: Final = 1000
_PAUSE: Final = 0.1
_SOON: Final = 0.02
Json = dict[str, Any]


class Search(Struct, frozen=True, kw_only=True):
    """Which executions a list is to have, the newest first; `workflow` is an id, `before` excludes.

    The id begins or ends with `id_part`.
    """

    workflow: str | None = None
    state: ExecutionState | None = None
    before: str | None = None
    id_part: str | None = None
    limit: int = _PAGE
    search: str | None = None
    waiting: bool = False


def filter_of(wanted: Search) -> executions.Filter:
    """The same as a store is asked."""
    about = (wanted.workflow, wanted.state)
    return executions.Filter(*about, search=wanted.search, is_waiting=wanted.waiting, id_part=wanted.id_part)


class Queries(Protocol):
    """What can be read from a store or a server. All answers are JSON as the API has it, but for a history."""

    async def workflow_id(self, name: str) -> str: ...
    async def executions(self, wanted: Search) -> list[Json]: ...
    async def execution(self, execution: str) -> Json: ...
    async def state(self, execution: str) -> ExecutionState | None: ...
    async def runs(self, execution: str) -> list[Json]: ...
    async def history(self, execution: str) -> Recorded: ...
    async def events(self, execution: str, after: int) -> list[Json]: ...
    def follow(self, execution: str, after: int) -> AsyncIterator[Json]: ...
    async def over(self, execution: str) -> None: ...
    async def explanation(self, execution: str, node: str | None) -> Json: ...
    async def files(self, execution: str) -> list[Json]: ...
    async def save_file(self, execution: str, digest: str, path: str) -> None: ...
    async def letters(self, resolution: Resolution, fingerprint: str | None, limit: int) -> list[Json]: ...
    async def letters_named(self, id_part: str, limit: int) -> list[Json]: ...
    async def letter(self, letter: str) -> Json: ...
    async def pending_letters(self, execution: str, limit: int) -> list[str]: ...
    async def groups(self, limit: int) -> list[Json]: ...
    async def workers(self, *, is_all: bool) -> list[Json]: ...
    async def breakers(self, limit: int) -> list[Json]: ...
    def requeue_all(self, verbs: DeadLetterVerbs, wanted: Wanted, pace: Pace, by: str) -> AsyncIterator[Progress]: ...
    def discard_all(self, verbs: DeadLetterVerbs, wanted: Wanted, by: str, notes: str | None, limit: int | None
                    ) -> AsyncIterator[Progress]: ...  # fmt: skip


@asynccontextmanager
async def queries_on(project: Project) -> AsyncIterator[Queries]:
    """The store or the server that the command reads from."""
    if project.server is None:
        async with reading_from(project) as reader:
            yield StoreQueries(project, reader)
    else:
        # Here, since most commands do without the client.
        from ropewalk.cli.backend.server import connected

        async with connected(project.server) as there:
            yield there


async def is_over(queries: Queries, execution: str) -> bool:
    """Whether the execution has ended; one that is gone has."""
    state = await queries.state(execution)
    return state is None or state in ENDED


async def unfinished_after(queries: Queries, executions: list[str], patience: float) -> list[str]:
    """Those of the executions that are not over after so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while executions := [each for each in executions if not await is_over(queries, each)]:
                await asyncio.sleep(_SOON)
    return executions


# The store


class OwnerUnknown(Unavailable):
    """A process has just taken the lock of the file, and has not written its id into it yet."""


def owner_of(project: Project) -> OwnerInfo | None:
    """The process that executes on the file, if there is one; a shared store has no such."""
    if project.is_shared:
        return None
    try:
        return owner_info(project.db)
    except Unavailable as error:
        raise OwnerUnknown(str(error)) from error


@asynccontextmanager
async def reading_from(project: Project) -> AsyncIterator[AnyReader]:
    """The store for reading only, also while another process owns it."""
    reader = await _reader(project)
    try:
        yield reader
    finally:
        await reader.close()


async def _reader(project: Project) -> AnyReader:
    if project.is_shared:
        from ropewalk.store.postgres import PostgresReader  # here, since a command on a file does without the driver

        return await PostgresReader.open(project.db, pooled=project.fleet.pooled)
    require_file(project)
    return await SqliteReader.open(project.db)


def require_file(project: Project) -> None:
    """A command that only reads, or tells an execution something, makes no store."""
    if not Path(project.db).exists():
        raise RopewalkError(f"there is no store at {project.db}: `ropewalk run FILE` makes one, --db names another")


def blobs_of(project: Project, reader: AnyReader) -> Blobs:
    """Where the values are that were too large for the log."""
    if isinstance(reader, SqliteReader):
        return BlobFiles(f"{Path(project.db).resolve()}.blobs")
    from ropewalk.store.postgres.looking import blobs_of as blobs_in  # here, as in `_reader`

    return blobs_in(reader)


class StoreQueries:
    """A store, as it is recorded."""

    def __init__(self, project: Project, reader: AnyReader) -> None:
        self._project = project
        self.reader = reader
        self._blobs = blobs_of(project, reader)

    async def workflow_id(self, name: str) -> str:
        found = await workflows.find(self.reader, WORKSPACE, name)
        if found is None:
            raise NotFound(f"there is no workflow {name!r}")
        return found.id

    # Executions

    async def executions(self, wanted: Search) -> list[Json]:
        before = executions.NEWEST if wanted.before is None else wanted.before
        about = (self.reader, WORKSPACE, filter_of(wanted))
        found = await reading.list_executions(*about, before=before, limit=wanted.limit)
        if not wanted.waiting:
            return found
        from ropewalk.service.reading.approvals import with_waits  # here, since other lists do without

        return await with_waits(self.reader, found)

    async def execution(self, execution: str) -> Json:
        return await reading.get_execution(self.reader, self._blobs, WORKSPACE, execution)

    async def files(self, execution: str) -> list[Json]:
        return await files.list_files(self.reader, WORKSPACE, execution)

    async def save_file(self, execution: str, digest: str, path: str) -> None:
        from ropewalk.client.files import Saving  # here, since most commands save nothing

        blob = await files.find_file(self.reader, WORKSPACE, execution, digest)
        with Saving(path, blob.hash) as saving:
            async for chunk in self._blobs.chunks(blob.hash):
                saving.add(chunk)
            saving.finish()

    async def state(self, execution: str) -> ExecutionState | None:
        row = await executions.get(self.reader, WORKSPACE, execution)
        return None if row is None else ExecutionState(row.state)

    async def runs(self, execution: str) -> list[Json]:
        return await reading.list_runs(self.reader, execution)

    async def history(self, execution: str) -> Recorded:
        return await reading.recorded(self.reader, execution)

    async def events(self, execution: str, after: int) -> list[Json]:
        return await reading.list_events(self.reader, execution, after)

    async def follow(self, execution: str, after: int) -> AsyncIterator[Json]:
        """Read new events from time to time: a store does not notify those that only read it."""
        is_last = False
        while True:
            for envelope in await self.events(execution, after):
                after = envelope["seq"]
                yield envelope
            if is_last:
                return
            is_last = await is_over(self, execution)
            if not is_last:
                await asyncio.sleep(_PAUSE)

    async def over(self, execution: str) -> None:
        # Seen in the store: its owner may leave with it.
        while not await is_over(self, execution):
            await asyncio.sleep(_SOON)

    async def explanation(self, execution: str, node: str | None) -> Json:
        from ropewalk.service import explaining  # here, since it knows the engine, and nothing else here does

        lease = round(self._project.fleet.lease_seconds * SECOND)
        alive = _liveness(self._project)
        return await explaining.explain(
            self.reader, WORKSPACE, execution, now(), node=node, alive=alive, lease=lease
        )  # fmt: skip

    # Dead letters

    async def letters(self, resolution: Resolution, fingerprint: str | None, limit: int) -> list[Json]:
        return await reading.list_dead_letters(self.reader, WORKSPACE, resolution, fingerprint, limit)

    async def letters_named(self, id_part: str, limit: int) -> list[Json]:
        wanted = dlq.Search(resolution=None, id_part=id_part)
        return await reading.find_dead_letters(self.reader, WORKSPACE, wanted, limit=limit)

    async def letter(self, letter: str) -> Json:
        return await reading.get_dead_letter(self.reader, WORKSPACE, letter)

    async def pending_letters(self, execution: str, limit: int) -> list[str]:
        found = await dlq.of_execution(self.reader, execution, limit=limit)
        return [letter.id for letter in found if letter.resolution == Resolution.PENDING]

    async def groups(self, limit: int) -> list[Json]:
        return await dead_letters.groups(self.reader, WORKSPACE, limit=limit)

    def requeue_all(self, verbs: DeadLetterVerbs, wanted: Wanted, pace: Pace, by: str) -> AsyncIterator[Progress]:
        return dead_letter_bulk.requeue_all(self.reader, verbs, WORKSPACE, wanted, pace, by)

    def discard_all(self, verbs: DeadLetterVerbs, wanted: Wanted, by: str, notes: str | None, limit: int | None
                    ) -> AsyncIterator[Progress]:  # fmt: skip
        return dead_letter_bulk.discard_all(self.reader, verbs, WORKSPACE, wanted, by, notes, limit)

    # Breakers and workers

    async def breakers(self, limit: int) -> list[Json]:
        return await breakers.list_breakers(self.reader, WORKSPACE, limit=limit)

    async def workers(self, *, is_all: bool) -> list[Json]:
        known = await worker_statuses(self._project, self.reader)
        wanted = [each for each in known if is_all or not self._project.is_shared or _is_wanted(each)]
        return [worker_of(each.worker, silence=each.silence, is_alive=each.is_alive) for each in wanted]


def _liveness(project: Project) -> Callable[[Worker], bool] | None:
    """The one worker of a file lives as long as its lock is held; those of a fleet as long as their lease."""
    if project.is_shared:
        return None
    has_owner = owner_of(project) is not None
    return lambda worker: has_owner


def _is_wanted(each: WorkerStatus) -> bool:
    # One that is leaving takes nothing more, and has something in hand.
    return (each.is_worker or each.worker.load > 0) and each.silence is not None

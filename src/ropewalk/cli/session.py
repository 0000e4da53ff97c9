"""A store to tell things to, whoever owns it: this process, or another one through its control socket."""

import asyncio
import getpass
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.cli.loading import Catalogue, catalogue
from ropewalk.cli.project import Project
from ropewalk.control import RemoteService
from ropewalk.control.client import NoAnswer
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import NotFound, Unavailable
from ropewalk.core.events import Event
from ropewalk.core.state import ENDED
from ropewalk.engines.base import Ended
from ropewalk.service import Service
from ropewalk.store import executions
from ropewalk.store.blobs import BlobFiles
from ropewalk.store.errors import StoreInUse
from ropewalk.store.sqlite import OwnerInfo, SqliteReader, owner_info
from ropewalk.wiring import Settings, open_service

WORKSPACE: Final = "default"
_TRIES: Final = 100
_PAUSE: Final = 0.05
Answer = TypeVar("Answer")


class Verbs(Protocol):
    """What can be asked, here or there."""

    async def save(self, document: JSON, by: str = ...) -> Any: ...
    async def start(self, version: Any, input: JSON = ..., vars: Mapping[str, JSON] | None = ...,  # noqa: A002
                    actor: str = ..., priority: int = ...) -> str: ...  # fmt: skip
    async def cancel(self, execution: str, by: str = ..., reason: str | None = ...) -> bool: ...
    async def pause(self, execution: str, by: str = ..., reason: str | None = ...) -> bool: ...
    async def resume(self, execution: str, by: str = ...) -> bool: ...
    async def retry(self, execution: str, by: str = ...) -> bool: ...
    async def signal(self, execution: str, name: str, payload: JSON = ..., by: str = ...) -> bool: ...
    async def publish(self, subject: str, payload: JSON = ...) -> int: ...
    async def decide(self, execution: str, node: str, *, approved: bool, by: str = ..., payload: JSON = ...,
                     item: int | None = ...) -> bool: ...  # fmt: skip
    async def rerun(self, execution: str, node: str, by: str = ..., version: int | None = ...) -> str: ...
    async def replay(self, execution: str, by: str = ...) -> str: ...
    async def requeue(self, letter: str, overrides: dict[str, JSON] | None = ..., by: str = ...) -> str: ...
    async def fix(self, letter: str, output: JSON, by: str = ..., ports: tuple[str, ...] = ...) -> str: ...
    async def discard(self, letter: str, by: str = ..., notes: str | None = ...) -> None: ...
    async def ended(self, execution: str) -> Ended: ...
    def follow(self, execution: str, after: int = ...) -> AsyncIterator[tuple[int, Event]]: ...


class Session(Struct, frozen=True):
    """Verbs to use and a reader to look with; `owner` is the other process that executes, None if it is this one."""

    verbs: Verbs
    reader: SqliteReader
    owner: OwnerInfo | None


@asynccontextmanager
async def opened(project: Project, *, executes: bool = True, known: Catalogue | None = None,
                 creates: bool = False) -> AsyncIterator[Session]:  # fmt: skip
    """The store, owned by this process if nobody else does; nothing is executed unless wanted."""
    if not creates:
        require_store(project)
    async with AsyncExitStack() as stack:
        verbs, owner = await _verbs(stack, project, executes, known)
        yield Session(verbs, await stack.enter_async_context(reading_from(project)), owner)


def require_store(project: Project) -> None:
    if not Path(project.db).exists():
        raise NotFound(f"there is no store at {project.db}; `ropewalk run FILE` makes one")


async def _verbs(stack: AsyncExitStack, project: Project, executes: bool, known: Catalogue | None
                 ) -> tuple[Verbs, OwnerInfo | None]:  # fmt: skip
    """An owner may come or go between looking and asking, so this is tried for a while."""
    for _ in range(_TRIES):
        with suppress(NoAnswer, StoreInUse, OwnerUnknown):
            owner = owner_of(project)
            if owner is None:
                return await stack.enter_async_context(_own(project, executes, known)), None
            if owner.socket is not None:
                return await RemoteService.connect(owner.socket), owner
        await asyncio.sleep(_PAUSE)
    return await stack.enter_async_context(_own(project, executes, known)), None


class OwnerUnknown(Unavailable):
    """Someone has just taken the lock, and has not signed it yet."""


def owner_of(project: Project) -> OwnerInfo | None:
    """The process that executes on the store, if there is one."""
    try:
        return owner_info(project.db)
    except Unavailable as error:
        raise OwnerUnknown(str(error)) from error


@asynccontextmanager
async def _own(project: Project, executes: bool, known: Catalogue | None) -> AsyncIterator[Service]:
    known = known or catalogue(project)
    settings = Settings.from_environment(db=project.db)
    if not executes:
        # No hands: everything that is told is recorded, and no node starts.
        settings = replace(settings, native=replace(settings.native, hands=0))
    async with open_service(settings, known.types, known.functions) as service:
        yield service


@asynccontextmanager
async def reading_from(project: Project) -> AsyncIterator[SqliteReader]:
    """The store for reading only, whoever owns it."""
    require_store(project)
    reader = await SqliteReader.open(project.db)
    try:
        yield reader
    finally:
        await reader.close()


def blobs_of(project: Project) -> BlobFiles:
    return BlobFiles(f"{Path(project.db).resolve()}.blobs")


async def is_over(reader: SqliteReader, execution: str) -> bool:
    """Whether the execution has ended, as the store has it."""
    row = await executions.load(reader, execution)
    return row is None or row.state in ENDED


def me() -> str:
    """Whom the audit log names."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "local"


def finish(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Carries a command's work out on the fast loop, where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)

"""A store to ask verbs of, executed on by this process or by another.

A file has one owner: this process, or another one that is reached through its control socket. A shared store has any
number of workers: this process is one of them for as long as the command takes, one that claims nothing unless it is to
execute. A server is asked over HTTP, and executes. This module alone decides which of the three it is.
"""

import asyncio
import getpass
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.cli.backend.profiles import Server
from ropewalk.cli.backend.project import Project
from ropewalk.cli.backend.queries import (
    OwnerUnknown,
    Queries,
    StoreQueries,
    owner_of,
    queries_on,
    reading_from,
    require_file,
)
from ropewalk.cli.backend.workers import count_alive
from ropewalk.core.canonical import JSON
from ropewalk.core.events import Event
from ropewalk.engines.process import and_no_longer
from ropewalk.store.errors import StoreInUse
from ropewalk.wiring import open_service

if TYPE_CHECKING:
    from ropewalk.modules import BroughtModules, Catalogue
    from ropewalk.service import Service
    from ropewalk.service.retention import Policy, Position, Swept

_TRIES: Final = 100
_PAUSE: Final = 0.05
Answer = TypeVar("Answer")


class Verbs(Protocol):
    """What can be asked of this process, of the owner of a file, or of a server."""

    async def save(self, document: JSON, by: str = ...) -> Any: ...
    async def publish_version(self, workflow: str, version: int, by: str = ...) -> bool: ...
    async def start(self, version: Any, input: JSON = ..., vars: Mapping[str, JSON] | None = ...,  # noqa: A002
                    actor: str = ..., priority: int = ...) -> str: ...  # fmt: skip
    async def cancel(self, execution: str, by: str = ..., reason: str | None = ...) -> bool: ...
    async def pause(self, execution: str, by: str = ..., reason: str | None = ...) -> bool: ...
    async def resume(self, execution: str, by: str = ...) -> bool: ...
    async def retry(self, execution: str, by: str = ...) -> bool: ...
    async def signal(self, execution: str, name: str, payload: JSON = ..., by: str = ...) -> bool: ...
    async def publish(self, subject: str, payload: JSON = ..., by: str = ...) -> int: ...
    async def decide(self, execution: str, node: str, *, approved: bool, by: str = ..., payload: JSON = ...,
                     item: int | None = ...) -> bool: ...  # fmt: skip
    async def reset_breaker(self, target: str, by: str = ...) -> bool: ...
    async def manage_credentials(self, request: str, about: dict[str, JSON], by: str = ...) -> Any: ...
    async def trigger(self, action: str, arguments: Mapping[str, JSON], by: str = ...) -> JSON: ...
    async def rerun(self, execution: str, node: str, by: str = ..., version: int | None = ...) -> str: ...
    async def replay(self, execution: str, by: str = ...) -> str: ...
    async def requeue(self, letter: str, overrides: dict[str, JSON] | None = ..., by: str = ...) -> str: ...
    async def fix(self, letter: str, output: JSON, by: str = ..., ports: tuple[str, ...] = ...) -> str: ...
    async def discard(self, letter: str, by: str = ..., notes: str | None = ...) -> None: ...
    async def note(self, letter: str, text: str, by: str = ...) -> None: ...
    async def sweep(self, policy: "Policy", position: "Position" = ..., by: str = ...) -> "Swept": ...
    def follow(self, execution: str, after: int = ...) -> AsyncIterator[tuple[int, Event]]: ...


class Executor(Struct, frozen=True):
    """Who executes instead of this process: the owner of a file, so many workers of a fleet, or a server."""

    pid: int | None = None
    workers: int = 0
    server: str | None = None

    @property
    def is_there(self) -> bool:
        return self.pid is not None or self.workers > 0 or self.server is not None

    def words(self, project: Project) -> str:
        """Which process goes on, in a sentence, or what to do if there is none."""
        if self.server is not None:
            return f"{self.server} goes on with it"
        if self.pid is not None:
            return f"process {self.pid} goes on with it"
        if not self.workers:
            return f"no worker is alive to go on with it; start one with: {project.hint('worker')}"
        return f"{self.workers} workers go on with it" if self.workers > 1 else "1 worker goes on with it"

    def json(self, project: Project) -> dict[str, JSON]:
        """The same for programs."""
        if self.server is not None:
            return {"pid": None, "server": self.server}
        fleet: dict[str, JSON] = {"workers": self.workers} if project.is_shared else {}
        return {"pid": self.pid, **fleet, "db": project.place}


class Session(Struct, frozen=True):
    """Verbs to use and something to look at; `owner` is who else executes, None if it is this process."""

    verbs: Verbs
    queries: Queries
    owner: Executor | None
    brought: "BroughtModules | None" = None
    """What others have brought to this process, if it executes."""

    @property
    def is_ours_to_pause(self) -> bool:
        """Whether leaving pauses what one watches: not what a process or a fleet of others is at."""
        return self.owner is None or self.owner.server is not None

    def handover(self, project: Project) -> Project:
        """What a process works on that goes on with the store after this one: it knows the same node types."""
        return project if self.brought is None else replace(project, nodes=self.brought.names)


@asynccontextmanager
async def open_session(project: Project, *, executes: bool = True, needs_types: bool = False,
                 known: "Catalogue | None" = None, creates: bool = False) -> AsyncIterator[Session]:  # fmt: skip
    """The store, owned by this process unless another owns it; with `executes`, this process executes on it.

    With `brings_types`, another process that owns the file knows the node types of this command, or it is refused.
    """
    async with AsyncExitStack() as stack:
        if project.server is not None:
            yield await _with_server(stack, project.server)
            return
        if not creates:
            await _require_store(project)
        if not project.is_shared:
            verbs, owner, brought = await _verbs(stack, project, executes, known, needs_types)
            yield Session(verbs, await stack.enter_async_context(queries_on(project)), owner, brought)
            return
        service, _ = await stack.enter_async_context(_own(project, executes, known))
        queries = await stack.enter_async_context(queries_on(project))
        yield Session(service, queries, None if executes else await executor_of(project, queries))


async def _with_server(stack: AsyncExitStack, server: Server) -> Session:
    # Here, since most commands do without the client.
    from ropewalk.cli.backend.server import ServerVerbs, connected

    there = await stack.enter_async_context(connected(server))
    return Session(ServerVerbs(there.client), there, Executor(server=server.url))


async def executor_of(project: Project, queries: Queries) -> Executor | None:
    """The fleet or the server that executes there, also if this process does not; None on a file."""
    if project.server is not None:
        return Executor(server=project.server.url)
    if isinstance(queries, StoreQueries) and project.is_shared:
        return Executor(workers=await count_alive(project, queries.reader))
    return None


async def _require_store(project: Project) -> None:
    """A command that only tells an execution something makes no store."""
    if not project.is_shared:
        require_file(project)
        return
    async with reading_from(project):
        return


async def _verbs(stack: AsyncExitStack, project: Project, executes: bool, known: "Catalogue | None",
                 needs_types: bool) -> tuple[Verbs, Executor | None, "BroughtModules | None"]:  # fmt: skip
    """Reach the owner or become it; tried for a while, since an owner may come or go meanwhile."""
    # Here, since a command that only looks does without.
    from ropewalk.cli.backend.node_types import OwnerLeft, require_node_types
    from ropewalk.control.client import NoAnswer, RemoteService

    for _ in range(_TRIES):
        with suppress(NoAnswer, StoreInUse, OwnerUnknown, OwnerLeft):
            owner = owner_of(project)
            if owner is None:
                return await _owned(stack, project, executes, known)
            if owner.socket is not None:
                remote = await RemoteService.connect(owner.socket)
                if needs_types and project.nodes:
                    await require_node_types(project, remote, owner.pid)
                return remote, Executor(owner.pid), None
        await asyncio.sleep(_PAUSE)
    return await _owned(stack, project, executes, known)


async def _owned(stack: AsyncExitStack, project: Project, executes: bool, known: "Catalogue | None"
                 ) -> tuple[Verbs, None, "BroughtModules"]:  # fmt: skip
    service, brought = await stack.enter_async_context(_own(project, executes, known))
    return service, None, brought


@asynccontextmanager
async def _own(project: Project, executes: bool, known: "Catalogue | None"
               ) -> "AsyncIterator[tuple[Service, BroughtModules]]":  # fmt: skip
    # Here, since a command that only reads, or asks a server, does without node types and an engine.
    from ropewalk.engines.process import settle_in
    from ropewalk.modules import BroughtModules, catalogue

    brought = BroughtModules(project.nodes)
    known = known or catalogue(project.nodes)
    settings = project.settings
    if not executes:
        # No slots for nodes: verbs are recorded and no node starts. Other workers of the store claim what is ready.
        idle = {"claims": False, "executions": 0} if project.is_shared else {}
        settings = replace(settings, worker=replace(settings.worker, hands=0, **idle))
    else:
        known.types.tell_of_missing()
        settle_in()
    async with open_service(settings, known.types, known.functions, load=brought) as service:
        yield service, brought


def me() -> str:
    """The user's name, for the audit log."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "local"


def finish(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Carries a command's work out on the fast loop, where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(and_no_longer(work))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(and_no_longer(work))

"""What a worker opens once and all its nodes share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ropewalk.nodes.deaths import Deaths
from ropewalk.nodes.functions import Function, Functions
from ropewalk.nodes.network import Guard, NetworkPolicy, Resolve
from ropewalk.nodes.processes import Processes
from ropewalk.nodes.work import Placement, Threads

if TYPE_CHECKING:
    import aiohttp

    from ropewalk.nodes.credentials import Credentials
    from ropewalk.nodes.files import Files
    from ropewalk.nodes.keeping import KeptValues
    from ropewalk.nodes.sandbox import Sandboxes
    from ropewalk.nodes.smtp import SmtpSettings
    from ropewalk.nodes.speaking import Executions

MOST_THREADS = 64
MOST_PROCESSES = 2


class Closable(Protocol):
    """Something that is open until it is closed."""

    async def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class Facilities:
    """The worker's session, functions, mail server, threads and processes; opened when first used."""

    def __init__(
        self,
        policy: NetworkPolicy | None = None,
        *,
        smtp: "SmtpSettings | None" = None,
        sender: str | None = None,
        functions: Functions | None = None,
        resolve: Resolve | None = None,
        threads: int = MOST_THREADS,
        processes: int = MOST_PROCESSES,
    ) -> None:
        self.guard = Guard(policy, resolve)
        self.smtp = smtp
        self.sender = sender
        self.functions = functions or Functions()
        self._threads = Threads(threads)
        self._processes = Processes(processes)
        self._sandboxes: Sandboxes | None = None
        self._session: aiohttp.ClientSession | None = None
        self.deaths = Deaths()
        self._opened: dict[type[Closable], Closable] = {}
        # What nodes keep by key; there is none where no store is.
        self.kept_values: KeptValues | None = None
        # Where the content of files is, by the same rule.
        self.files: Files | None = None
        # The credentials of all workspaces; there are none where no store is.
        self.credentials: Credentials | None = None
        # Below which folder each workspace has one of its own, if any.
        self.files_root: str | None = None
        # What nodes speak to that are no part of their own execution; likewise.
        self.executions: Executions | None = None

    @property
    def http(self) -> "aiohttp.ClientSession":
        """The session behind the network guard."""
        if self._session is None:
            from ropewalk.nodes.session import guarded_session  # here: see there

            self._session = guarded_session(self.guard)
        return self._session

    @property
    def sandboxes(self) -> "Sandboxes":
        """Where code of users runs."""
        if self._sandboxes is None:
            from ropewalk.nodes.sandbox import Sandboxes  # here, since most workers run no code of users

            self._sandboxes = Sandboxes()
        return self._sandboxes

    async def carry_out(self, function: Function, arguments: Mapping[str, Any]) -> Any:
        """What the function returns, carried out where it belongs."""
        if function.placement is Placement.LOOP:
            return await function.call(**arguments)
        if function.placement is Placement.THREAD:
            return await self._threads.call(function.call, arguments)
        assert function.reference is not None
        return await self._processes.call(function.reference, arguments, function.limits)

    def opened(self, kind: type[C]) -> C:
        """The worker's one object of this class, made for the first node that asks and closed with the worker."""
        if kind not in self._opened:
            self._opened[kind] = kind()
        found = self._opened[kind]
        assert isinstance(found, kind)
        return found

    async def close(self) -> None:
        """Closes what was opened; nothing may be used afterwards."""
        for each in self._opened.values():
            await each.close()
        if self._session is not None:
            await self._session.close()
        self._threads.close()
        await self._processes.close()
        if self._sandboxes is not None:
            await self._sandboxes.close()

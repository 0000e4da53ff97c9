"""What a run of a node is given beside its parameters: which attempt it is, and what the worker offers."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from ropewalk.core.canonical import writable
from ropewalk.nodes import lookups
from ropewalk.nodes.deaths import attributed
from ropewalk.nodes.facilities import Facilities
from ropewalk.nodes.failure import NodeFailure, failure_of
from ropewalk.nodes.processes import ProcessDied

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable

    import aiohttp

    from ropewalk.nodes.credentials import Credential, Token
    from ropewalk.nodes.files import Files
    from ropewalk.nodes.functions import Function
    from ropewalk.nodes.masking import Masking
    from ropewalk.nodes.sandboxed import Code, Ran
    from ropewalk.nodes.smtp import SmtpSettings

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

T = TypeVar("T")

_log = logging.getLogger("ropewalk.node")


class NodeContext(Struct, frozen=True, kw_only=True):
    """Which attempt this is, and what the worker offers. Times are µs of the store's clock."""

    execution: str
    workspace: str
    node: str
    make_key: Callable[[], str]
    now: int
    facilities: Facilities
    attempt: int = 1
    item: int | None = None
    deadline: int | None = None
    secrets: tuple[str, ...] = ()
    get_bounds: Callable[[], tuple[str, ...]] = tuple
    get_files: "Callable[[], Files | None] | None" = None
    get_credentials: Callable[[], str | Mapping[str, str] | None] = lambda: None
    fetched: "Mapping[str, Credential] | None" = None

    @property
    def bounded_by(self) -> tuple[str, ...]:
        """The actors with a share alone that bound what the execution reaches; see `core/reach.py`."""
        return self.get_bounds()

    def conceal(self, secret: str | None) -> None:
        """Masks a secret in everything this run reports from now on: its result, its errors and its log lines."""
        if secret and secret not in self.secrets:
            # In place: the runner, which masks what the node returns or raises, has this very context.
            force_setattr(self, "secrets", (*self.secrets, secret))

    def masked(self, text: str) -> str:
        """The text without what was concealed; for a node that cuts a text short before it reports it."""
        return self._masking.text(text) if self.secrets else text

    @property
    def _masking(self) -> "Masking":
        from ropewalk.nodes.masking import Masking  # here, since most nodes have no secrets

        return Masking(self.secrets)

    def masked_result(self, result: Any) -> Any:
        """What the node returned, without what was concealed."""
        return self._masking.result(result)

    def masked_failure(self, raised: BaseException) -> NodeFailure:
        """What the node raised, as a failure without what was concealed."""
        return NodeFailure(self._masking.error(failure_of(raised, self.masked)))

    async def credential(self, slot: str = "", *types: str) -> "Credential | None":
        """The credential that the node names for this slot, of one of these types; None if it names none.

        Its secrets are concealed. A permanent failure if it does not fit, or the execution may not use it.
        """
        from ropewalk.nodes import credentials  # here, since most nodes have none

        found = await self._fetched(slot) if self.fetched is None else self.fetched.get(slot)
        if found is not None:
            credentials.require_type(found, types)
        return found

    async def fetch_credentials(self) -> None:
        """Looks up all the credentials that the node names: a type that only shapes values waits for nothing later."""
        from ropewalk.nodes import credentials  # here, as above

        found = {slot: await self._fetched(slot) for slot in credentials.slots_of(self.get_credentials())}
        force_setattr(self, "fetched", found)

    async def _fetched(self, slot: str) -> "Credential | None":
        from ropewalk.nodes import credentials  # here, as above

        name = credentials.slots_of(self.get_credentials()).get(slot)
        if name is None:
            return None
        kept = self.facilities.credentials
        if kept is None:
            raise NodeFailure.permanent("there are no credentials here: the worker has no store of them")
        if bounded_by := self.bounded_by:
            await kept.require(self.workspace, name, bounded_by)
        found = await kept.get(self.workspace, name)
        for secret in credentials.texts_of(found.values) if found.secrets is None else found.secrets:
            self.conceal(secret)
        return found

    async def token(self, credential: "Credential", renew: "Callable[[], Awaitable[Token]]", refused: str = "") -> str:
        """An access token for this credential, which all workers share; it is concealed. See `Credentials.token`."""
        kept = self.facilities.credentials
        if kept is None:
            raise NodeFailure.permanent("there are no credentials here: the worker has no store of them")

        async def concealed() -> "Token":
            made = await renew()
            self.conceal(made.value)
            self.conceal(made.refresh)
            return made

        token = await kept.token(self.workspace, credential, concealed, refused)
        self.conceal(token)
        return token

    @property
    def smtp(self) -> "SmtpSettings | None":
        """The worker's mail server; its password is concealed."""
        server = self.facilities.smtp
        if server is not None:
            self.conceal(server.password)
        return server

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this work; made when a node asks, since most never do."""
        return self.make_key()

    @property
    def http(self) -> "aiohttp.ClientSession":
        """The shared session, behind the network guard; names are looked up for this workspace from now on."""
        lookups.workspace.set(self.workspace)
        return self.facilities.http

    @property
    def files(self) -> "Files":
        """Files as this attempt reads and writes them; a permanent failure where no store is."""
        files = self.facilities.files if self.get_files is None else self.get_files()
        if files is None:
            raise NodeFailure.permanent("files are not kept where this node runs: run it on a worker of the store")
        return files

    async def connect(self, host: str, port: int) -> "socket.socket":
        """A connection to this host, behind the network guard."""
        lookups.workspace.set(self.workspace)
        return await self.facilities.guard.connect(host, port)

    async def carry_out(self, function: "Function", arguments: Mapping[str, Any]) -> Any:
        """What the function returns, carried out where it belongs; a death of its process is laid to this run."""
        return await self._survived(self.facilities.carry_out(function, arguments))

    async def run_code(self, code: "Code", size: int) -> "Ran":
        """What the code gives, in a sandbox; a death of it is laid to this run."""
        return await self._survived(self.facilities.sandboxes.run(code, size))

    async def _survived(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except ProcessDied as died:
            raise await attributed(died, self) from None

    def log(self, message: str, /, **fields: Any) -> None:
        """Writes a structured line that names this attempt."""
        self.record("info", message, fields)

    def record(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """Writes a structured line of this level."""
        about = {"execution": self.execution, "workspace": self.workspace, "node": self.node, "attempt": self.attempt}
        told, message = dict(fields), writable(message)
        if self.secrets:
            message, told = self.masked(message), self._masking.value(told)
        _log.log(LEVELS[level], "%s", message, extra={"about": about | {"item": self.item}, "fields": told})

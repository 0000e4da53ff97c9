"""Host names to addresses, by the machine's own resolver: its hosts file, its search domains, its name servers.

That resolver blocks, for half a minute if a name server is silent, and cannot be stopped. So each lookup has a thread
of its own, which is abandoned when the deadline has passed and ends when the resolver does; a daemon thread keeps no
process from ending. A workspace has a few of these threads, so that names without an answer keep only the workspace
that asks for them waiting. The same name is looked up once at a time, and its answer kept for a few seconds: the
resolver does not tell how long it holds.
"""

import asyncio
import socket
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Final

from msgspec import Struct

DEADLINE: Final = 10.0
"""How long a caller waits for an answer (s)."""
KEPT: Final = 5.0
REFUSAL_KEPT: Final = 1.0
"""How long an answer, and that there is none, hold (s)."""
PER_WORKSPACE: Final = 8
IN_ALL: Final = 128
"""How many lookups of a workspace, and of all of them, are under way at once, the abandoned ones included."""
MOST_KEPT: Final = 4_096

Answer = Sequence[str] | Exception
workspace: ContextVar[str] = ContextVar("workspace", default="")
"""On whose behalf a name is looked up."""


def system_addresses(host: str) -> list[str]:
    """What the machine's resolver says, when it says it."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


class _Lookup(Struct, eq=False):
    """One name that a workspace asks for; under way once it has a thread."""

    workspace: str
    host: str
    answer: asyncio.Future[Answer]
    callers: int = 0
    is_under_way: bool = False


class _Kept(Struct, frozen=True):
    answer: Answer
    until: float


class Lookups:
    """Looks names up, a few at a time for each workspace."""

    def __init__(self, addresses: Callable[[str], Sequence[str]] = system_addresses, *, deadline: float = DEADLINE,
                 per_workspace: int = PER_WORKSPACE, in_all: int = IN_ALL) -> None:  # fmt: skip
        self._addresses = addresses
        self._deadline = deadline
        self._per_workspace = per_workspace
        self._in_all = in_all
        self._open: dict[tuple[str, str], _Lookup] = {}
        # The threads in use by workspace, and what waits for one; a workspace that was served goes to the end.
        self._busy: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[_Lookup]] = OrderedDict()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def resolve(self, host: str, port: int = 0) -> Sequence[str]:
        """The addresses of the host; TimeoutError if there is no answer in time, else what the resolver raises."""
        name = host.lower()
        kept = self._kept.get(name)
        if kept is None or kept.until <= asyncio.get_running_loop().time():
            answer = await self._ask(self._lookup(workspace.get(), name))
        else:
            answer = kept.answer
        if isinstance(answer, Exception):
            raise answer.with_traceback(None)
        return answer

    def _lookup(self, asking: str, host: str) -> _Lookup:
        """The lookup of this name that is open, or a new one, which begins as soon as there is a thread for it."""
        known = self._open.get((asking, host))
        if known is None:
            known = _Lookup(asking, host, asyncio.get_running_loop().create_future())
            self._open[asking, host] = known
            self._waiting.setdefault(asking, deque()).append(known)
            self._begin()
        return known

    async def _ask(self, lookup: _Lookup) -> Answer:
        lookup.callers += 1
        try:
            async with asyncio.timeout(self._deadline):
                return await asyncio.shield(lookup.answer)
        except TimeoutError:
            return TimeoutError(self._why_late(lookup))
        finally:
            lookup.callers -= 1
            if not lookup.callers and not lookup.is_under_way:
                self._forget(lookup)

    def _why_late(self, lookup: _Lookup) -> str:
        if lookup.is_under_way:
            return f"there was no answer within {self._deadline:g} s"
        busy = self._busy.get(lookup.workspace, 0)
        return f"{busy} other names this workspace asked for had no answer within {self._deadline:g} s; try again later"

    def _forget(self, lookup: _Lookup) -> None:
        """A lookup that never began, and that no caller waits for any more, keeps no other from its turn."""
        del self._open[lookup.workspace, lookup.host]
        waiting = self._waiting[lookup.workspace]
        waiting.remove(lookup)
        if not waiting:
            del self._waiting[lookup.workspace]

    def _begin(self) -> None:
        """Begin what waits, in turn by workspace, as far as there are threads."""
        while sum(self._busy.values()) < self._in_all and (asking := self._next_workspace()) is not None:
            waiting = self._waiting[asking]
            lookup = waiting.popleft()
            if waiting:
                self._waiting.move_to_end(asking)
            else:
                del self._waiting[asking]
            self._start(lookup)

    def _next_workspace(self) -> str | None:
        """The first in line that has a thread left."""
        return next((each for each in self._waiting if self._busy.get(each, 0) < self._per_workspace), None)

    def _start(self, lookup: _Lookup) -> None:
        loop = asyncio.get_running_loop()
        lookup.is_under_way = True
        self._busy[lookup.workspace] = self._busy.get(lookup.workspace, 0) + 1

        def work() -> None:
            answer = self._found(lookup.host)
            with suppress(RuntimeError):  # the loop is closed: the callers are gone
                loop.call_soon_threadsafe(self._end, lookup, answer)

        try:
            threading.Thread(target=work, name="ropewalk-lookup", daemon=True).start()
        except RuntimeError as error:  # the machine has no thread left
            loop.call_soon(self._end, lookup, OSError(str(error)))

    def _found(self, host: str) -> Answer:
        try:
            return self._addresses(host)
        except Exception as error:  # noqa: BLE001 -- any error is for the callers and not for the thread
            return error

    def _end(self, lookup: _Lookup, answer: Answer) -> None:
        self._busy[lookup.workspace] -= 1
        if not self._busy[lookup.workspace]:
            del self._busy[lookup.workspace]
        del self._open[lookup.workspace, lookup.host]
        self._keep(lookup.host, answer)
        lookup.answer.set_result(answer)
        self._begin()

    def _keep(self, host: str, answer: Answer) -> None:
        seconds = REFUSAL_KEPT if isinstance(answer, Exception) else KEPT
        self._kept[host] = _Kept(answer, asyncio.get_running_loop().time() + seconds)
        self._kept.move_to_end(host)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

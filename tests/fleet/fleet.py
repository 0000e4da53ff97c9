"""Brings members of a fleet up and down, and is their client: a service that accepts and claims nothing."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import asyncpg
import msgspec

from ropewalk.core.definition import DEFAULT_LIMITS
from ropewalk.engines.settings import WorkerSettings
from ropewalk.service import Service
from ropewalk.store import workspaces
from ropewalk.wiring import Settings, node_types, open_service
from tests.fleet.ledgers import Place
from tests.fleet.member import Request
from tests.fleet.workflows import types_of
from tests.polling import PATIENCE, Overdue, until
from tests.store.samples import ROOT

LEASE: Final = 2.0


class Misbehaved(Exception):
    """A member did what it never may: end by itself, or not answer."""


class Nursery:
    """A process with everything imported, from which members are forked."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "tests.fleet.member"]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
        )
        self._pending = b""
        self._codes: dict[int, int] = {}
        self.living: dict[int, None] = {}

    def ask(self, request: Request) -> int:
        """Bring up a member; its number."""
        assert self._process.stdin
        self._process.stdin.write(msgspec.json.encode(request) + b"\n")
        self._process.stdin.flush()
        before = len(self.living) + len(self._codes)
        while len(self.living) + len(self._codes) == before:
            if not self._hear(PATIENCE):
                raise Misbehaved("the nursery does not answer")
        return next(reversed(self.living))

    def signal(self, pid: int, number: signal.Signals) -> None:
        """Nothing, if it is dead: its number is not another's before the nursery has buried it."""
        self._hear(0)
        if pid in self.living:
            os.kill(pid, number)

    def code(self, pid: int) -> int | None:
        """How the member ended, if it has."""
        self._hear(0)
        return self._codes.get(pid)

    def _hear(self, seconds: float) -> bool:
        """Take note of what the nursery has said."""
        assert self._process.stdout
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        if not ready:
            return False
        read = os.read(self._process.stdout.fileno(), 65536)
        if not read:
            raise Misbehaved("the nursery ended")
        *lines, self._pending = (self._pending + read).split(b"\n")
        for line in lines:
            self._note(line.decode().split())
        return True

    def _note(self, words: list[str]) -> None:
        pid = int(words[1])
        if words[0] == "born":
            self._codes.pop(pid, None)
            self.living[pid] = None
        else:
            self.living.pop(pid, None)
            self._codes[pid] = int(words[2])

    def close(self) -> None:
        """Everyone goes at once."""
        with self._process:
            for pid in list(self.living):
                self.signal(pid, signal.SIGKILL)
            self._process.kill()


@contextmanager
def nursery(environment: Mapping[str, str] | None = None) -> Iterator[Nursery]:
    opened = Nursery(environment)
    try:
        yield opened
    finally:
        opened.close()


class Member:
    """One worker, as its driver sees it."""

    def __init__(self, home: Nursery, request: Request) -> None:
        self._home = home
        self.request = request
        self.pid = home.ask(request)

    @property
    def said(self) -> str:
        """Everything it has said and logged."""
        path = Path(self.request.place.log(self.request.name))
        return path.read_text() if path.exists() else ""

    @property
    def names(self) -> list[str]:
        """What it was called in the store, first to last: one that loses its lease comes back under another name."""
        words = [line.split() for line in self.said.splitlines()]
        return [line[-1] for line in words if line[:1] == ["serving"] or line[-4:-1] == ["back", "as", "worker"]]

    @property
    def refused(self) -> int:
        """How many late writes of it were refused, as it said in the end."""
        told = [line.split()[1] for line in self.said.splitlines() if line.startswith("refused ")]
        return int(told[0]) if told else 0

    @property
    def code(self) -> int | None:
        return self._home.code(self.pid)

    def signal(self, number: signal.Signals) -> None:
        self._home.signal(self.pid, number)

    async def served(self) -> "Member":
        """It has joined the others."""

        async def has_joined() -> bool:
            if self.code is not None:
                raise Misbehaved(f"{self.request.name} ended with {self.code}: {self.said[-2000:]}")
            return bool(self.names)

        await until(has_joined, f"{self.request.name} has joined")
        return self

    async def ended(self) -> int:
        """Its exit code."""

        async def is_over() -> bool:
            return self.code is not None

        await until(is_over, f"{self.request.name} has ended")
        assert self.code is not None
        return self.code

    async def back(self, times: int) -> None:
        """It has come back under another name so many times."""

        async def is_back() -> bool:
            return len(self.names) > times

        await until(is_back, f"{self.request.name} is back")


class Onlooker:
    """Looks at a database on one connection, made when it is needed: one for each look would be most of the work."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Any = None
        self._turn = asyncio.Lock()

    async def ask(self, text: str, *arguments: Any) -> list[tuple[Any, ...]]:
        async with self._turn:
            if self._connection is None or self._connection.is_closed():
                self._connection = await asyncpg.connect(self._url)
            return [tuple(row) for row in await self._connection.fetch(text, *arguments)]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()


class Fleet:
    """Members on one database, and a client beside them."""

    def __init__(self, home: Nursery, url: str, place: Place, client: Service) -> None:
        self.home = home
        self.url = url
        self.place = place
        self.client = client
        self.members: list[Member] = []
        self.buried: list[Member] = []
        self._born = 0
        self._onlooker = Onlooker(url)

    # Members

    def spawn(self, home: Nursery | None = None, **settings: Any) -> Member:
        """One more member, which need not have joined yet."""
        self._born += 1
        request = Request(place=self.place, name=f"member-{self._born}", db=self.url, **{"lease": LEASE, **settings})
        member = Member(home or self.home, request)
        self.members.append(member)
        return member

    async def join(self, count: int = 1, **settings: Any) -> list[Member]:
        """So many more members, which have joined."""
        members = [self.spawn(**settings) for _ in range(count)]
        return [await member.served() for member in members]

    @property
    def living(self) -> list[Member]:
        return [member for member in self.members if member.code is None]

    async def leave(self, member: Member) -> None:
        """The member is asked to leave, and has left in good order."""
        member.signal(signal.SIGTERM)
        code = await member.ended()
        assert code == 0, (code, member.said[-2000:])

    async def dismiss(self) -> None:
        """The same for all members, at once; a member that has just been born joins first."""
        leaving = [await member.served() for member in self.living]
        for member in leaving:
            member.signal(signal.SIGTERM)
        codes = [await member.ended() for member in leaving]
        assert codes == [0] * len(leaving), codes

    def faults(self) -> list[str]:
        """What members have logged that no kill explains."""
        return [
            f"{member.request.name}: {member.said[-3000:]}" for member in self.members if "Traceback" in member.said
        ]

    # The client

    def of(self, workspace: str) -> Service:
        """The client as one of another workspace."""
        client = self.client
        return Service(client.store, client.engine, client.types, {}, DEFAULT_LIMITS, workspace)

    async def found(self, workspace: str, slots: int | None) -> Service:
        """A new workspace with so many slots."""
        async with self.client.store.transaction() as tx:
            await workspaces.ensure(tx, workspace, workspaces.Plan.FREE, self.client.store.now())
            await workspaces.override_slots(tx, workspace, slots)
        return self.of(workspace)

    async def states(self, executions: Iterable[str]) -> list[str]:
        """How they ended, once all have."""
        async with asyncio.timeout(PATIENCE):
            return [str((await self.client.ended(execution)).state) for execution in executions]

    # The store, as someone else sees it

    async def ask(self, text: str, *arguments: Any) -> list[tuple[Any, ...]]:
        return await self._onlooker.ask(text, *arguments)

    async def ask_freely(self, text: str, *arguments: Any) -> None:
        """The same without minding what depends on what."""
        connection = await asyncpg.connect(self.url, server_settings={"session_replication_role": "replica"})
        try:
            await connection.execute(text, *arguments)
        finally:
            await connection.close()

    async def owned_by(self, names: list[str]) -> list[str]:
        """The executions that a worker of one of these names has in hand."""
        return [row[0] for row in await self.ask("select execution from live where owner = any($1)", names)]

    async def quiet(self, seconds: float = PATIENCE) -> None:
        """Everything that was ever accepted has ended."""

        async def is_quiet() -> bool:
            return await self.ask("select 1 from live union all select 1 from inbox limit 1") == []

        try:
            await until(is_quiet, "everything has ended", seconds)
        except Overdue as error:
            left = await self.ask("select * from live order by execution limit 5")
            letters = await self.ask("select * from inbox order by id limit 5")
            raise Misbehaved(f"{error}; left: {left}; to be told: {letters}") from error

    def close(self) -> None:
        """Members that are left are killed."""
        for member in self.living:
            member.signal(signal.SIGKILL)
        self._onlooker.close()


@asynccontextmanager
async def fleet(home: Nursery, url: str, place: Place) -> AsyncIterator[Fleet]:
    """A fleet without members yet; members that are left at the end are killed."""
    types = node_types(types_of(place))
    settings = Settings(db=url, worker=WorkerSettings(claims=False))
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_service(settings, types))
        opened = Fleet(home, url, place, client)
        try:
            yield opened
        finally:
            opened.close()

"""The other side of the control socket: the verbs of the service, carried out by the process that owns the store."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from ropewalk.control import wire
from ropewalk.control.wire import LONGEST_ANSWER, Item, Refusal, Request, SavedVersion
from ropewalk.core import log, signals
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import RopewalkError, Unavailable
from ropewalk.core.events import Event
from ropewalk.core.signals import PersonSignal
from ropewalk.engines.base import Ended
from ropewalk.service.node_types import LoadedNodeTypes
from ropewalk.service.retention import START, Policy, Position, Swept
from ropewalk.service.telling import SignalVerbs, Told

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
CHECK_EVERY = 2.0


class NoAnswer(Unavailable):
    """No process listens on the socket: its owner is gone, or was never there. Nothing was asked."""


class RemoteService(SignalVerbs):
    """Asks the owner of a store; every request has a connection of its own, so that many can wait at once."""

    def __init__(self, path: str) -> None:
        self._path = path

    @classmethod
    async def connect(cls, path: str) -> "RemoteService":
        """The service behind a socket; NoAnswer if there is none."""
        remote = cls(path)
        async with remote._connected():
            return remote

    async def save(self, document: JSON, by: str = "local") -> SavedVersion:
        return msgspec.convert(await self._ask(wire.Save(document, by)), SavedVersion)

    async def publish_version(self, workflow: str, version: int, by: str = "local") -> bool:
        return bool(await self._ask(wire.PublishVersion(workflow, version, by)))

    async def start(self, version: SavedVersion, input: JSON = None, vars: Mapping[str, JSON] | None = None,  # noqa: A002
                    actor: str = "local", priority: int = 5, key: str | None = None,
                    trace: str | None = None, bounded_by: tuple[str, ...] = (),
                    execution: str | None = None) -> str:  # fmt: skip
        about = (actor, priority, key, trace, bounded_by, execution)
        return str(await self._ask(wire.Start(version.workflow, version.version, input, dict(vars or {}), *about)))

    async def tell(self, execution: str | None, signal: PersonSignal, by: str) -> Told:
        return msgspec.convert(await self._ask(wire.Tell(execution, msgspec.Raw(signals.encode(signal)), by)), Told)

    async def publish(self, subject: str, payload: JSON = None, by: str = "local") -> int:
        return int(await self._ask(wire.Publish(subject, payload, by)))

    async def reset_breaker(self, target: str, by: str = "local") -> bool:
        return bool(await self._ask(wire.ResetBreaker(target, by)))

    async def manage_credentials(self, request: str, about: dict[str, JSON], by: str = "local") -> JSON:
        return await self._ask(wire.ManageCredentials(request, about, by))

    async def trigger(self, action: str, arguments: Mapping[str, JSON], by: str = "local") -> JSON:
        return await self._ask(wire.Trigger(action, dict(arguments), by))

    async def rerun(self, execution: str, node: str, by: str = "local", version: int | None = None,
                    bounded_by: tuple[str, ...] = ()) -> str:  # fmt: skip
        return str(await self._ask(wire.Rerun(execution, node, by, version, bounded_by)))

    async def replay(self, execution: str, by: str = "local", bounded_by: tuple[str, ...] = ()) -> str:
        return str(await self._ask(wire.Replay(execution, by, bounded_by)))

    async def note(self, letter: str, text: str, by: str = "local") -> None:
        await self._ask(wire.Note(letter, text, by))

    async def sweep(self, policy: Policy, position: Position = START, by: str = "local") -> Swept:
        return msgspec.convert(await self._ask(wire.Sweep(policy, position, by)), Swept)

    async def learn(self, modules: tuple[str, ...], folder: str) -> LoadedNodeTypes:
        return msgspec.convert(await self._ask(wire.Learn(modules, folder)), LoadedNodeTypes)

    async def ended(self, execution: str) -> Ended:
        return msgspec.convert(await self._ask(wire.Ended(execution)), Ended)

    async def follow(self, execution: str, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        """Every event after the given number, those recorded and those to come, until the end."""
        async with self._connected() as connection:
            await _send(connection, wire.Follow(execution, after))
            while isinstance(answer := await _received(connection, self._path), Item):
                seq, events = log.decode(bytes(answer.value))
                yield seq, events[0]

    # One request

    async def _ask(self, request: Request) -> Any:
        async with self._connected() as connection:
            await _send(connection, request)
            answer = await _received(connection, self._path)
            assert not isinstance(answer, Item), "only a stream has items"
            return answer.value

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Connection]:
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=LONGEST_ANSWER)
        except OSError as error:
            raise NoAnswer(f"no process listens on {self._path} ({error.strerror}): try again") from error
        try:
            yield reader, writer
        finally:
            writer.close()


async def _send(connection: Connection, request: Request) -> None:
    line = wire.line_of(request)
    if len(line) > wire.LONGEST_REQUEST:
        raise RopewalkError(f"the request has {len(line):,} bytes; at most {wire.LONGEST_REQUEST:,} can be sent")
    try:
        connection[1].write(line)
        await connection[1].drain()
    except ConnectionError as error:
        raise _owner_gone() from error


async def _received(connection: Connection, path: str) -> wire.Result | Item:
    """The next answer; a refusal is raised as the error it was."""
    try:
        line = await _line(connection[0], path)
    except ConnectionError as error:
        raise _owner_gone() from error
    except ValueError as error:
        raise RopewalkError(f"the answer has more than {LONGEST_ANSWER:,} bytes") from error
    if not line.endswith(b"\n"):
        raise _owner_gone()
    answer = wire.answer_in(line)
    if isinstance(answer, Refusal):
        raise wire.error_of(answer)
    return answer


async def _line(reader: asyncio.StreamReader, path: str) -> bytes:
    """The next line, waited for as long as the owner's socket is there: an owner that leaves removes it."""
    reading = asyncio.ensure_future(reader.readline())
    try:
        while not (await asyncio.wait((reading,), timeout=CHECK_EVERY))[0]:
            if not os.path.exists(path):
                raise ConnectionResetError(path)
        return reading.result()
    finally:
        reading.cancel()


def _owner_gone() -> Unavailable:
    return Unavailable(
        "the process that owns the store went away before it answered: see what was done, then try again"
    )

"""The owner's side of the control socket."""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, assert_never

import msgspec

from ropewalk.control import wire
from ropewalk.control.place import socket_path
from ropewalk.control.wire import LONGEST_REQUEST, Item, Refusal, Request, Result, SavedVersion
from ropewalk.core import log
from ropewalk.core.errors import InvalidInput, RopewalkError, Unavailable
from ropewalk.service import Service
from ropewalk.store.sqlite import SqliteStore

MOST_CONNECTIONS: Final = 100
LAST_WORDS: Final = 0.1

# Where the kernel cannot name the peer, the directory alone keeps others out.
_PEER: Final = getattr(socket, "SO_PEERCRED", None)
_log = logging.getLogger("ropewalk.control")


@asynccontextmanager
async def listening(service: Service, store: SqliteStore) -> AsyncIterator[None]:
    """Carries out what other processes of this user ask, until the end; the lock file says where to ask."""
    server = ControlServer(service)
    try:
        await _listen(server, store)
        yield
    finally:
        store.set_socket(None)
        await server.close()


async def _listen(server: "ControlServer", store: SqliteStore) -> None:
    try:
        path = socket_path(store.path)
        await server.open(path)
    except (OSError, Unavailable) as error:
        # Executing matters more than being spoken to: others are then told that the store is in use.
        _log.warning("nobody can speak to this process: %s", error)
    else:
        store.set_socket(path)


class ControlServer:
    """Answers requests, one after the other on each connection."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._server: asyncio.Server | None = None
        self._socket: tuple[str, os.stat_result] | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def talks(self) -> int:
        """How many speak to it now."""
        return len(self._talks)

    async def open(self, path: str) -> None:
        """Listens at `path`; whoever was there before left it behind, since the store has one owner."""
        with suppress(FileNotFoundError):
            os.unlink(path)
        # Serving comes last: whoever is broken off in it has a server to close.
        self._server = await asyncio.start_unix_server(
            self._connected, path, limit=LONGEST_REQUEST, start_serving=False
        )
        os.chmod(path, 0o600)
        self._socket = (path, os.lstat(path))
        await self._server.start_serving()

    async def close(self) -> None:
        """Hangs up, and takes the socket away unless another has taken its place."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        talks = list(self._talks)
        if talks:
            # Those who follow what has just ended hear of it before we hang up.
            await asyncio.wait(talks, timeout=LAST_WORDS)
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        if self._socket is not None:
            path, ours = self._socket
            with suppress(FileNotFoundError):
                if os.path.samestat(os.lstat(path), ours):
                    os.unlink(path)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # One that was accepted while we closed would wait for an answer for as long as this process lives.
        if self._is_closed or len(self._talks) >= MOST_CONNECTIONS or not _is_ours(writer):
            writer.close()
            return
        # A task of our own: the one asyncio would make complains when it is cancelled.
        talk = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._talk(reader, writer)
        except ConnectionError as error:
            _log.debug("a connection broke: %s", error)
        finally:
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers until the other side hangs up, which also ends what it waits for."""
        line = await _next_line(reader)
        while line.endswith(b"\n"):
            work = asyncio.ensure_future(self._answer(line, writer))
            following = asyncio.ensure_future(_next_line(reader))
            try:
                await asyncio.wait((work, following), return_when=asyncio.FIRST_COMPLETED)
                if following.done() and not following.result():
                    return
                await work
                line = await following
            finally:
                for task in (work, following):
                    task.cancel()
                await asyncio.gather(work, following, return_exceptions=True)
        if line:
            await self._answer(line, writer)

    async def _answer(self, line: bytes, writer: asyncio.StreamWriter) -> None:
        answer: Result | Refusal
        try:
            answer = Result(await self._do(_understood(line), writer))
        except RopewalkError as error:
            answer = wire.refusal_of(error)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 -- a mistake of ours must not leave the other side waiting
            _log.exception("a request could not be carried out")
            answer = Refusal((RopewalkError.__name__,), f"the owner of the store failed: {type(error).__name__}")
        writer.write(wire.line_of(answer))
        await writer.drain()

    async def _do(self, request: Request, writer: asyncio.StreamWriter) -> Any:
        if isinstance(request, wire.Follow):
            async for seq, event in self._service.engine.follow(request.execution, request.after):
                writer.write(wire.line_of(Item(msgspec.Raw(log.encode(seq, [event])))))
                await writer.drain()
            return None
        return await carried_out(self._service, request)


def _understood(line: bytes) -> Request:
    if not line.endswith(b"\n"):
        raise InvalidInput(f"the request is longer than {LONGEST_REQUEST:,} bytes")
    try:
        return wire.request_in(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(f"the request cannot be understood: {error}") from error


async def _next_line(reader: asyncio.StreamReader) -> bytes:
    """The next line; nothing at the end, and its beginning alone if it is too long."""
    try:
        return await reader.readline()
    except ValueError:
        return b"(too long)"


def _is_ours(writer: asyncio.StreamWriter) -> bool:
    """Whether the peer is a process of this user."""
    if _PEER is None:
        return True
    credentials = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, _PEER, struct.calcsize("3i"))
    user: int = struct.unpack("3i", credentials)[1]
    return user == os.geteuid()


async def carried_out(service: Service, request: Request) -> Any:
    """What the service's verb of this name answers, as JSON."""
    match request:
        case wire.Save(document, by):
            version = await service.save(document, by)
            return SavedVersion(version.workflow, version.version, version.hash)
        case wire.PublishVersion(workflow, number, by):
            return await service.publish_version(workflow, number, by)
        case wire.Start(workflow, number, value, overrides, by, priority, key, trace, bounded_by, execution):
            version = await service.engine.versions.version(workflow, number)
            return await service.start(version, value, overrides, by, priority, key, trace, bounded_by, execution)
        case wire.Cancel(execution, by, reason):
            return await service.cancel(execution, by, reason)
        case wire.Pause(execution, by, reason):
            return await service.pause(execution, by, reason)
        case wire.Resume(execution, by):
            return await service.resume(execution, by)
        case wire.Retry(execution, by):
            return await service.retry(execution, by)
        case wire.Signal(execution, name, payload, by):
            return await service.signal(execution, name, payload, by)
        case wire.Publish(subject, payload, by):
            return await service.publish(subject, payload, by)
        case wire.Decide(execution, node, approved, by, payload, item):
            return await service.decide(execution, node, approved=approved, by=by, payload=payload, item=item)
        case wire.GiveUp(execution, node, item, by, reason):
            return await service.give_up(execution, node, item, by, reason)
        case wire.ResetBreaker(target, by):
            return await service.reset_breaker(target, by)
        case wire.Rerun(execution, node, by, of_version, bounded_by):
            return await service.rerun(execution, node, by, of_version, bounded_by)
        case wire.Replay(execution, by, bounded_by):
            return await service.replay(execution, by, bounded_by)
        case wire.Requeue(letter, inputs, by):
            return await service.requeue(letter, inputs, by)
        case wire.Fix(letter, output, by, ports):
            return await service.fix(letter, output, by, ports)
        case wire.Discard(letter, by, notes):
            return await service.discard(letter, by, notes)
        case wire.Note(letter, text, by):
            return await service.note(letter, text, by)
        case wire.Sweep(policy, position, by):
            return await service.sweep(policy, position, by)
        case wire.Learn(modules, folder):
            return await service.learn(modules, folder)
        case wire.Ended(execution):
            return await service.ended(execution)
        case wire.Follow():
            raise AssertionError("a stream is answered item by item")
        case _:
            assert_never(request)

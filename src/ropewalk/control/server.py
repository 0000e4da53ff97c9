"""The owner's side of the control socket."""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import msgspec

from ropewalk.control import wire
from ropewalk.control.socket_path import socket_path
from ropewalk.control.wire import LONGEST_REQUEST, Item, Refusal, Request, Result, SavedVersion, Version
from ropewalk.core import log
from ropewalk.core.errors import InvalidInput, RopewalkError, Unavailable
from ropewalk.service import Service
from ropewalk.store.sqlite import SqliteStore

MOST_CONNECTIONS: Final = 100
CLOSE_GRACE: Final = 0.1

# Where the kernel cannot name the peer, the directory alone keeps other users out.
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
        # Executing matters more than being reached: other commands are then told that the store is in use.
        _log.warning("other processes cannot reach this one: %s", error)
    else:
        store.set_socket(path)


class ControlServer:
    """Answers requests, one after the other on each connection."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._server: asyncio.Server | None = None
        self._socket: tuple[str, os.stat_result] | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def connections(self) -> int:
        """How many callers are connected now."""
        return len(self._connections)

    async def open(self, path: str) -> None:
        """Listen at `path`; a socket that is there was left behind, since the store has one owner."""
        with suppress(FileNotFoundError):
            os.unlink(path)
        # Serving comes last: a caller cancelled in the midst of it has a server to close.
        self._server = await asyncio.start_unix_server(
            self._connected, path, limit=LONGEST_REQUEST, start_serving=False
        )
        os.chmod(path, 0o600)
        self._socket = (path, os.lstat(path))
        await self._server.start_serving()

    async def close(self) -> None:
        """Close all connections, and remove the socket unless another process has put its own in its place."""
        self._is_closed = True
        if self._server is not None:
            self._server.close()
        connections = list(self._connections)
        if connections:
            # Callers that follow an execution which has just ended hear of the end before the connection closes.
            await asyncio.wait(connections, timeout=CLOSE_GRACE)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        if self._socket is not None:
            path, ours = self._socket
            with suppress(FileNotFoundError):
                if os.path.samestat(os.lstat(path), ours):
                    os.unlink(path)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A connection accepted while the server closes would wait for an answer for as long as this process lives.
        if self._is_closed or len(self._connections) >= MOST_CONNECTIONS or not _is_ours(writer):
            writer.close()
            return
        # A task made here: the one that asyncio would make logs an error when it is cancelled.
        connection = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._converse(reader, writer)
        except ConnectionError as error:
            _log.debug("a connection broke: %s", error)
        finally:
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer until the caller closes the connection, which also cancels the request under way."""
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
            answer = Result(await self._do(line, writer))
        except RopewalkError as error:
            answer = wire.refusal_of(error)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 -- a fault of the owner must not leave the caller waiting
            _log.exception("a request could not be carried out")
            answer = wire.refusal_of(RopewalkError(f"the owner of the store failed: {type(error).__name__}"))
        writer.write(wire.line_of(answer))
        await writer.drain()

    async def _do(self, line: bytes, writer: asyncio.StreamWriter) -> Any:
        if not line.endswith(b"\n"):
            raise InvalidInput(f"the request is longer than {LONGEST_REQUEST:,} bytes")
        request, caller = wire.request_in(line)
        if isinstance(request, wire.Follow):
            async for seq, event in self._service.follow(request.execution, request.after):
                writer.write(wire.line_of(Item(msgspec.Raw(log.encode(seq, [event])))))
                await writer.drain()
            return None
        return await carried_out(self._service, request, caller)


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


async def carried_out(service: Service, request: Request, caller: Version) -> Any:
    """What the service's method of the request's name answers, as JSON."""
    match request:
        case wire.Save(document, by):
            version = await service.save(document, by)
            return SavedVersion(version.workflow, version.version, version.hash)
        case wire.Start(workflow, number):
            version = await service.engine.versions.version(workflow, number)
            return await service.start(version, *msgspec.structs.astuple(request)[2:])
        case wire.Tell(execution, _, by):
            return await service.tell(execution, wire.signal_in(request, caller), by)
        case _:
            return await getattr(service, str(request.__struct_config__.tag))(*msgspec.structs.astuple(request))

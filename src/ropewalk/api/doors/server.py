"""The server: an app on a socket, from the first connection to the last answer."""

import asyncio
import errno
import logging
import math
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, cast

import uvicorn
from msgspec import Struct

from ropewalk.api.doors.connection_monitor import ConnectionLimits, ConnectionMonitor
from ropewalk.api.doors.connections import HttpConnection, WebSocketConnection
from ropewalk.api.nouns.leases import end_waiting
from ropewalk.api.streaming.streams import drain
from ropewalk.core.errors import RopewalkError

_log = logging.getLogger("ropewalk.api")
BACKLOG: Final = 4_096
LARGEST_MESSAGE: Final = 64 * 1024
MOST_FILES: Final = 65_536
OTHER_FILES: Final = 500
"""What is left for the store and for what nodes do."""


class CannotListen(RopewalkError):
    """Another process has the address, or this machine does not have it."""


class ServerSettings(Struct, frozen=True, kw_only=True):
    """The limits of connections, and how long (s) requests may still take when the server leaves."""

    limits: ConnectionLimits = ConnectionLimits()
    drain: float = 10.0


def listen(host: str, port: int, flag: str = "--port") -> socket.socket:
    """A socket that takes connections from now on; port 0 is any that is free. `flag` says where another is named."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotListen(f"{host} is no address to listen on: {error.strerror}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotListen(_why(host, port, flag, error)) from error
    listener.setblocking(False)
    return listener


def _why(host: str, port: int, flag: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        another = f"{flag} (0 is any)" if flag == "--port" else flag
        return f"port {port} of {host} is taken: end what listens there, or choose another with {another}"
    return f"this process may not listen on port {port} of {host}: {error.strerror}"


def address_of(listener: socket.socket) -> str:
    """The URL under which a socket is reached."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """uvicorn's, which leaves signals to us, says when it is up, and cuts off clients that take too long."""

    def __init__(self, config: uvicorn.Config, monitor: ConnectionMonitor) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()
        self._monitor = monitor

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()

    async def main_loop(self) -> None:
        self._watching = asyncio.ensure_future(self._monitor.watch(self.server_state.connections))
        try:
            await super().main_loop()
        except Exception:
            # Requests that were read are still answered; later ones never would be, so the process has to end.
            self.should_exit = True
            await self.shutdown()
            raise

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Also while the server drains, a client may take no longer than otherwise.
        await super().shutdown(sockets)
        self._watching.cancel()


@asynccontextmanager
async def serving(app: Any, listener: socket.socket, settings: ServerSettings) -> AsyncIterator[None]:
    """The app answers on this socket; at the end new connections are refused, and requests under way are answered.

    Should the server fail, the block is broken off: a process that answers no request is not to stay.
    """
    monitor = ConnectionMonitor(settings.limits)
    server = _Server(_configured(app, settings, monitor), monitor)
    running = asyncio.ensure_future(server.serve([listener]))
    up = asyncio.ensure_future(server.is_up.wait())
    await asyncio.wait((running, up), return_when=asyncio.FIRST_COMPLETED)
    break_off = partial(_break_off, asyncio.current_task())
    running.add_done_callback(break_off)
    try:
        yield
    finally:
        running.remove_done_callback(break_off)
        up.cancel()
        end_waiting(app)
        await drain(app)
        server.should_exit = True
        await running


def _break_off(block: "asyncio.Task[Any] | None", running: "asyncio.Future[None]") -> None:
    if block is not None and not running.cancelled() and (error := running.exception()) is not None:
        _log.critical("the server has failed, and ends", exc_info=error)
        block.cancel()


def _configured(app: Any, settings: ServerSettings, monitor: ConnectionMonitor) -> uvicorn.Config:
    _log_as_ours()
    return uvicorn.Config(
        app,
        lifespan="off",
        interface="asgi3",
        http=cast(type[asyncio.Protocol], partial(HttpConnection, monitor)),
        ws=cast(type[asyncio.Protocol], partial(WebSocketConnection, monitor)),
        log_config=None,
        access_log=False,
        server_header=False,
        # A client may claim any address in forwarding headers: limits go by the address of the connection.
        proxy_headers=False,
        ws_max_size=LARGEST_MESSAGE,
        ws_per_message_deflate=False,
        timeout_keep_alive=math.ceil(settings.limits.idle),
        timeout_graceful_shutdown=math.ceil(settings.drain),
        backlog=BACKLOG,
    )


class _Forward(logging.Handler):
    """What the server says, in our own log."""

    def emit(self, record: logging.LogRecord) -> None:
        _log.log(record.levelno, "%s", record.getMessage().strip(), exc_info=record.exc_info)


def _log_as_ours() -> None:
    """Errors alone: uvicorn warns of each malformed request, and a client could fill a disk with those."""
    theirs = logging.getLogger("uvicorn.error")
    theirs.setLevel(logging.ERROR)
    theirs.propagate = False
    if not any(isinstance(each, _Forward) for each in theirs.handlers):
        theirs.addHandler(_Forward())


def room_for_connections() -> int:
    """How many connections the system allows this process, which asks for as many as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(1, wanted - OTHER_FILES)

"""The session nodes share for HTTP, behind the guard. Imported when the first node asks for it: a library of this size
would cost every start of a worker, and many never call a server.
"""

import socket
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from ipaddress import IPv4Address

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from msgspec import Struct

from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.network import CONNECT_TIMEOUT, Address, Guard

MOST_CONNECTIONS = 512


class Resolver(AbstractResolver):
    """Names resolve to what `addresses` says; the loop's own lookups are few at a time, and wait for each other."""

    def __init__(self, addresses: Callable[[str, int], Awaitable[Sequence[Address]]]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [_resolved(host, port, address) for address in await self._addresses(host, port)]

    async def close(self) -> None:
        """Nothing is held open."""


def _resolved(host: str, port: int, address: Address) -> ResolveResult:
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    flags = socket.AI_NUMERICHOST
    return ResolveResult(hostname=host, host=str(address), port=port, family=family, proto=0, flags=flags)


class _Found(Struct, frozen=True):
    """What the guard said of a host, before a connection to it is made."""

    host: str
    port: int
    answer: Sequence[Address] | NodeFailure


_found: ContextVar[_Found] = ContextVar("found")


class _GuardedConnector(aiohttp.TCPConnector):
    """Connects to vetted addresses only, and has the host looked up before it takes one of the connections there are.

    Else hosts without an answer would hold them all, and calls to other hosts would wait.
    """

    def __init__(self, guard: Guard) -> None:
        super().__init__(
            resolver=Resolver(self._addresses),
            # Vetted at every new connection: a cached answer would outlive the name's own time to live.
            use_dns_cache=False,
            socket_factory=guard.open_socket,
            limit=MOST_CONNECTIONS,
        )
        self._guard = guard

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        host, port = req.url.raw_host or "", req.url.port or 0
        answer: Sequence[Address] | NodeFailure
        try:
            answer = await self._guard.addresses(host, port)
        except NodeFailure as failure:
            answer = failure  # a connection that is open already needs no answer
        token = _found.set(_Found(host, port, answer))
        try:
            return await super().connect(req, traces, timeout)
        finally:
            _found.reset(token)

    async def _addresses(self, host: str, port: int) -> Sequence[Address]:
        found = _found.get(None)
        if found is None or (found.host, found.port) != (host, port):
            return await self._guard.addresses(host, port)
        if isinstance(found.answer, NodeFailure):
            raise found.answer
        return found.answer


def guarded_session(guard: Guard) -> aiohttp.ClientSession:
    """A session that reaches only what the guard lets through, keeps no cookies and knows no proxy."""
    return aiohttp.ClientSession(
        connector=_GuardedConnector(guard),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
        # Nothing decompresses unasked: a node that asks for compression bounds what comes out of it.
        headers={"User-Agent": "ropewalk", "Accept-Encoding": "identity"},
    )

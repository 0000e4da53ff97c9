"""The session nodes share for HTTP, behind the guard. Imported when the first node asks for it: a library of this size
would cost every start of a worker, and many never call anyone.
"""

import socket
from ipaddress import IPv4Address

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from ropewalk.nodes.network import CONNECT_TIMEOUT, Address, Guard

MOST_CONNECTIONS = 512


class _GuardedResolver(AbstractResolver):
    """Names resolve to vetted addresses only."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [_resolved(host, port, address) for address in await self._guard.addresses(host, port)]

    async def close(self) -> None:
        """Nothing is held open."""


def _resolved(host: str, port: int, address: Address) -> ResolveResult:
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    flags = socket.AI_NUMERICHOST
    return ResolveResult(hostname=host, host=str(address), port=port, family=family, proto=0, flags=flags)


def guarded_session(guard: Guard) -> aiohttp.ClientSession:
    """A session that reaches only what the guard lets through, keeps no cookies and knows no proxy."""
    connector = aiohttp.TCPConnector(
        resolver=_GuardedResolver(guard),
        # Vetted at every new connection: a cached answer would outlive the name's own time to live.
        use_dns_cache=False,
        socket_factory=guard.open_socket,
        limit=MOST_CONNECTIONS,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
        # Nothing decompresses unasked: who asks for compression bounds what comes out of it.
        headers={"User-Agent": "ropewalk", "Accept-Encoding": "identity"},
    )

"""How an awaiting client connects: with aiohttp, whose requests cost a sixth of the CPU of httpx2's."""

from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2

from ropewalk.client.address import CONNECT, Settings, silence
from ropewalk.client.talking import Request

CONNECTIONS: Final = 1_000
"""How many there are at most: a caller who waits for an execution keeps one."""
KEPT: Final = 10.0
"""For how many seconds an idle connection is kept; the server closes its own after 15."""
UNSENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)


def session(to: Settings) -> aiohttp.ClientSession:
    """Connections to a server, kept from request to request; to be made on the loop that uses them."""
    # The same certificates as the blocking client's.
    trust = httpx2.create_ssl_context() if to.url.startswith("https") else True
    connector = aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=KEPT, ssl=trust)
    jar = aiohttp.DummyCookieJar()
    return aiohttp.ClientSession(connector=connector, headers=to.headers, cookie_jar=jar, proxy=_proxy(to))


def _proxy(to: Settings) -> str | None:
    """The proxy of the environment. Not by the library, which would take a token of the environment as well."""
    place = urlsplit(to.url)
    if not to.uses_environment or proxy_bypass(place.hostname or ""):
        return None
    return getproxies().get(place.scheme)


def patience_of(request: Request) -> aiohttp.ClientTimeout:
    """How long a request may take to connect, and how long the server may say nothing."""
    return _timeout(silence(request))


@lru_cache(maxsize=10)
def _timeout(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=seconds)

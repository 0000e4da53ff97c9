"""The guard in front of the network: which addresses a node may reach.

A host is resolved once (`lookups.py`); every one of its addresses must be globally routable or allowed by the
operator, and the connection goes to one of exactly these. The session's connector asks the guard when it resolves a
name and when it makes a socket, so a redirect, an address written in place of a name, and a node type that uses the
session in its own way all come through here.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.lookups import Lookups

if TYPE_CHECKING:
    from yarl import URL

SETTING = "ROPEWALK_ALLOW_HOSTS"
CONNECT_TIMEOUT = 10.0
MOST_ADMITTED = 4_096
MOST_KEPT = 4_096
"""How many verdicts are remembered, each by what alone decides it."""

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


# The IANA special-purpose registries. Our own list: what `is_global` knows differs between Python's patch releases.
NOT_GLOBAL_V4 = _networks(
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4"),
)
GLOBAL_V6 = IPv6Network("2000::/3")
NOT_GLOBAL_V6 = _networks("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
# Link-local, and where clouds hand out their machines' credentials: no allow-list opens these.
NEVER = _networks(
    *("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128", "100.100.100.200/32", "192.0.0.192/32")
)

COMPATIBLE = IPv6Network("::/96")
NAT64 = IPv6Network("64:ff9b::/96")
LOOPBACK_AND_UNSPECIFIED = (IPv6Address("::"), IPv6Address("::1"))
# A name whose last label is a number is an address in disguise: 2130706433, 0x7f.1, 017700000001.
_NUMERIC = re.compile(r"(?:.*\.)?(?:\d+|0[xX][0-9a-fA-F]*)", re.ASCII)


def embedded(address: Address) -> tuple[Address, ...]:
    """The addresses a packet may end up at: the IPv4 ones inside an IPv6 one, else the address itself."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.teredo is not None:
        return address.teredo
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address in NAT64 or (address in COMPATIBLE and address not in LOOPBACK_AND_UNSPECIFIED):
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    return (address,)


@lru_cache(MOST_KEPT)
def is_global(address: Address) -> bool:
    """Whether every address a packet may end up at is one of the public internet."""
    return all(_is_global(inner) for inner in embedded(address))


def _is_global(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not _is_in(address, NOT_GLOBAL_V4)
    return address in GLOBAL_V6 and not _is_in(address, NOT_GLOBAL_V6)


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


@lru_cache(MOST_KEPT)
def is_never_allowed(address: Address) -> bool:
    """Whether no setting opens this address."""
    return _is_in(address, NEVER) or any(_is_in(inner, NEVER) for inner in embedded(address))


class NetworkPolicy(Struct, frozen=True):
    """The private places nodes may reach: each entry is `host`, `host:port` or a network like `10.1.0.0/16`."""

    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for entry in self.allow:
            if "/" not in entry:
                _host_and_port(entry)
            elif not _as_network(entry):
                raise ValueError(f"{SETTING}: {entry!r} is no network; write it like 10.1.0.0/16")

    def names(self, host: str, port: int) -> bool:
        """Whether an entry allows this very host."""
        wanted = host.lower()
        return any(
            name == wanted and only in (None, port)
            for name, only in (_host_and_port(entry) for entry in self.allow if "/" not in entry)
        )

    def covers(self, address: Address, port: int) -> bool:
        """Whether every address a packet may end up at lies in an allowed network or is listed itself."""
        networks = [network for entry in self.allow if (network := _as_network(entry))]
        return all(_is_in(inner, networks) or self.names(str(inner), port) for inner in embedded(address))


def _as_network(entry: str) -> Network | None:
    try:
        return ip_network(entry) if "/" in entry else None
    except ValueError:
        return None


@lru_cache(MOST_KEPT)
def _host_and_port(entry: str) -> tuple[str, int | None]:
    """`host`, `host:port`, `::1` or `[::1]:port`, taken apart."""
    if entry.startswith("[") or entry.count(":") == 1:
        host, _, port = entry.rpartition(":") if not entry.endswith("]") else (entry, "", "")
    else:
        host, port = entry, ""
    host = host.strip("[]").lower().removesuffix(".")
    if not host or (port and not port.isdecimal()) or entry.endswith(":"):
        raise ValueError(f"{SETTING}: {entry!r} is no host; write it like files.internal, 10.1.2.3:8080 or [::1]:8080")
    return _canonical(host), int(port) if port else None


def _canonical(host: str) -> str:
    address = _as_address(host)
    return host if address is None else str(address)


def _as_address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


class Guard:
    """Vets hosts and addresses by one policy."""

    def __init__(self, policy: NetworkPolicy | None = None, resolve: Resolve | None = None) -> None:
        self.policy = policy or NetworkPolicy()
        self._resolve = resolve or Lookups().resolve
        # Private addresses of hosts allowed by name: the socket factory sees only addresses.
        self._admitted: dict[tuple[str, int], None] = {}
        # What is written out as an address means the same each time, and so does the policy.
        self._literal = lru_cache(MOST_KEPT)(self._checked_literal)

    def check_url(self, url: "URL") -> None:
        """Refuses what needs no resolver to be refused: the scheme, userinfo, an address that may not be reached."""
        if url.scheme not in ("http", "https"):
            raise NodeFailure.permanent(f"only http and https are allowed, not {url.scheme or 'a relative address'!r}")
        if url.raw_user is not None or url.raw_password is not None:
            raise NodeFailure.permanent("a user name or password in the address is not allowed; send it in a header")
        if not url.raw_host or not url.port:
            raise NodeFailure.permanent("the address names no host")
        self.check_host(url.raw_host, url.port)

    def check_host(self, host: str, port: int) -> Address | None:
        """The address, if the host is one written out; refused if it may not be reached."""
        return self._literal(host, port)

    def _checked_literal(self, host: str, port: int) -> Address | None:
        if "%" in host:
            raise NodeFailure.permanent(f"{host!r} is no host name")
        address = _as_address(host)
        if address is not None:
            self._check([address], host, port)
        elif _NUMERIC.fullmatch(host.rstrip(".")):
            raise NodeFailure.permanent(f"{host!r} is an address in disguise; write it like 192.0.2.1")
        return address

    async def addresses(self, host: str, port: int) -> list[Address]:
        """The addresses of the host, every one of them vetted."""
        literal = self.check_host(host, port)
        if literal is not None:
            return [literal]
        try:
            found = await self._resolve(host, port)
            addresses = [ip_address(text) for text in found]
        except UnicodeError as error:
            raise NodeFailure.permanent(f"{host!r} is no host name") from error
        except (OSError, ValueError) as error:
            raise NodeFailure.transient(f"the host {host} cannot be resolved: {error}") from error
        self._check(addresses, host, port)
        return addresses

    def _check(self, addresses: Sequence[Address], host: str, port: int) -> None:
        if not addresses:
            raise NodeFailure.transient(f"the host {host} has no address")
        is_named = self.policy.names(_canonical(host.removesuffix(".")), port)
        for address in addresses:
            if is_never_allowed(address):
                raise NodeFailure.permanent(f"{host} is at a link-local or metadata address, which is never allowed")
            if not (is_named or is_global(address) or self.policy.covers(address, port)):
                raise NodeFailure.permanent(_how_to_allow(host, port))
        if is_named:
            self._admit(addresses, port)

    def _admit(self, addresses: Sequence[Address], port: int) -> None:
        for address in addresses:
            self._admitted[str(address), port] = None
        while len(self._admitted) > MOST_ADMITTED:
            del self._admitted[next(iter(self._admitted))]

    def is_open(self, address: Address, port: int) -> bool:
        """Whether a socket may be connected to this address."""
        if is_never_allowed(address):
            return False
        return is_global(address) or self.policy.covers(address, port) or (str(address), port) in self._admitted

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket for an entry of `getaddrinfo`, the last gate before a connection."""
        family, kind, protocol, _, (host, port, *_) = info
        address = _as_address(host)
        if address is None or not self.is_open(address, port):
            raise NodeFailure.permanent(_how_to_allow(host, port))
        return socket.socket(family, kind, protocol)

    async def connect(self, host: str, port: int) -> socket.socket:
        """A socket connected to the first of the host's vetted addresses that answers."""
        failed: OSError | None = None
        for address in await self.addresses(host, port):
            try:
                return await self._connect(address, port)
            except OSError as error:
                failed = error
        raise NodeFailure.transient(f"cannot connect to {host}:{port}: {failed or 'no address'}")

    async def _connect(self, address: Address, port: int) -> socket.socket:
        family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
        connection = self.open_socket((family, socket.SOCK_STREAM, 0, "", (str(address), port)))
        connection.setblocking(False)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await asyncio.get_running_loop().sock_connect(connection, (str(address), port))
        except BaseException:
            connection.close()
            raise
        return connection


def _how_to_allow(host: str, port: int) -> str:
    place = f"[{host}]" if ":" in host else host
    return f"{host} is not on the public internet; to allow it, list {place}:{port} in the setting {SETTING}"

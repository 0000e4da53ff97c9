"""The public keys of an issuer: fetched within limits, kept for a while, and asked for again at most so often."""

import asyncio
from ipaddress import ip_address
from typing import Any, Final

import aiohttp
import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from ropewalk.access.settings import Issuer
from ropewalk.core.duration import HOUR, MINUTE, SECOND
from ropewalk.core.errors import Unavailable
from ropewalk.nodes.lookups import Lookups
from ropewalk.nodes.network import Address
from ropewalk.nodes.session import Resolver

LARGEST: Final = 256 * 1024
MOST_KEYS: Final = 64
SHORTEST_RSA: Final = 2_048
FRESH: Final = 10 * MINUTE
GOOD: Final = HOUR
"""Keys are asked for again when they are no longer fresh, and serve on while that fails, but no longer than this."""

_KINDS: Final = {("RSA", None): "RS256", ("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}


class KeySet:
    """The keys of one issuer by their id."""

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer
        self._lookups = Lookups(deadline=issuer.timeout)
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched: int | None = None
        self._tried: int | None = None
        self._fetching = asyncio.Lock()

    async def find(self, kid: str, now: int) -> jwt.PyJWK | None:
        """The key of this id; Unavailable if it cannot be found out whether there is one."""
        is_known = kid in self._keys and self._is_younger(GOOD, now)
        # While one request asks a slow issuer, the others do not wait for what is known.
        if not is_known or not (self._is_younger(FRESH, now) or self._fetching.locked()):
            await self._refresh(now)
        if self._is_younger(GOOD, now) and (kid in self._keys or self._tried == self._fetched):
            return self._keys.get(kid)
        raise Unavailable("the keys of the issuer cannot be had just now")

    def _is_younger(self, age: int, now: int) -> bool:
        return self._fetched is not None and now - self._fetched < age

    async def _refresh(self, now: int) -> None:
        """Asks the issuer, unless that was done a moment ago; what fails leaves the keys as they were."""
        async with self._fetching:
            if self._tried is not None and now - self._tried < self._issuer.refresh_every * SECOND:
                return
            keys, self._tried = await self._fetch(), now
            if keys is not None:
                self._keys, self._fetched = keys, now

    async def _fetch(self) -> dict[str, jwt.PyJWK] | None:
        try:
            document = msgspec.json.decode(await self._read())
        except (aiohttp.ClientError, TimeoutError, ValueError, RecursionError):
            return None
        listed = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(listed, list):
            return None
        usable = [key for each in listed[:MOST_KEYS] if (key := _usable(each)) is not None]
        return {str(key.key_id): key for key in usable}

    async def _read(self) -> bytes:
        """What is there, if it is there at once, as it is, and not too much."""
        timeout = aiohttp.ClientTimeout(total=self._issuer.timeout)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        connector = aiohttp.TCPConnector(resolver=Resolver(self._addresses), use_dns_cache=False)
        async with (
            aiohttp.ClientSession(
                connector=connector, timeout=timeout, trust_env=False, auto_decompress=False
            ) as session,
            session.get(self._issuer.jwks_url, headers=headers, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                raise ValueError(f"the issuer answered {answer.status}")
            body = bytearray()
            async for chunk in answer.content.iter_chunked(16 * 1024):
                body += chunk
                if len(body) > LARGEST:
                    raise ValueError("the issuer has too much to say")
            return bytes(body)

    async def _addresses(self, host: str, port: int) -> list[Address]:
        """The operator names the issuer, so every address it has will do."""
        return [ip_address(found) for found in await self._lookups.resolve(host, port)]


def _usable(described: Any) -> jwt.PyJWK | None:
    """The key, bound to the one algorithm of its kind; None for those that sign nothing of ours."""
    if not isinstance(described, dict) or described.get("use", "sig") != "sig":
        return None
    kid, kind, curve = described.get("kid"), described.get("kty"), described.get("crv")
    algorithm = _KINDS.get((kind, curve)) if isinstance(kind, str) and isinstance(curve, str | None) else None
    if not isinstance(kid, str) or not kid or algorithm is None or described.get("alg", algorithm) != algorithm:
        return None
    try:
        # Private parts are left behind, should an issuer ever show them.
        key = jwt.PyJWK({name: value for name, value in described.items() if name != "d"}, algorithm)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return None if isinstance(key.key, RSAPublicKey) and key.key.key_size < SHORTEST_RSA else key

"""Tokens of an issuer (OIDC, JWT): who a caller is, by a signature that only the issuer can make.

The algorithm is one of a fixed list and belongs to the key, never to the token. Times are compared with the store's.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import jwt

from ropewalk.access.actor import Actor
from ropewalk.access.cache import Cache
from ropewalk.access.jwks import KeySet
from ropewalk.access.keys import digest
from ropewalk.access.settings import Issuer
from ropewalk.core.duration import SECOND

LONGEST: Final = 8 * 1024
LONGEST_SUBJECT: Final = 255
LATEST: Final = 2**40
NEVER: Final = -1
SUBJECT: Final = "user:"
_REQUIRED: Final = ["exp", "iat", "sub", "iss", "aud"]


class Tokens:
    """Tells whose a token of these issuers is."""

    def __init__(self, now: Callable[[], int], issuers: Sequence[Issuer]) -> None:
        self._now = now
        self._issuers = {each.issuer: (each, KeySet(each)) for each in issuers}
        self._cache: Cache[str, Actor] = Cache(now)

    async def actor(self, token: str) -> Actor | None:
        """Who is meant; None if the token proves nothing. Unavailable if the issuer's keys cannot be had."""
        if len(token) > LONGEST or not token.isascii():
            return None
        known, now = self.believed(token), self._now()
        if known is not None:
            return known
        found = await self._verified(token, now)
        if found is not None:
            self._cache.put(digest(token), found, now, found.expires_at)
        return found

    def believed(self, token: str) -> Actor | None:
        """Whose token this was a moment ago."""
        return self._cache.get(digest(token))

    def has_known(self, token: str) -> bool:
        """Whether this token was good once."""
        return self._cache.has_known(digest(token))

    async def _verified(self, token: str, now: int) -> Actor | None:
        try:
            header, said = jwt.get_unverified_header(token), _unverified_claims(token)
            issuer, keys = self._issuers[str(said["iss"])]
            algorithm, kid = header["alg"], header["kid"]
        except (jwt.PyJWTError, KeyError, ValueError, RecursionError):
            return None
        # A server cannot promise what an extension asks for if it does not know the extension.
        if algorithm not in issuer.algorithms or "crit" in header:
            return None
        # Before the keys: what is out of time proves nothing, with any signature and any issuer.
        key = await keys.find(kid, now) if _is_timely(said, issuer.leeway, now) else None
        if key is None or key.algorithm_name != algorithm:
            return None
        claims = _claims(token, key, issuer)
        return None if claims is None else self._person(claims)

    def _person(self, claims: Mapping[str, Any]) -> Actor | None:
        subject, issuer = claims["sub"], claims["iss"]
        whole = f"{SUBJECT}{subject}" if len(self._issuers) == 1 else f"{SUBJECT}{issuer}|{subject}"
        if not subject or not whole.isprintable() or len(whole) > LONGEST_SUBJECT:
            return None
        return Actor(subject=whole, expires_at=int(claims["exp"]) * SECOND)


def _unverified_claims(token: str) -> dict[str, Any]:
    """What the token says before it is proved: decides only whose keys it is tried with, and if at all."""
    return jwt.decode(token, options={"verify_signature": False})


def _claims(token: str, key: jwt.PyJWK, issuer: Issuer) -> dict[str, Any] | None:
    """What is signed, for us, by the issuer. Times are left to us: the library would ask its own clock."""
    try:
        return jwt.decode(
            token,
            key=key.key,
            algorithms=[key.algorithm_name],
            audience=issuer.audience,
            issuer=issuer.issuer,
            options={"require": _REQUIRED, "verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        return None


def _is_timely(claims: Mapping[str, Any], leeway: int, now: int) -> bool:
    """Whether the token counts at this moment, give or take what clocks differ."""
    issued_at = claims.get("iat", NEVER)
    times = (claims.get("exp", NEVER), issued_at, claims.get("nbf", issued_at))
    if not all(type(each) in (int, float) and 0 <= each < LATEST for each in times):
        return False
    seconds, (ends, issued, starts) = now / SECOND, map(float, times)
    return ends > seconds - leeway and max(issued, starts) <= seconds + leeway

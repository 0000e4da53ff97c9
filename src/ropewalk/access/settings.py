"""What can be set about which callers come in."""

from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from ropewalk.access.rates import Limits, is_loopback
from ropewalk.core.errors import InvalidInput, Problem

ALGORITHMS: Final = ("RS256", "ES256", "EdDSA")
"""Those a token may be signed by. None of them takes a public key for a shared secret, and there is no `none`."""


class Issuer(Struct, frozen=True, kw_only=True):
    """An issuer of tokens that prove who people are. Times are in seconds."""

    issuer: str
    audience: str
    jwks_url: str
    algorithms: tuple[str, ...] = ALGORITHMS
    leeway: int = 30
    refresh_every: int = 30
    timeout: float = 5.0

    def __post_init__(self) -> None:
        """Refuses what would let in more than is meant."""
        problems = [Problem((field,), message) for field, message in self._complaints()]
        if problems:
            raise InvalidInput(problems)

    def _complaints(self) -> list[tuple[str, str]]:
        checks = [
            ("issuer", bool(self.issuer) and "|" not in self.issuer, "must be the `iss` of the tokens, without |"),
            ("audience", bool(self.audience), "must be the `aud` of tokens meant for this server"),
            ("jwks_url", is_safe_url(self.jwks_url), "must be https, or http on this machine, without a user"),
            ("algorithms", _are_known(self.algorithms), f"must be some of {', '.join(ALGORITHMS)}"),
            ("leeway", 0 <= self.leeway <= 300, "must be from 0 to 300 seconds"),
            ("refresh_every", 1 <= self.refresh_every <= 3_600, "must be from 1 to 3,600 seconds"),
            ("timeout", 0 < self.timeout <= 30, "must be up to 30 seconds"),
        ]
        return [(field, message) for field, holds, message in checks if not holds]


class AccessSettings(Struct, frozen=True, kw_only=True):
    """Who may come in, and how often. `origins` are those of our own pages where a proxy shows them elsewhere."""

    issuers: tuple[Issuer, ...] = ()
    limits: Limits = Limits()
    origins: tuple[str, ...] = ()


def is_safe_url(url: str) -> bool:
    """Whether the answer surely comes from that host: by https, or from this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    if not host or parts.username is not None:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and (host == "localhost" or is_loopback(host)))


def _are_known(algorithms: tuple[str, ...]) -> bool:
    return bool(algorithms) and all(each in ALGORITHMS for each in algorithms)

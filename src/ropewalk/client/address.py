"""Where the server is, who asks, and what every request to it has in common."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import httpx2
import msgspec
from msgspec import UNSET, Struct

from ropewalk.client.talking import Request
from ropewalk.core.errors import InvalidInput, Problem

API: Final = "/api/v1"
PATIENCE: Final = 60.0
TIMEOUT: Final = 30.0
"""Silence for so long (s) is an answer too; a stream is heard from every 15 s."""
CONNECT: Final = 5.0
LARGEST: Final = 65 * 1024 * 1024
"""The largest value Ropewalk keeps, and what is around it."""


class Settings(Struct, frozen=True):
    """How to reach a server; `patience` is for how many seconds in all one request is tried again."""

    url: str
    token: str
    workspace: str | None = None
    patience: float = PATIENCE
    largest: int = LARGEST

    @property
    def http(self) -> dict[str, Any]:
        """What the HTTP client is made with. Nothing of the environment is used for what is on this machine."""
        return {
            "base_url": self.url + API,
            "headers": {"Authorization": f"Bearer {self.token}", "Accept": "application/json"},
            "timeout": httpx2.Timeout(TIMEOUT, connect=CONNECT),
            "trust_env": not _is_loopback(urlsplit(self.url).hostname or ""),
        }


def settings(url: str, token: str, workspace: str | None, patience: float, *, allow_http: bool) -> Settings:
    """The settings, if they can be used: a token is not sent in the clear to another machine unless that is meant."""
    parts = _parts(url)
    if parts.scheme == "http" and not allow_http and not _is_loopback(parts.hostname or ""):
        raise _refused("url", f"{url} would have the token sent in the clear: use https, or say that http is meant")
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise _refused("token", "is none: give an API key (rw_…) as the server printed it")
    return Settings(url.rstrip("/"), token, workspace, patience)


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        is_usable = bool(parts.scheme in ("http", "https") and parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_usable = False
    if not is_usable or "@" in parts.netloc or parts.query or parts.fragment:
        # Not repeated: what is wrong with it may be a password.
        raise _refused("url", "cannot be used: write it as https://host or http://127.0.0.1:8470")
    return parts


def _refused(what: str, why: str) -> InvalidInput:
    return InvalidInput([Problem((what,), why)])


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def sent(request: Request, to: Settings) -> dict[str, Any]:
    """The request as the HTTP client takes it."""
    params = request.params if to.workspace is None else {"workspaceId": to.workspace, **request.params}
    made: dict[str, Any] = {
        "method": request.method,
        "url": request.path,
        "params": params,
        "headers": dict(request.headers),
    }
    if request.seconds:
        made["timeout"] = httpx2.Timeout(max(TIMEOUT, request.seconds + CONNECT), connect=CONNECT)
    if request.body is not UNSET:
        made["content"] = _encoded(request.body)
        made["headers"]["Content-Type"] = "application/json"
    return made


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise _refused("body", f"is no JSON: {error}") from error

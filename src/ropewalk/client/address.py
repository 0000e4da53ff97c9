"""Where the server is, who asks, and what every request to it has in common."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import SplitResult, urlencode, urlsplit

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
    def base(self) -> str:
        """Where the paths of requests begin."""
        return self.url + API

    @property
    def headers(self) -> dict[str, str]:
        """What every request says."""
        return {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}

    @property
    def uses_environment(self) -> bool:
        """Whether proxies of the environment are used; never for what is on this machine."""
        return not _is_loopback(urlsplit(self.url).hostname or "")


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


def target(request: Request, to: Settings) -> str:
    """The path of the request, with its query."""
    params = request.params if to.workspace is None else {"workspaceId": to.workspace, **request.params}
    return f"{request.path}?{urlencode(params)}" if params else request.path


def content(request: Request) -> tuple[bytes | None, dict[str, str]]:
    """The body of the request if it has one, and its headers."""
    if request.body is UNSET:
        return None, dict(request.headers)
    return _encoded(request.body), {**request.headers, "Content-Type": "application/json"}


def silence(request: Request) -> float:
    """For how many seconds the server may say nothing."""
    return max(TIMEOUT, request.seconds + CONNECT) if request.seconds else TIMEOUT


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise _refused("body", f"is no JSON: {error}") from error

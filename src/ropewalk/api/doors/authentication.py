"""Authentication: the actor of a request, by a bearer token or by the cookie of a session, and by nothing else.

A request with a cookie has to come from our own pages: browsers send it along with every request that a
foreign page makes them send. A token in a query string is no proof: those end up in logs.
"""

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from ropewalk.access.actor import Actor
from ropewalk.access.keys import PREFIX
from ropewalk.access.rates import address_of, is_loopback
from ropewalk.access.sessions import Visit
from ropewalk.api.backend import Backend
from ropewalk.api.shapes.problems import Refused
from ropewalk.core.errors import Forbidden, Unauthenticated

COOKIE: Final = "ropewalk"
SECURE_COOKIE: Final = "__Host-ropewalk"
CSRF_HEADER: Final = "X-CSRF-Token"
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
NOWHERE: Final = ("", None)
_PORTS: Final = {"http": 80, "https": 443}


async def authenticate(connection: HTTPConnection) -> Actor:
    """The actor of a request; there is no default actor for a request without a proof."""
    backend: Backend = connection.app.state.backend
    if connection.scope["type"] == "websocket":
        require_origin(connection)
    # Asked of every request: the headers as an object cost more than to look through them.
    said = [value.decode("latin-1") for name, value in connection.scope["headers"] if name == b"authorization"]
    if said:
        actor = await identify(connection, _bearer(connection, said))
    else:
        actor = (await find_session(connection)).actor
    require_rate(backend, actor)
    return actor


def _bearer(connection: HTTPConnection, said: list[str]) -> str:
    if len(said) > 1:
        raise Refused(400, "comes more than once", "header.authorization")
    kind, _, token = said[0].partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise _unauthenticated(connection)
    return token.strip()


async def identify(connection: HTTPConnection, token: str) -> Actor:
    """Whose token this is. An address that sent too many invalid tokens has to wait."""
    backend: Backend = connection.app.state.backend
    known = backend.cached_actor(token)
    if known is not None:
        return known
    # A key has to be looked up. What an issuer signed cannot be guessed, and changes often for one and the same person.
    if token.startswith(PREFIX) and not backend.has_known(token):
        _require_few_failures(connection)
    actor = await backend.actor(token)
    if actor is None:
        raise _failed(connection)
    return actor


async def find_session(connection: HTTPConnection) -> Visit:
    """The session of a browser; refused if another page made the browser send the request."""
    backend: Backend = connection.app.state.backend
    cookie = session_cookie(connection)
    if cookie is None:
        raise _unauthenticated(connection)
    if not backend.sessions.has_known(cookie):
        _require_few_failures(connection)
    found = await backend.sessions.find(cookie)
    if found is None:
        raise _failed(connection)
    _require_csrf_token(connection, found)
    return found


def session_cookie(connection: HTTPConnection) -> str | None:
    """What the cookie of a session says, if there is one."""
    return connection.cookies.get(cookie_name(connection))


def cookie_name(connection: HTTPConnection) -> str:
    """The prefix keeps neighbours in the domain from setting it; without TLS there is no such prefix."""
    return SECURE_COOKIE if is_secure(connection) else COOKIE


def is_secure(connection: HTTPConnection) -> bool:
    """Whether cookies are for TLS alone: everywhere but on this machine."""
    host, _ = _place(f"http://{connection.headers.get('host', '')}")
    return not (host == "localhost" or is_loopback(host))


def _require_csrf_token(connection: HTTPConnection, found: Visit) -> None:
    if connection.scope["type"] == "http" and connection.scope["method"] in SAFE:
        return
    require_origin(connection, is_needed=True)
    if connection.scope["type"] == "http" and not found.is_meant(connection.headers.get(CSRF_HEADER, "")):
        raise Forbidden(f"with a session this needs the header {CSRF_HEADER}, as the session's answer gave it")


def require_origin(connection: HTTPConnection, *, is_needed: bool = False) -> None:
    """Refuse a page of another origin; programs send no origin."""
    origins = connection.headers.getlist("origin")
    if not origins and not is_needed:
        return
    backend: Backend = connection.app.state.backend
    if len(origins) != 1 or not (origins[0] in backend.access.origins or _is_here(connection, origins[0])):
        raise Forbidden("pages of another origin may not ask this")


def _is_here(connection: HTTPConnection, origin: str) -> bool:
    """Whether host and port are those the request went to. Not the scheme: a proxy may have taken TLS off."""
    scheme, _, _ = origin.partition("://")
    return scheme in _PORTS and _place(origin) == _place(f"{scheme}://{connection.headers.get('host', '')}") != NOWHERE


def _place(url: str) -> tuple[str, int | None]:
    """Host and port; nowhere if it is no address at all."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return NOWHERE


def require_rate(backend: Backend, actor: Actor) -> None:
    """Refuse an actor that asks more often than the limit. Root keys are the operator's, who sets the limits anyway."""
    if actor.is_root:
        return
    wait = backend.rate_limits.actors.take(actor.subject, backend.store.now())
    if wait is not None:
        raise Refused(429, "too many requests of yours", retry_after=wait)


def _require_few_failures(connection: HTTPConnection) -> None:
    backend: Backend = connection.app.state.backend
    wait = backend.rate_limits.failures.wait(_address(connection), backend.store.now())
    if wait is not None:
        raise Refused(429, "too many tokens from your address that prove nothing", retry_after=wait)


def _failed(connection: HTTPConnection) -> Unauthenticated:
    refusal = _unauthenticated(connection)
    backend: Backend = connection.app.state.backend
    backend.rate_limits.failures.take(_address(connection), backend.store.now())
    return refusal


def _unauthenticated(connection: HTTPConnection) -> Unauthenticated:
    """The one refusal without a valid proof: a missing, wrong, revoked or expired token is answered alike."""
    _require_few_failures(connection)
    return Unauthenticated("say who you are: Authorization: Bearer <API key or token>")


def _address(connection: HTTPConnection) -> str:
    return "" if connection.client is None else address_of(connection.client.host)

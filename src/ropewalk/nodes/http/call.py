"""One call over HTTP: its hops, its time, and an honest word about what broke on the way.

A hop is signed for itself: authentication never goes along to another origin, and never comes back from one.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Protocol

import msgspec
from yarl import URL

from ropewalk.core.duration import SECOND
from ropewalk.nodes.body import ResponseType
from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.http.answers import HARMLESS_HEADERS, Answer, Sent, read_answer, require_success
from ropewalk.nodes.http.payloads import Body
from ropewalk.nodes.http.statuses import Status
from ropewalk.nodes.http.time_limit import TimeLimit

if TYPE_CHECKING:
    import aiohttp
    from multidict import CIMultiDictProxy

REDIRECTS = frozenset({301, 302, 303, 307, 308})
UNAUTHORIZED = 401
DEFAULT_TIMEOUT = 60.0
MOST_REDIRECTS = 5


class Request(msgspec.Struct, frozen=True, gc=False):
    """One hop: what is sent, and where to."""

    method: str
    url: URL
    headers: dict[str, str]
    body: Body | None = None


class Authentication(Protocol):
    """Proves to a server who asks."""

    async def sign(self, request: Request) -> Request:
        """The request with what the server wants to see."""

    def takes_up(self, headers: "CIMultiDictProxy[str]") -> bool:
        """Whether a refusal with these headers is worth one more try, which `sign` is ready for now."""


class Call(msgspec.Struct, frozen=True, gc=False):
    """A request, and how its answer is taken."""

    request: Request
    timeout: float = DEFAULT_TIMEOUT
    follow_redirects: bool = True
    most_redirects: int = MOST_REDIRECTS
    expected: Status | list[Status] | None = None
    response_type: ResponseType = "auto"
    authentication: Authentication | None = None


async def carry_out(call: Call, context: NodeContext) -> Answer:
    """The answer to a call, or a classified failure in its time."""
    import aiohttp  # here: see session.py

    name = named(call.request)
    try:
        async with TimeLimit(call.timeout) as limit:
            return await _follow(call, context, _end(call.timeout, context))
    except TimeoutError as error:
        if limit.expired():
            raise NodeFailure.timeout(f"{name} took longer than {call.timeout:g} s") from None
        raise NodeFailure.transient(f"{name}: the connection timed out") from error
    except (aiohttp.ClientConnectorCertificateError, aiohttp.InvalidURL) as error:
        raise NodeFailure.permanent(f"{name}: {_reason(error)}") from error
    except (aiohttp.ClientError, OSError) as error:
        if isinstance(error.__cause__, NodeFailure):
            # What was to be sent could not be read; the library tells that as a broken connection.
            raise error.__cause__ from None
        raise NodeFailure.transient(f"{name}: {_reason(error)}") from error


def _end(seconds: float, context: NodeContext) -> float:
    """When the time limit of the request is over, or that of the attempt, whichever is first; by the loop's clock."""
    left = seconds if context.deadline is None else min(seconds, (context.deadline - context.now) / SECOND)
    return asyncio.get_running_loop().time() + left


async def _follow(call: Call, context: NodeContext, end: float) -> Answer:
    request, authentication, is_refused, hops = call.request, call.authentication, False, 0
    while hops <= call.most_redirects:
        context.facilities.guard.check_url(request.url)
        signed = request if authentication is None else await authentication.sign(request)
        async with _send(signed, context) as response:
            if _is_worth_a_try(response, authentication, is_refused):
                is_refused = True
                continue
            location = response.headers.get("Location")
            if not (call.follow_redirects and response.status in REDIRECTS and location):
                return await _answer(signed, response, call, context, end)
            hop = _redirected(request, response.status, location)
        authentication = authentication if origin_of(hop.url) == origin_of(request.url) else None
        request, hops = hop, hops + 1
    raise NodeFailure.permanent(f"{named(request)}: more than {call.most_redirects} redirects")


def _is_worth_a_try(
    response: "aiohttp.ClientResponse", authentication: Authentication | None, is_refused: bool
) -> bool:
    """Whether the server says how to prove who asks; once in a call."""
    if response.status != UNAUTHORIZED or authentication is None or is_refused:
        return False
    return authentication.takes_up(response.headers)


def _send(request: Request, context: NodeContext) -> "aiohttp.client._RequestContextManager":
    data: bytes | AsyncIterator[bytes] | None = None
    headers = request.headers
    if request.body is not None and request.body.is_streamed:
        data, headers = request.body.stream(), headers | {"Content-Length": str(request.body.size)}
    elif request.body is not None:
        data = request.body.whole()
    return context.http.request(request.method, request.url, headers=headers, data=data, allow_redirects=False)


async def _answer(
    request: Request, response: "aiohttp.ClientResponse", call: Call, context: NodeContext, end: float
) -> Answer:
    sent = Sent(named(request), request.method, request.headers)
    await require_success(response, sent, call.expected, context.now, end)
    return await read_answer(response, sent, call.response_type, context)


def _redirected(request: Request, status: int, location: str) -> Request:
    """The next hop: as a GET where browsers do so, and to another origin without anything that may be a credential."""
    try:
        url = request.url.join(URL(location)).with_fragment(None)
    except ValueError:
        raise NodeFailure.permanent(f"{named(request)} redirects to what is no address") from None
    is_rewritten = request.method == "POST" if status in (301, 302) else status == 303 and request.method != "HEAD"
    if is_rewritten:
        headers = {name: value for name, value in request.headers.items() if not name.lower().startswith("content-")}
        request = Request("GET", request.url, headers)
    return moved(request, url)


def moved(request: Request, url: URL) -> Request:
    """The same request to another address; to another origin without anything that may be a credential."""
    headers = request.headers
    if origin_of(url) != origin_of(request.url):
        headers = {name: value for name, value in headers.items() if name.lower() in HARMLESS_HEADERS}
    return Request(request.method, url, headers, request.body)


def origin_of(url: URL) -> tuple[str, str | None, int | None]:
    """Where a server keeps its secrets apart from others."""
    return url.scheme, url.raw_host, url.port


def named(request: Request) -> str:
    """The request in messages: without userinfo and query, where secrets are, and as written, so on one line."""
    url = request.url
    return f"{request.method} {url.scheme}://{url.host_port_subcomponent or ''}{url.raw_path}"


def _reason(error: Exception) -> str:
    """What went wrong, in words that cannot hold the address: a library's text may repeat it with its query."""
    import aiohttp  # here: see session.py

    match error:
        case aiohttp.ClientConnectorCertificateError():
            return "the server's certificate cannot be trusted"
        case aiohttp.ClientConnectorError():
            return f"cannot connect: {error.strerror or type(error.os_error).__name__}"
        case aiohttp.InvalidURL():
            return "is no address"
        case OSError():
            return f"the connection broke: {error.strerror or type(error).__name__}"
        case aiohttp.ClientPayloadError():
            return "the answer was cut short"
        case aiohttp.ServerDisconnectedError():
            return "the server hung up"
        case _:
            return f"the answer is not HTTP ({type(error).__name__})"

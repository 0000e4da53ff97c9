"""`http.request`: one request, its redirects, and an honest word about what went wrong."""

import asyncio
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import msgspec
from pydantic import Field, field_validator, model_validator
from yarl import URL

from ropewalk.core.canonical import writable
from ropewalk.core.duration import HOUR, MILLISECOND, SECOND, parse_duration
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.retry import classify_status
from ropewalk.nodes.base import About, Facilities, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.body import ResponseType, read_as, read_body, read_excerpt
from ropewalk.nodes.failure import LONGEST_BODY, shortened
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.tracebacks import BEYOND

if TYPE_CHECKING:
    import aiohttp

JSON: TypeAlias = Any
Scalar: TypeAlias = str | int | float | bool

LONGEST_URL = 8_192
LONGEST_EXCERPT = 500
MOST_HEADERS = 100
PHRASES = {int(status): status.phrase for status in HTTPStatus}
REDIRECTS = frozenset({301, 302, 303, 307, 308})
BODILESS = frozenset({204, 205, 304})
# What the request itself decides; a second opinion would let one request look like two.
OWN_HEADERS = frozenset({"connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"})
# All that goes along to another origin: any other header may be a credential.
HARMLESS_HEADERS = frozenset(
    {"accept", "accept-encoding", "accept-language", "content-type", "idempotency-key", "user-agent"}
)
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\uffff]*")


class Request(msgspec.Struct):
    """One hop: what is sent, and where to."""

    method: str
    url: URL
    headers: dict[str, str]
    body: bytes | None


class HttpRequest(NodeType):
    name = "http.request"
    summary = "Sends an HTTP request and hands on the answer's status, headers and body."
    about = About(
        title="HTTP request",
        category="reach",
        icon="globe",
        keywords=("api", "rest", "url", "get", "post", "fetch", "web", "curl"),
        output={
            "type": "object",
            "properties": {
                "status": {"type": "integer", "description": "The status of the answer."},
                "headers": {"type": "object", "description": "Its headers, by name in small letters."},
                "body": {"description": "Its body, read as `responseType` says."},
            },
        },
    )

    class Parameters(Inputs):
        method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = Field(
            "GET", description="The method.", examples=["POST"]
        )
        url: str = Field(
            min_length=1, max_length=LONGEST_URL, description="The address.", examples=["https://shop.example/orders"]
        )
        headers: dict[str, str] = Field(
            {}, max_length=MOST_HEADERS, description="Headers by name.", examples=[{"Accept-Language": "de"}]
        )
        query: dict[str, Scalar | list[Scalar] | None] = Field(
            {}, description="What is added to the address behind `?`.", examples=[{"page": 2, "tag": ["a", "b"]}]
        )
        body: JSON = Field(None, description="Sent as JSON.", examples=[{"orderId": "{{ input.orderId }}"}])
        text: str | None = Field(None, description="Sent as plain text.", examples=["hello"])
        form: dict[str, Scalar] | None = Field(
            None, description="Sent as a form of a web page is.", examples=[{"grant_type": "client_credentials"}]
        )
        timeout: float | str = Field(
            60.0, description="For the whole request: like 30s, or a number of seconds.", examples=["30s"]
        )
        follow_redirects: bool = Field(
            True, description="Whether an answer that leads elsewhere is followed.", examples=[False]
        )
        max_redirects: int = Field(5, ge=0, le=20, description="How often at most.", examples=[1])
        expect_status: int | list[int] | None = Field(
            None, description="The only statuses that count as success.", examples=[[200, 404]]
        )
        response_type: ResponseType = Field(
            "auto", description="What the body is read as; by default what the answer says it is.", examples=["text"]
        )

        @field_validator("timeout", mode="before")
        @classmethod
        def _sensible(cls, timeout: JSON) -> JSON:
            parse_duration(timeout, MILLISECOND, HOUR)
            return timeout

        @field_validator("headers")
        @classmethod
        def _clean(cls, headers: dict[str, str]) -> dict[str, str]:
            for name, value in headers.items():
                _check_header(name, value)
            return headers

        @model_validator(mode="after")
        def _one_body(self) -> Self:
            if sum(part is not None for part in (self.body, self.text, self.form)) > 1:
                raise ValueError("give at most one of body, text and form")
            return self

    def target(self, parameters: Parameters) -> str | None:
        try:
            return f"{self.name} {_url(parameters).origin()}"
        except (NodeFailure, ValueError):
            return None

    def prepare(self, facilities: Facilities) -> None:
        _ = facilities.http

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        import aiohttp  # here: see session.py

        seconds = parse_duration(parameters.timeout) / SECOND
        request = _first_request(parameters, context.idempotency_key)
        try:
            async with asyncio.timeout(seconds) as limit:
                return await _follow(request, parameters, context, _end(seconds, context))
        except TimeoutError as error:
            if limit.expired():
                raise NodeFailure.timeout(f"{_named(request)} took longer than {seconds:g} s") from None
            raise NodeFailure.transient(f"{_named(request)}: the connection timed out") from error
        except (aiohttp.ClientConnectorCertificateError, aiohttp.InvalidURL) as error:
            raise NodeFailure.permanent(f"{_named(request)}: {_reason(error)}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise NodeFailure.transient(f"{_named(request)}: {_reason(error)}") from error


def _end(seconds: float, context: NodeContext) -> float:
    """When the time limit of the request is over, or that of the attempt, whichever is first; by the loop's clock."""
    left = seconds if context.deadline is None else min(seconds, (context.deadline - context.now) / SECOND)
    return asyncio.get_running_loop().time() + left


def _check_header(name: str, value: str) -> None:
    if not _NAME.fullmatch(name):
        raise ValueError("a header's name is not allowed")
    if name.lower() in OWN_HEADERS:
        raise ValueError(f"the header {name} is set by the request itself")
    if not _VALUE.fullmatch(value):
        raise ValueError(f"the header {name} has a line break or another character that is not allowed")


def _url(parameters: HttpRequest.Parameters) -> URL:
    try:
        url = URL(parameters.url)
        return url.update_query(_query(parameters.query)) if parameters.query else url
    except ValueError:
        # Its text would repeat the address, and with it a secret that the query may hold.
        raise NodeFailure.permanent("with.url: is no address") from None


def _query(query: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, _written(value))
        for name, given in query.items()
        for value in (given if isinstance(given, list) else [given])
        if value is not None
    ]


def _written(value: Scalar) -> str:
    """The value as text; true and false as JSON has them."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _first_request(parameters: HttpRequest.Parameters, idempotency_key: str) -> Request:
    body, content_type = _body(parameters)
    headers = {"Accept-Encoding": "gzip", "Idempotency-Key": idempotency_key}
    if content_type:
        headers["Content-Type"] = content_type
    given = {name.lower() for name in parameters.headers}
    kept = {name: value for name, value in headers.items() if name.lower() not in given}
    return Request(parameters.method, _url(parameters), kept | parameters.headers, body)


def _body(parameters: HttpRequest.Parameters) -> tuple[bytes | None, str | None]:
    if parameters.text is not None:
        return parameters.text.encode(), "text/plain; charset=utf-8"
    if parameters.form is not None:
        written = URL.build(query=_query(parameters.form)).raw_query_string
        return written.encode(), "application/x-www-form-urlencoded"
    if parameters.body is not None:
        return msgspec.json.encode(parameters.body), "application/json"
    return None, None


async def _follow(request: Request, parameters: HttpRequest.Parameters, context: NodeContext, end: float) -> Output:
    for _ in range(parameters.max_redirects + 1):
        context.facilities.guard.check_url(request.url)
        async with context.http.request(
            request.method, request.url, headers=request.headers, data=request.body, allow_redirects=False
        ) as response:
            location = response.headers.get("Location")
            if not (parameters.follow_redirects and response.status in REDIRECTS and location):
                return await _answer(request, response, parameters, context.now, end)
            request = _redirected(request, response.status, location)
    raise NodeFailure.permanent(f"{_named(request)}: more than {parameters.max_redirects} redirects")


def _redirected(request: Request, status: int, location: str) -> Request:
    """The next hop: as a GET where browsers do so, and to another origin without anything that may be a credential."""
    try:
        url = request.url.join(URL(location)).with_fragment(None)
    except ValueError:
        raise NodeFailure.permanent(f"{_named(request)} redirects to what is no address") from None
    is_rewritten = request.method == "POST" if status in (301, 302) else status == 303 and request.method != "HEAD"
    headers = request.headers
    if is_rewritten:
        headers = {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
    if _origin(url) != _origin(request.url):
        headers = {name: value for name, value in headers.items() if name.lower() in HARMLESS_HEADERS}
    return Request("GET" if is_rewritten else request.method, url, headers, None if is_rewritten else request.body)


def _origin(url: URL) -> tuple[str, str | None, int | None]:
    return url.scheme, url.raw_host, url.port


async def _answer(
    request: Request, response: "aiohttp.ClientResponse", parameters: HttpRequest.Parameters, now: int, end: float
) -> Output:
    if kind := _failure_kind(response.status, parameters.expect_status):
        # More than is told: of what is cut off, no half of a credential may be left.
        beginning = _without_secrets(await read_excerpt(response, LONGEST_BODY + BEYOND, end), request.headers)
        raise NodeFailure(_failed(kind, request, response, now, beginning))
    body = await read_body(response)
    content_type = response.content_type if "Content-Type" in response.headers else ""
    # JSON that was asked for is missing only where there could be some.
    wanted = "auto" if not body and _is_bodiless(request, response.status) else parameters.response_type
    read = read_as(wanted, body, content_type, response.charset)
    return Output({"status": response.status, "headers": _headers(response), "body": read})


def _is_bodiless(request: Request, status: int) -> bool:
    """Whether such an answer never has a body."""
    return request.method == "HEAD" or status in BODILESS


def _failure_kind(status: int, expected: int | list[int] | None) -> ErrorType | None:
    kind = classify_status(status)
    if expected is None:
        return kind
    if status in (expected if isinstance(expected, list) else [expected]):
        return None
    return kind or ErrorType.PERMANENT


def _failed(
    kind: ErrorType, request: Request, response: "aiohttp.ClientResponse", now: int, beginning: str
) -> RunError:
    wish = _retry_after(response.headers, now) if kind is ErrorType.TRANSIENT else None
    message = f"{_named(request)} answered {_phrase(response.status)}"
    excerpt = shortened(beginning, LONGEST_EXCERPT) or None
    return RunError(kind, message, excerpt, wish, status=response.status, body=beginning or None)


def _phrase(status: int) -> str:
    """The status in our words: the server's own may say anything."""
    return f"{status} {PHRASES.get(status, '')}".rstrip()


def _without_secrets(text: str, headers: Mapping[str, str]) -> str:
    """The text without the values of headers that may be credentials, should the server repeat them."""
    for name, value in headers.items():
        if name.lower() not in HARMLESS_HEADERS:
            for part in (value, *value.split()):
                text = text.replace(part, "***") if len(part) >= 8 else text
    return writable(text.encode(errors="replace")[:LONGEST_BODY].decode(errors="ignore"))


def _retry_after(headers: Mapping[str, str], now: int) -> float | None:
    """Seconds to wait: as said, or until the date by the server's own clock, else by ours."""
    wish = headers.get("Retry-After", "").strip()
    if wish.isascii() and wish.isdecimal():
        return float(wish[:12])
    until, served = _date(wish), _date(headers.get("Date", ""))
    if until is None:
        return None
    return max(0.0, until - (served if served is not None else now / SECOND))


def _date(text: str) -> float | None:
    try:
        date = parsedate_to_datetime(text[:64])
        # The oldest of HTTP's three forms names no zone and means Greenwich, not wherever this machine is.
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _headers(response: "aiohttp.ClientResponse") -> dict[str, JSON]:
    """The answer's headers, lower-case, repeated ones joined; cookies cannot be joined and come as a list."""
    joined: dict[str, JSON] = {}
    for name, value in response.headers.items():
        joined.setdefault(name.lower(), []).append(shortened(value, LONGEST_URL))
    return {name: values if name == "set-cookie" else ", ".join(values) for name, values in joined.items()}


def _named(request: Request) -> str:
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

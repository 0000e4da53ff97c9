"""What a server said, and what that counts as."""

from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ropewalk.core.canonical import writable
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.nodes.body import ResponseType, read_as, read_body, read_excerpt, unfolded
from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.failure import LONGEST_BODY, NodeFailure, shortened
from ropewalk.nodes.files import UNKNOWN_TYPE, as_value
from ropewalk.nodes.http.statuses import Status, failure_kind
from ropewalk.nodes.tracebacks import BEYOND

if TYPE_CHECKING:
    import aiohttp

JSON: TypeAlias = Any

LONGEST_HEADER = 8_192
LONGEST_EXCERPT = 500
PHRASES = {int(status): status.phrase for status in HTTPStatus}
BODILESS = frozenset({204, 205, 304})
# All that goes along to another origin: any other header may be a credential.
HARMLESS_HEADERS = frozenset(
    {"accept", "accept-encoding", "accept-language", "content-type", "idempotency-key", "user-agent"}
)


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What a server said at last; `size` is how many bytes its body has."""

    status: int
    headers: dict[str, JSON]
    body: JSON
    size: int


class Sent(msgspec.Struct, frozen=True, gc=False):
    """What an answer is to, as far as that is told: the method and address by name, and headers not to repeat."""

    name: str
    method: str
    headers: Mapping[str, str]


async def read_answer(
    response: "aiohttp.ClientResponse", sent: Sent, response_type: ResponseType, context: NodeContext
) -> Answer:
    """The whole answer: its body within the bounds of a value, or as a file."""
    if response_type == "file":
        return await _kept(response, sent, context)
    body = await read_body(response)
    content_type = response.content_type if "Content-Type" in response.headers else ""
    # JSON that was asked for is missing only where there could be some.
    wanted = "auto" if not body and is_bodiless(sent.method, response.status) else response_type
    read = read_as(wanted, body, content_type, response.charset)
    return Answer(response.status, headers_of(response), read, len(body))


async def _kept(response: "aiohttp.ClientResponse", sent: Sent, context: NodeContext) -> Answer:
    """The answer with its body as a file, which never is in memory whole."""
    headers = headers_of(response)
    if is_bodiless(sent.method, response.status):
        return Answer(response.status, headers, None, 0)
    async with aclosing(unfolded(response)) as chunks:
        kind = response.headers.get("Content-Type", UNKNOWN_TYPE)
        file = await context.files.write(chunks, _file_name(response), kind)
    return Answer(response.status, headers, as_value(file), file.size)


def _file_name(response: "aiohttp.ClientResponse") -> str:
    """What the server calls the file, else the last part of the address."""
    told = response.content_disposition
    return (told.filename if told is not None else None) or response.url.name or "file"


def is_bodiless(method: str, status: int) -> bool:
    """Whether such an answer never has a body."""
    return method == "HEAD" or status in BODILESS


async def require_success(
    response: "aiohttp.ClientResponse", sent: Sent, expected: Status | list[Status] | None, now: int, end: float
) -> None:
    """Raises what the answer's status counts as, unless it is a success; `end` is when that must be told."""
    kind = failure_kind(response.status, expected)
    if kind is None:
        return
    # More than is told: of what is cut off, no half of a credential may be left.
    beginning = _without_secrets(await read_excerpt(response, LONGEST_BODY + BEYOND, end), sent.headers)
    wish = retry_after(response.headers, now) if kind is ErrorType.TRANSIENT else None
    message = f"{sent.name} answered {_phrase(response.status)}"
    excerpt = shortened(beginning, LONGEST_EXCERPT) or None
    raise NodeFailure(RunError(kind, message, excerpt, wish, status=response.status, body=beginning or None))


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


def retry_after(headers: Mapping[str, str], now: int) -> float | None:
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


def headers_of(response: "aiohttp.ClientResponse") -> dict[str, JSON]:
    """The answer's headers, lower-case, repeated ones joined; cookies cannot be joined and come as a list."""
    joined: dict[str, JSON] = {}
    for name, value in response.headers.items():
        kept = value if value.isprintable() and len(value) <= LONGEST_HEADER else shortened(value, LONGEST_HEADER)
        joined.setdefault(name.lower(), []).append(kept)
    return {
        name: values if name == "set-cookie" else values[0] if len(values) == 1 else ", ".join(values)
        for name, values in joined.items()
    }

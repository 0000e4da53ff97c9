"""What may be sent: strict JSON of bounded size and depth. Other bodies are refused before a handler reads them."""

import asyncio
import json
import math
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from starlette.requests import Request
from starlette.types import Receive, Scope

from ropewalk.api.shapes.problems import Refused

LARGEST_BODY: Final = 1024 * 1024
LARGEST_DEFINITION: Final = 4 * 1024 * 1024
LARGE: Final = 32 * 1024
DEEPEST: Final = 64
ONCE: Final = frozenset({
    b"content-encoding", b"content-type", b"idempotency-key", b"if-match", b"if-none-match", b"last-event-id",
    b"traceparent",
})  # fmt: skip
"""Headers that mean one thing: of two, a proxy on the way may have read the other one."""
LARGEST_INTEGER: Final = 2**53
_LONGEST_NUMBER: Final = 400
_LONGEST_LENGTH: Final = 18
_LONGEST_SHOWN: Final = 100


class StrictRequest(Request):
    """A request whose body is read within its limit, and whose JSON is what every parser takes for the same."""

    def __init__(self, scope: Scope, receive: Receive, largest: int) -> None:
        super().__init__(scope, receive)
        self._largest = largest

    async def body(self) -> bytes:
        """The whole body; without the generators of `stream`, since nearly every body comes in one piece."""
        if not hasattr(self, "_body"):
            self._require_readable()
            self._body = await whole_body(self._receive, self._largest)
        return self._body

    async def stream(self) -> AsyncGenerator[bytes, None]:
        self._require_readable()
        size = 0
        async for chunk in super().stream():
            size += len(chunk)
            if size > self._largest:
                raise _too_large(self._largest)
            yield chunk

    def _require_readable(self) -> None:
        headers = self.headers
        require_readable(headers.get("content-length", "0"), headers.get("content-encoding"), self._largest)

    async def json(self) -> Any:
        return await read_json(await self.body())


def require_single(scope: Scope) -> None:
    """Refuses a request that has one of these headers twice."""
    names = [name for name, _ in scope["headers"]]
    if len(set(names)) < len(names):
        for name in sorted(ONCE):
            if names.count(name) > 1:
                raise Refused(400, "comes more than once", f"header.{name.decode()}")


def require_json(request: Request) -> None:
    """Refuses a body that does not say that it is JSON: it could be taken for something else."""
    headers = request.headers
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Refused(415, "send the body as JSON, with Content-Type: application/json", "header.content-type")


def require_readable(length: str, encoding: str | None, largest: int) -> None:
    """Refuses a body by what its headers say about it."""
    if length.isdecimal() and (len(length) > _LONGEST_LENGTH or int(length) > largest):
        raise _too_large(largest)
    if encoding is not None and encoding != "identity":
        raise Refused(415, "send the body as it is, without a content encoding", "header.content-encoding")


async def whole_body(receive: Receive, largest: int) -> bytes:
    """The whole body; Refused if it is too large, or stops in the middle."""
    parts, size, is_complete = [], 0, False
    while not is_complete:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the body did not come to its end", "body")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > largest:
            raise _too_large(largest)
        is_complete = not message.get("more_body", False)
    return b"".join(parts)


def _too_large(largest: int) -> Refused:
    return Refused(413, f"a body may have {largest:,} bytes here", "body")


async def read_json(text: bytes) -> Any:
    """The value as `strict_json` gives it; a large one is read by a thread, beside the loop."""
    if len(text) <= LARGE:
        return strict_json(text)
    return await asyncio.get_running_loop().run_in_executor(_reader, strict_json, text)


def strict_json(text: bytes) -> Any:
    """The value; Refused where two parsers could read two values, or one could fail."""
    try:
        decoded = text.decode("utf-8")
        value = _decoder.decode(decoded)
        _require_shallow(decoded, value)
        # Only escapes can bring them in: what was decoded has neither.
        if "\\u" in decoded:
            _require_plain(value)
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is not UTF-8 (byte {error.start})", "body") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Refused(400, f"the body is not JSON: {error.msg} ({where})", "body") from error
    except RecursionError as error:
        raise _too_deep() from error
    return value


def _require_shallow(text: str, value: Any) -> None:
    """Level by level, and not at all where there are too few brackets to go that deep."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    if any(type(each) in (dict, list) for each in level):
        raise _too_deep()


def _inside(value: Any) -> Iterable[Any]:
    if type(value) is dict:
        return value.values()
    return value if type(value) is list else ()


def _too_deep() -> Refused:
    return Refused(400, f"the body is nested more than {DEEPEST} deep", "body")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counted = Counter(name for name, _ in pairs)
        twice = counted.most_common(1)[0][0]
        raise Refused(400, f"the key {twice[:_LONGEST_SHOWN]!r} comes twice in one object", "body")
    return found


def _constant(name: str) -> Any:
    raise Refused(400, f"{name} is no JSON number", "body")


def _integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER or abs(value := int(text)) > LARGEST_INTEGER:
        raise Refused(400, f"integers go to ±2⁵³; this one has {len(text)} digits", "body")
    return value


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Refused(400, "a number is too large to be kept", "body")
    return value


def _require_plain(value: Any) -> None:
    """No NUL and no lone surrogates, in keys and values."""
    left = [value]
    while left:
        match left.pop():
            case str() as text:
                _require_text(text)
            case list() as items:
                left += items
            case dict() as pairs:
                left += pairs.keys()
                left += pairs.values()


def _require_text(text: str) -> None:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise Refused(400, "texts have no NUL and no lone surrogates", "body")


# Made once: its scanner costs more to make than most bodies cost to read.
_decoder: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer, parse_float=_float
)
# One thread for large bodies alone: however many come, the threads that write values to disk stay free.
_reader: Final = ThreadPoolExecutor(1, "intake")

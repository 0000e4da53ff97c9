"""What an HTTP answer carries, read within bounds: size, decompressed size, ratio."""

import asyncio
import base64
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ropewalk.nodes.failure import NodeFailure

if TYPE_CHECKING:
    import aiohttp

LARGEST_BODY = 16 * 1024 * 1024
LARGEST_RATIO = 200
# Below this a high ratio is a page of spaces, not an attack.
HARMLESS = 1024 * 1024
CHUNK = 64 * 1024
LARGEST_PIECE = 256 * 1024
MOST_MEMBERS = 100
EXCERPT_TIMEOUT = 2.0
"""How long to wait for what only explains a failure that is known already (s)."""
# What zlib calls gzip.
GZIP = 16 + zlib.MAX_WBITS

ValueType = Literal["auto", "json", "text", "base64"]
ResponseType = Literal["auto", "json", "text", "base64", "file"]

# What stands for a character that was cut in two.
_HALF = "\N{REPLACEMENT CHARACTER}"
# By name: some of Python's codecs take quadratic time, and some do not make text at all.
_CHARSET = re.compile(
    r"utf-?(8|16|32)(-?[lb]e)?|(us-)?ascii|iso-8859-\d+|latin-?1|windows-125\d|shift_jis|euc-(jp|kr)|gb\w+|big5|koi8-\w",
    re.ASCII,
)
_JSON_TYPE = re.compile(r"application/(?:[\w.+-]+\+)?json", re.ASCII)
_TEXT_TYPE = re.compile(r"text/.*|application/(?:[\w.+-]+\+)?xml|application/x-www-form-urlencoded", re.ASCII)


async def read_body(response: "aiohttp.ClientResponse") -> bytes:
    """The whole body, unfolded; a permanent failure when it is too large, too dense, or in an unknown encoding."""
    if "Content-Encoding" not in response.headers and (response.content_length or LARGEST_BODY + 1) <= LARGEST_BODY:
        # Most are like this: they say how long they are, and the connection gives no byte more.
        return await response.content.read()
    content = bytearray()
    async for piece in unfolded(response):
        content += piece
        if len(content) > LARGEST_BODY:
            raise NodeFailure.permanent(f"the answer is larger than {LARGEST_BODY} bytes")
    return bytes(content)


async def unfolded(response: "aiohttp.ClientResponse") -> AsyncGenerator[bytes, None]:
    """The body in pieces, however long it is; a failure when it is too dense, cut short, or in an unknown encoding."""
    folding = _folding(response)
    received = size = 0
    async for chunk in response.content.iter_chunked(CHUNK):
        received += len(chunk)
        for piece in folding.pieces(chunk):
            size += len(piece)
            if size > HARMLESS and size > LARGEST_RATIO * received:
                raise NodeFailure.permanent("the answer unfolds to too many times its size")
            yield piece
    if received and not folding.is_whole:
        raise NodeFailure.transient("the answer was cut short")


async def read_excerpt(response: "aiohttp.ClientResponse", longest: int, until: float) -> str:
    """The first bytes of a body as text; what has come, if the rest cannot be read or does not come soon.

    `until` then (the loop's time) the failure is to be told: at most half of what is left is spent on them.
    """
    import aiohttp  # here: see session.py

    beginning = bytearray()
    # What the status says stands, also if the rest is lost. A time limit of our own is an OSError, too.
    with suppress(NodeFailure, aiohttp.ClientError, OSError):
        async with asyncio.timeout(min(EXCERPT_TIMEOUT, (until - asyncio.get_running_loop().time()) / 2)):
            folding = _folding(response)
            while len(beginning) < longest and (chunk := await response.content.read(CHUNK)):
                for piece in folding.pieces(chunk):
                    beginning += piece
                    if len(beginning) >= longest:
                        break
    return as_text(bytes(beginning[:longest]), response.charset)[:longest].removesuffix(_HALF)


class _Plain:
    """Content as it is."""

    is_whole = True

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        yield chunk


class _Gzip:
    """Content in one gzip member after the other."""

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj(GZIP)
        self._members = 1

    @property
    def is_whole(self) -> bool:
        return self._inflater.eof

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """The next content in pieces of a bounded size: one chunk may unfold to a thousand times as much."""
        is_full = False
        # A full piece may leave content behind though nothing is left of the chunk.
        while chunk or is_full:
            if self._inflater.eof:
                self._next_member()
            piece = self._inflate(chunk)
            chunk = self._inflater.unconsumed_tail or self._inflater.unused_data
            is_full = len(piece) == LARGEST_PIECE and not self._inflater.eof
            if piece:
                yield piece

    def _inflate(self, chunk: bytes) -> bytes:
        try:
            return self._inflater.decompress(chunk, LARGEST_PIECE)
        except zlib.error as error:
            raise NodeFailure.transient(f"the answer is not what its encoding says: {error}") from error

    def _next_member(self) -> None:
        self._members += 1
        # Each one copies what is left of the chunk, so thousands of tiny ones would keep the loop busy.
        if self._members > MOST_MEMBERS:
            raise NodeFailure.permanent("the answer is folded in too many pieces")
        self._inflater = zlib.decompressobj(GZIP)


def _folding(response: "aiohttp.ClientResponse") -> _Plain | _Gzip:
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding in ("", "identity"):
        return _Plain()
    if encoding in ("gzip", "x-gzip"):
        return _Gzip()
    raise NodeFailure.permanent(f"the answer has an encoding we did not ask for: {encoding[:40]!r}")


def read_as(kind: ValueType, body: bytes, content_type: str, charset: str | None) -> Any:
    """The body as the node hands it on: parsed JSON, text, or base64 for what is neither; null for none at all."""
    if kind == "base64":
        return base64.b64encode(body).decode()
    if kind == "text":
        return as_text(body, charset)
    if kind == "json" or (body and _JSON_TYPE.fullmatch(content_type)):
        return _json(body, is_required=kind == "json")
    if not body:
        return None
    return as_text(body, charset) if _is_text(body, content_type) else base64.b64encode(body).decode()


def _json(body: bytes, is_required: bool) -> Any:
    try:
        # Some servers begin with a mark that JSON does not have, and that readers may ignore.
        return msgspec.json.decode(body.removeprefix(BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if is_required:
            raise NodeFailure.permanent(f"the answer is not JSON: {error}") from error
        return as_text(body, None)


def _is_text(body: bytes, content_type: str) -> bool:
    if _TEXT_TYPE.fullmatch(content_type):
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in body


def as_text(body: bytes, charset: str | None) -> str:
    """The body as text; what cannot be read becomes �."""
    name = (charset or "utf-8").lower()
    try:
        return body.decode(name if _CHARSET.fullmatch(name) else "utf-8", errors="replace")
    except LookupError:
        return body.decode(errors="replace")

"""Functions that encode, decode and hash."""

import base64
import binascii
import hashlib
from typing import Final
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlsplit

import msgspec

from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.functions.table import Topic
from ropewalk.core.expression.run import Run
from ropewalk.core.expression.values import JSON, encode, measure, text_size, utf8

ENCODING: Final = Topic("Encodings and hashes")
# A decoded `[[],[],…]` takes many times the bytes of its text.
_DECODED: Final = 16
_decoder = msgspec.json.Decoder()


@ENCODING.function(
    "json_encode(value: any) -> text", "The value as compact JSON.", "json_encode({a: [1, null]})", '{"a":[1,null]}'
)
def json_encode(run: Run, value: JSON) -> str:
    return encode(run, value)


@ENCODING.function(
    "json_decode(value: text) -> any", "The value in a JSON text.", "json_decode('{\"a\": 1}')", {"a": 1}
)
def json_decode(run: Run, value: str) -> JSON:
    run.charge(len(value) >> 5)
    run.allocate(_DECODED * len(value))
    try:
        decoded = _decoder.decode(utf8(value))
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise Refused("cannot read the text as JSON") from None
    measure(run, decoded)
    return decoded


@ENCODING.function("base64_encode(value: text) -> text", "Base64 of its UTF-8 bytes.", 'base64_encode("hé")', "aMOp")
def base64_encode(run: Run, value: str) -> str:
    run.scan(len(value))
    run.allocate(2 * text_size(value))
    return base64.b64encode(utf8(value)).decode()


@ENCODING.function("base64_decode(value: text) -> text", "The text in Base64 of UTF-8.", 'base64_decode("aMOp")', "hé")
def base64_decode(run: Run, value: str) -> str:
    run.scan(len(value))
    run.allocate(text_size(value))
    try:
        return base64.b64decode(utf8(value), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise Refused("cannot read the text as Base64 of UTF-8") from None


@ENCODING.function("url_encode(value: text) -> text", "Safe as a part of a URL.", 'url_encode("a b/c")', "a%20b%2Fc")
def url_encode(run: Run, value: str) -> str:
    run.charge(len(value) >> 4)
    run.allocate(6 * text_size(value))
    return quote(utf8(value), safe="")


@ENCODING.function("url_decode(value: text) -> text", "The text in a part of a URL.", 'url_decode("a%20b")', "a b")
def url_decode(run: Run, value: str) -> str:
    run.charge(len(value) >> 4)
    run.allocate(text_size(value))
    try:
        return unquote_to_bytes(utf8(value)).decode()
    except UnicodeDecodeError:
        raise Refused("cannot read the text as an encoded part of a URL") from None


@ENCODING.function(
    "url_parts(value: text) -> object",
    "{scheme, host, port, path, query, fragment}; query is an object, with a list where a name is given several times; "
    "null is what the URL does not have.",
    'url_parts("https://shop.example/a?x=1").query',
    {"x": "1"},
    cost=16,
)
def url_parts(run: Run, value: str) -> JSON:
    run.charge(len(value) >> 3)
    run.allocate(8 * text_size(value))
    utf8(value)
    try:
        parts = urlsplit(value)
        query = parse_qsl(parts.query, keep_blank_values=True)
        about = {"scheme": parts.scheme or None, "host": parts.hostname, "port": parts.port}
    except ValueError:
        raise Refused("cannot read the text as a URL") from None
    return {**about, "path": parts.path, "query": _by_name(query), "fragment": parts.fragment or None}


def _by_name(pairs: list[tuple[str, str]]) -> dict[str, JSON]:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in found.items()}


@ENCODING.function(
    "sha256(value: text) -> text",
    "SHA-256 of its UTF-8 bytes, in hexadecimal.",
    'slice(sha256("a"), 0, 8)',
    "ca978112",
)
def sha256(run: Run, value: str) -> str:
    run.scan(2 * len(value))
    return hashlib.sha256(utf8(value)).hexdigest()


@ENCODING.function(
    "md5(value: text) -> text",
    "MD5 of its UTF-8 bytes, in hexadecimal; for checksums others ask for, never for safety.",
    'slice(md5("a"), 0, 8)',
    "0cc175b9",
)
def md5(run: Run, value: str) -> str:
    run.scan(2 * len(value))
    return hashlib.md5(utf8(value), usedforsecurity=False).hexdigest()

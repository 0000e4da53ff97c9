"""What a call sends: JSON, text, the fields of a form, or parts with a boundary between them.

A body is made of pieces, each of them bytes or a stream of a known length, so its whole length is known before the
first byte is sent; a redirect or a second try opens the streams anew.
"""

import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from yarl import URL

from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.files import File, Files, file_of, media_type

JSON: TypeAlias = Any
Scalar: TypeAlias = str | int | float | bool
ArrayFormat = Literal["repeat", "brackets", "comma"]

MOST_PARTS = 1_000
_UNSAFE = re.compile(r'[\r\n"]')
_ESCAPED = {"\r": "%0D", "\n": "%0A", '"': "%22"}


class Stream(msgspec.Struct, frozen=True):
    """Bytes that are read while they are sent, and the SHA-256 of them."""

    size: int
    hash: str
    open: Callable[[], AsyncIterator[bytes]]


Piece = bytes | Stream


class Body(msgspec.Struct, frozen=True):
    """The pieces of a body, and what they are."""

    pieces: tuple[Piece, ...]
    type: str

    @property
    def size(self) -> int:
        return sum(len(each) if isinstance(each, bytes) else each.size for each in self.pieces)

    @property
    def is_streamed(self) -> bool:
        return any(isinstance(each, Stream) for each in self.pieces)

    @property
    def known_hash(self) -> str | None:
        """The SHA-256 of a body that is one stream."""
        match self.pieces:
            case (Stream() as only,):
                return only.hash
        return None

    def whole(self) -> bytes:
        """All of it, if none of it is streamed."""
        return b"".join(each for each in self.pieces if isinstance(each, bytes))

    async def stream(self) -> AsyncIterator[bytes]:
        """Piece after piece."""
        for each in self.pieces:
            if isinstance(each, bytes):
                yield each
            else:
                async for chunk in each.open():
                    yield chunk


class Attachment(msgspec.Struct, frozen=True):
    """A file as one part of a form."""

    name: str
    type: str
    content: Stream


Part = Scalar | Attachment


def streamed(file: File, files: Files) -> Stream:
    """The content of a file, read while it is sent."""
    return Stream(file.size, file.hash, lambda: files.read(file))


def file_body(file: File, files: Files) -> Body:
    """A file, as it is."""
    return Body((streamed(file, files),), media_type(file.type))


def required_file(value: JSON, place: str) -> File:
    """The file that a value is; a permanent failure that names the place if it is none."""
    file = file_of(value)
    if file is None:
        raise NodeFailure.permanent(f"{place}: is no file: hand on the value that a node or an upload gave")
    return file


def attached(value: JSON, files: Files, place: str) -> JSON:
    """A field of a form with its files to be streamed."""
    if isinstance(value, list):
        return [attached(each, files, place) for each in value]
    if not isinstance(value, dict):
        return value
    file = required_file(value, place)
    return Attachment(file.name, media_type(file.type), streamed(file, files))


def json_body(value: JSON) -> Body:
    """A JSON value."""
    return Body((msgspec.json.encode(value),), "application/json")


def text_body(text: str) -> Body:
    """A plain text."""
    return Body((text.encode(),), "text/plain; charset=utf-8")


def form_body(fields: Mapping[str, JSON], arrays: ArrayFormat) -> Body:
    """The fields as a form of a web page sends them."""
    written = URL.build(query=pairs_of(fields, arrays)).raw_query_string
    return Body((written.encode(),), "application/x-www-form-urlencoded")


def multipart_body(fields: Mapping[str, Part | Sequence[Part | None] | None]) -> Body:
    """The fields as a form with files sends them."""
    parts = [(name, part) for name, given in fields.items() for part in _each(given)]
    if len(parts) > MOST_PARTS:
        raise NodeFailure.permanent(f"with.multipart: has more than {MOST_PARTS} parts")
    # By chance, since a part that knew it could end itself and begin another.
    boundary = secrets.token_hex(20)
    pieces = (*_pieces(parts, boundary), f"--{boundary}--\r\n".encode())
    return Body(pieces, f"multipart/form-data; boundary={boundary}")


def _each(given: Any) -> Sequence[Part]:
    if isinstance(given, list):
        return [part for part in given if part is not None]
    return [] if given is None else [given]


def _pieces(parts: Sequence[tuple[str, Part]], boundary: str) -> Iterator[Piece]:
    for name, part in parts:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"'
        if isinstance(part, Attachment):
            yield f'{head}; filename="{_quoted(part.name)}"\r\nContent-Type: {part.type}\r\n\r\n'.encode()
            yield part.content
            yield b"\r\n"
        else:
            yield f"{head}\r\n\r\n{written(part)}\r\n".encode()


def _quoted(text: str) -> str:
    """A name between quotation marks, escaped as browsers do: no part of it can begin another header."""
    return _UNSAFE.sub(lambda found: _ESCAPED[found[0]], text)


def pairs_of(fields: Mapping[str, Any], arrays: ArrayFormat) -> list[tuple[str, str]]:
    """Names and values as an address or a form has them: null is left out, a field of an object is `object[field]`."""
    return [pair for name, given in fields.items() for pair in _pairs(name, given, arrays)]


def _pairs(name: str, given: Any, arrays: ArrayFormat) -> list[tuple[str, str]]:
    if isinstance(given, dict):
        inside = ((f"{name}[{key}]", value) for key, value in given.items())
        return [pair for inner, value in inside for pair in _pairs(inner, value, arrays)]
    if not isinstance(given, list):
        return [] if given is None else [(name, written(given))]
    if arrays == "comma":
        values = [written(each) for each in given if each is not None]
        return [(name, ",".join(values))] if values else []
    inner = f"{name}[]" if arrays == "brackets" else name
    return [pair for each in given for pair in _pairs(inner, each, arrays)]


def written(value: Scalar) -> str:
    """The value as text; true and false as JSON has them."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

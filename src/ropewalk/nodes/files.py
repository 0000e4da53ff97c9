"""Files as values: content that lies beside the log, named by its hash, read and written as a stream.

A file is the JSON value `{"$file": {"hash", "size", "name", "type"}}`, the keys in this order. It goes from node to
node like any other value; its content never goes through memory whole. The store keeps what its logs name by the hash.
"""

import re
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from ropewalk.core.canonical import writable
from ropewalk.nodes.failure import NodeFailure

KEY: Final = "$file"
LONGEST_NAME: Final = 200
UNKNOWN_TYPE: Final = "application/octet-stream"

FILE_SCHEMA: Final = {
    "type": "object",
    "description": "A file: a value that names content.",
    "properties": {
        KEY: {
            "type": "object",
            "description": "Which content it names.",
            "properties": {
                "hash": {"type": "string", "description": "The SHA-256 of the content."},
                "size": {"type": "integer", "description": "How many bytes there are."},
                "name": {"type": "string", "description": "What the file is called."},
                "type": {"type": "string", "description": "The media type of the content."},
            },
        }
    },
}
"""A file, in the documented output of a node type."""

_HASH: Final = re.compile("[0-9a-f]{64}")
_TYPE: Final = re.compile(
    r"[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}(; ?[A-Za-z0-9-]{1,32}=[A-Za-z0-9._-]{1,64})?"
)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class File(Struct, frozen=True, forbid_unknown_fields=True):
    """Content by its hash, and what it is called."""

    hash: str
    size: int
    name: str
    type: str


class Files(Protocol):
    """Where the content of files is, as far as one attempt reaches it."""

    def read(self, file: File) -> AsyncIterator[bytes]:
        """The content in parts of 512 KiB at most; the last comes only if all of them are what the hash says."""

    async def write(self, chunks: AsyncIterable[bytes], name: str, type: str) -> File:  # noqa: A002 -- what a file calls it
        """Keeps what comes, durable on return; NodeFailure if it is more than a limit, and then nothing is kept."""


def as_value(file: File) -> dict[str, Any]:
    """The file as JSON."""
    return {KEY: {"hash": file.hash, "size": file.size, "name": file.name, "type": file.type}}


def file_of(value: Any) -> File | None:
    """The file that a JSON value is, if it is one; a permanent failure if it only looks like one."""
    if not isinstance(value, dict) or KEY not in value:
        return None
    try:
        file = msgspec.convert(value[KEY], File)
    except msgspec.ValidationError as error:
        raise NodeFailure.permanent(f"{KEY}: is no file: {error}") from error
    if len(value) != 1 or not _HASH.fullmatch(file.hash) or file.size < 0:
        raise NodeFailure.permanent(f"{KEY}: is no file: hand on the value that a node or an upload gave, unchanged")
    return file


def file_name(name: str) -> str:
    """The last part of a name or path, as every store and header can have it; `file` if nothing is left."""
    last = _UNPRINTABLE.sub("", writable(re.split(r"[/\\]", name)[-1])).strip()
    return "file" if last.strip(".") == "" else shortest(last)


def shortest(name: str) -> str:
    """The name, cut in the middle where it is too long, so that its end still says what kind of file it is."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 33]}…{name[-32:]}"


def media_type(told: str) -> str:
    """The media type that is told, if it is one that a header can have."""
    return told if _TYPE.fullmatch(told) else UNKNOWN_TYPE

"""Values as the log has them: a copy of a small one, the JSON of one that is kept elsewhere.

A value is written once: the same text is measured, hashed, kept and, of a small one, read again as the copy. Of a small
object that has nothing but plain texts, flags and nulls in it, everything is known without writing it.
"""

import hashlib
from typing import Any, Final

import msgspec

from ropewalk.core.measured import TooLarge, measured
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.values import LARGEST_OUTPUT, checked, plain_briefly

# The most that one character of ASCII takes in JSON, and all else that belongs to one part of an object.
LONGEST_ESCAPE = 6
LONGEST_FRAME = 11

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class Large(msgspec.Struct, frozen=True):
    """A value that is too large for the log, as JSON, and the hash of that."""

    text: bytes
    hash: str


def recorded_briefly(value: Any, longest: int) -> tuple[Any, Large | None]:
    """What `recorded` gives; Unfinished if that takes long."""
    if type(value) is dict and _is_sure(value, longest):
        return value.copy(), None
    plain = plain_briefly(value)
    return _as_recorded(plain, _encode(plain), longest)


def recorded(value: Any, longest: int) -> tuple[Any, Large | None]:
    """The value as the log will have it; if its JSON is longer than that, the JSON instead.

    A copy: the node may still change what it handed on. What is no JSON fails as in `check_output`.
    """
    plain, _ = checked(value, LARGEST_OUTPUT)
    return _as_recorded(plain, _written(plain, "output: "), longest)


def _as_recorded(plain: Any, text: bytes, longest: int) -> tuple[Any, Large | None]:
    if len(text) > longest:
        return None, Large(text, hashlib.sha256(text).hexdigest())
    return _decode(text) if type(plain) in (dict, list) else plain, None


def kept_apart(inputs: Any, longest: int) -> Large | None:
    """The JSON of large inputs, by sorted keys: its hash is the hash of the inputs; None if it fits into the log."""
    text = _written(inputs, "with: ", is_sorted=True)
    return Large(text, hashlib.sha256(text).hexdigest()) if len(text) > longest else None


def output_apart(output: Any, longest: int) -> tuple[Any, Large | None]:
    """The output of an execution, which shares its parts with others; if its JSON is longer than that, the JSON."""
    text = _written(output, "")
    return (None, Large(text, hashlib.sha256(text).hexdigest())) if len(text) > longest else (output, None)


def _written(plain: Any, name: str, *, is_sorted: bool = False) -> bytes:
    """The JSON of a value; a permanent failure under this name if it is larger than a value may be."""
    try:
        return measured(plain, LARGEST_OUTPUT, is_sorted=is_sorted)
    except TooLarge:
        raise NodeFailure.permanent(f"{name}is larger than {LARGEST_OUTPUT // 2**20} MiB") from None


def _is_sure(value: dict[Any, Any], longest: int) -> bool:
    """Whether there is nothing but flags, nulls and ASCII in it, and no more than fits, however it is escaped."""
    # A plain loop: this is paid for every output of every node, and most have one or two parts.
    for key, part in value.items():
        if type(key) is not str or not key.isascii():
            return False
        longest -= len(key) * LONGEST_ESCAPE + LONGEST_FRAME
        if type(part) is str:
            if not part.isascii():
                return False
            longest -= len(part) * LONGEST_ESCAPE
        elif part is not None and type(part) is not bool:
            return False
        if longest < 0:
            return False
    return True

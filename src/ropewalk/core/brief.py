"""Values that can be gone through at once, and those that take long: the loop does the one, a thread the other.

A value is *brief* if it has at most some two thousand parts and ten thousand characters. To copy, check or write one
takes less than a millisecond, and its JSON fits into the log, however its texts are escaped. A value may name the same
part a thousand times: its parts are counted as often as they are named.
"""

from typing import Any, Final

import msgspec

from ropewalk.core.errors import Unfinished

JSON = Any

BRIEF: Final = 10_000
"""What is counted: a character of text or key is one, every part five. One stands for six bytes of JSON at most."""
BRIEF_TEXT: Final = 16 * 1024
"""The JSON of a brief copy has so many bytes at most."""
_PART: Final = 5
DEEPEST: Final = 128
"""Values that expressions may make are no deeper."""
_COUNTED: Final = frozenset({str, dict, list})

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


def is_brief(value: JSON) -> bool:
    """Whether a value can be gone through at once; found out without going through more than that."""
    return fits(value, BRIEF)


def fits(value: JSON, most: int) -> bool:
    """Whether a value counts so much at most; no more of it is looked at than that."""
    return type(value) not in _COUNTED or _left(value, most, DEEPEST) >= 0


def _left(value: JSON, left: int, levels: int) -> int:
    """How much is left of that; less than nothing also if there are more levels."""
    kind = type(value)
    if kind is str:
        return left - len(value)
    if kind is dict:
        left -= _PART * len(value) + _characters(value)
        value = value.values()
    elif kind is list:
        left -= _PART * len(value)
    else:
        return left
    if not levels:
        return -1
    for part in value if left >= 0 else ():
        if type(part) in _COUNTED:
            left = _left(part, left, levels - 1)
            if left < 0:
                break
    return left


def _characters(keys: dict[Any, JSON]) -> int:
    try:
        return len("".join(keys))
    except TypeError:
        return 0  # no JSON: the one who checks it says so


def copied_briefly(value: JSON, *, is_little: bool) -> JSON:
    """A value of its own; Unfinished if to make one takes long. `is_little` if it is known to be some MiB at most."""
    if is_little or is_brief(value):
        # The encoder is several times faster than a walk, and measures on the way.
        text = _encode(value)
        if len(text) <= BRIEF_TEXT:
            return _decode(text)
    raise Unfinished


def copied(value: JSON) -> JSON:
    """A value of its own, however large. The interpreter can be taken by other threads meanwhile."""
    if type(value) is dict:
        return {key: copied(part) if type(part) in _COUNTED else part for key, part in value.items()}
    return [copied(part) if type(part) in _COUNTED else part for part in value] if type(value) is list else value

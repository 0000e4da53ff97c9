"""JSON values as the language sees them: what kind they are, whether they are equal, how large, how they read."""

from typing import Any, Final, TypeAlias

import msgspec

from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.run import MAX_FLOAT, MAX_INTEGER, MAX_VALUE, Run

JSON: TypeAlias = Any

MAX_NESTING: Final = 128
_SLOT: Final = 8
_LONGEST_SHOWN: Final = 32
_KINDS: Final = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "text",
    list: "list",
    dict: "object",
}
_ARTICLES: Final = {"null": "null", "object": "an object"}
NUMBERS: Final = (int, float)

_encoder = msgspec.json.Encoder()


def kind(value: JSON) -> str:
    """What authors call this sort of value."""
    found = _KINDS.get(type(value))
    if found is not None:
        return found
    return next((name for base, name in _KINDS.items() if isinstance(value, base)), "unknown value")


def a_kind(value: JSON) -> str:
    """The kind with its article, for messages."""
    name = kind(value)
    return _ARTICLES.get(name, f"a {name}")


def shown(text: str) -> str:
    """A text quoted for a message, cut short."""
    return ascii(text) if len(text) <= _LONGEST_SHOWN else ascii(text[:_LONGEST_SHOWN]) + "…"


def is_true(value: JSON) -> bool:
    """Whether a condition holds: null, false, 0 and everything empty do not."""
    return bool(value)


def text_size(text: str) -> int:
    """Bytes to reckon for a text: its characters, twice if any is beyond ASCII."""
    return len(text) if text.isascii() else 2 * len(text)


def is_sound_number(value: float) -> bool:
    """Whether a number is one the language may hold: an integer within ±2**53 or a finite float."""
    if type(value) is int:
        return -MAX_INTEGER <= value <= MAX_INTEGER
    return -MAX_FLOAT <= value <= MAX_FLOAT


def sound(value: float) -> float:
    """The number itself, refused if it is out of range."""
    if is_sound_number(value):
        return value
    raise Refused("gives a number out of range; integers go up to ±2**53")


def utf8(text: str) -> bytes:
    """The text as bytes; half a character (a lone surrogate) is refused."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Refused("cannot use a text with half a character (a lone surrogate)") from None


def look_up(value: JSON, key: JSON) -> JSON:
    """What `value` holds under `key`: null in null and where nothing is. Only objects and lists hold anything."""
    if value is None or key is None:
        return None
    if type(key) is str and isinstance(value, dict):
        return value.get(key)
    if type(key) is int and isinstance(value, list):
        return value[key] if -len(value) <= key < len(value) else None
    named = shown(key) if isinstance(key, str) else a_kind(key)
    raise Refused(f"cannot look up {named} in {a_kind(value)}; objects take a text, lists an integer")


def equal(run: Run, left: JSON, right: JSON) -> bool:
    """Whether two values are the same JSON: 1 is 1.0, true is not 1, the order of keys is of no matter."""
    if type(left) is str and type(right) is str:
        return _is_same_scalar(run, left, right)
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        name = kind(one)
        if name != kind(other):
            return False
        if name == "list" or name == "object":
            if len(one) != len(other):
                return False
            run.charge(2 + (len(one) >> 1))
            if not _pair_up(one, other, pairs):
                return False
        elif not _is_same_scalar(run, one, other):
            return False
    return True


def _is_same_scalar(run: Run, one: JSON, other: JSON) -> bool:
    if isinstance(one, str):
        run.scan(min(len(one), len(other)))
    return bool(one == other)


def _pair_up(one: JSON, other: JSON, pairs: list[tuple[JSON, JSON]]) -> bool:
    if isinstance(one, list):
        pairs.extend(zip(one, other, strict=True))
        return True
    for key, value in one.items():
        if key not in other:
            return False
        pairs.append((value, other[key]))
    return True


def contains(run: Run, container: JSON, value: JSON) -> bool:
    """Whether a list has the value, an object the key, a text the part; null has nothing."""
    match kind(container):
        case "null":
            return False
        case "list":
            run.charge(len(container) >> 1)
            return any(equal(run, item, value) for item in container)
        case "object" if isinstance(value, str):
            return value in container
        case "text" if isinstance(value, str):
            run.scan(len(container))
            return value in container
    raise Refused(f"cannot look for {a_kind(value)} in {a_kind(container)}")


def measure(run: Run, value: JSON) -> int:
    """The size of a value: 8 for each value in it plus its text. Refused past 1 MiB, if too deep, or not sound JSON."""
    size = 0
    level = [value]
    for _ in range(MAX_NESTING):
        below: list[JSON] = []
        text, containers = _measure_level(level, below)
        size += _SLOT * len(level) + text
        if size > MAX_VALUE:
            raise _too_large()
        if not below:
            return size
        run.charge((len(below) + containers) >> 3)
        level = below
    raise Refused(f"gives a value nested deeper than {MAX_NESTING} levels")


def _measure_level(level: list[JSON], below: list[JSON]) -> tuple[int, int]:
    """How much text values side by side hold, and how many hold others, which are put `below`. Kept fast."""
    size = containers = 0
    for value in level:
        sort = type(value)
        if sort is str:
            size += len(value) if value.isascii() else 2 * len(value)
        elif sort is int or sort is float:
            sound(value)
        elif sort is list or sort is dict:
            if _SLOT * (len(value) + len(below)) > MAX_VALUE:
                raise _too_large()
            below.extend(value if sort is list else value.values())
            size += sum(map(text_size, value)) if sort is dict else 0
            containers += 1
        elif value is not None and sort is not bool and kind(value) != "text":
            raise Refused("gives something that is not JSON")
    return size, containers


def _too_large() -> Refused:
    return Refused("gives a value larger than 1 MiB; only a bare path may be larger")


def encode(run: Run, value: JSON) -> str:
    """The value as compact JSON."""
    # Measured first: escapes can make the JSON six times as long as the text, but no longer.
    measure(run, value)
    try:
        encoded = _encoder.encode(value).decode()
    except UnicodeEncodeError:
        raise Refused("cannot write a text with half a character (a lone surrogate) as JSON") from None
    run.allocate(text_size(encoded))
    return encoded


def render(run: Run, value: JSON) -> str:
    """The value as it reads inside a text: text as it is, null as nothing, a whole number without a point, the rest as
    JSON.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if type(value) is float and value.is_integer() and -MAX_INTEGER <= value <= MAX_INTEGER:
        return str(int(value))
    return encode(run, value)

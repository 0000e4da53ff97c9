"""JSON values: what may be in one, and the bytes and hashes that are the same for equal ones.

Equal means equal but for the order of keys: `1` and `1.0` are two values here, as they are in the text.
"""

import hashlib
import math
import re
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from ropewalk.core.errors import Problem, RunError

JSON: TypeAlias = Any
"""A user's value: None, bool, int, float, str, list and dict of the same."""

Path = tuple[str | int, ...]

DEEPEST = 64
LARGEST_INTEGER = 2**53
LONGEST_STEP = 64
_MOST_PROBLEMS = 100

_encoder = msgspec.json.Encoder(order="sorted")
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


def canonical(value: JSON) -> bytes:
    """Compact JSON with sorted keys; ValueError for what JSON cannot say."""
    try:
        text = _encoder.encode(value)
    except (RecursionError, TypeError, OverflowError, UnicodeEncodeError) as error:
        raise ValueError("is not a JSON value") from error
    # The encoder writes NaN and infinity as null, so only a text with a null can hide one.
    if b"null" in text and _has_unwritable_number(value):
        raise ValueError("is not a JSON value")
    return text


def _has_unwritable_number(value: JSON) -> bool:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, float) and not math.isfinite(part):
            return True
        if isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, list | tuple):
            waiting.extend(part)
    return False


def content_hash(value: JSON) -> str:
    """The SHA-256 of the canonical bytes, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def idempotency_key(
    workspace: str, execution: str, node: str, item: int | None, inputs_hash: str, config_hash: str
) -> str:
    """The same for every attempt at the same work in one execution, and never the same for other work."""
    # Texts and an integer: none of them needs to be looked through for what JSON cannot say.
    about = _encoder.encode([workspace, execution, node, item, inputs_hash, config_hash])
    return hashlib.sha256(about).hexdigest()


def json_problems(value: JSON, path: Path = ()) -> list[Problem]:
    """What keeps a Python value from being plain, bounded JSON; of many places, the first."""
    return [] if value is None or is_plain(value) else _json_problems(value, path)


def is_plain(value: JSON) -> bool:
    """Whether a value is JSON of sane depth, integers and text; asked first, since nearly always it is."""
    level: list[JSON] = [value]
    for _ in range(DEEPEST + 1):
        inner: list[JSON] = []
        for part in level:
            if isinstance(part, dict):
                if not _has_plain_keys(part):
                    return False
                inner.extend(part.values())
            elif isinstance(part, list):
                inner.extend(part)
            elif _refused_scalar(part):
                return False
        if not inner:
            return True
        level = inner
    return False


def _has_plain_keys(part: dict[Any, JSON]) -> bool:
    try:
        return is_text("".join(part))
    except TypeError:
        return False


def _json_problems(value: JSON, path: Path) -> list[Problem]:
    problems: list[Problem] = []
    waiting: list[tuple[JSON, Path]] = [(value, path)]
    while waiting and len(problems) < _MOST_PROBLEMS:
        part, where = waiting.pop()
        if isinstance(part, dict | list) and part and len(where) - len(path) >= DEEPEST:
            problems.append(Problem(where, f"is nested more than {DEEPEST} levels deep"))
        elif isinstance(part, dict):
            problems.extend(_key_problems(part, where))
            waiting.extend((inner, (*where, step(key))) for key, inner in reversed(part.items()))
        elif isinstance(part, list):
            waiting.extend((inner, (*where, place)) for place, inner in reversed(list(enumerate(part))))
        elif message := _refused_scalar(part):
            problems.append(Problem(where, message))
    return problems[:_MOST_PROBLEMS]


def _key_problems(part: dict[Any, JSON], where: Path) -> list[Problem]:
    return [
        Problem((*where, step(key)), "the key must be text without NUL and lone surrogates")
        for key in part
        if not isinstance(key, str) or not is_text(key)
    ]


def _refused_scalar(part: object) -> str | None:
    if isinstance(part, str):
        return None if is_text(part) else "must be text without NUL and lone surrogates"
    if part is None or isinstance(part, bool):
        return None
    if isinstance(part, int):
        return None if -LARGEST_INTEGER <= part <= LARGEST_INTEGER else "must be an integer within ±2⁵³"
    if isinstance(part, float):
        return None if math.isfinite(part) else "must be a finite number"
    return f"must be JSON, not {type(part).__name__}"


def is_text(text: str) -> bool:
    """Whether the text can be stored and sent anywhere: no NUL, no half of a surrogate pair."""
    if text.isascii():
        return "\0" not in text
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def writable(text: str) -> str:
    """The text as every store keeps it: � in the place of each NUL and of each half of a surrogate pair."""
    if is_text(text):
        return text
    return _UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def writable_error(error: RunError) -> RunError:
    """What a run reports when it fails, as every store keeps it."""
    if all(text is None or is_text(text) for text in (error.message, error.detail, error.body)):
        return error
    detail, body = (None if text is None else writable(text) for text in (error.detail, error.body))
    return msgspec.structs.replace(error, message=writable(error.message), detail=detail, body=body)


def extent(value: JSON, most: int) -> int:
    """How many values there are in a value, itself and four characters of text counted as one; at most about `most`."""
    found, waiting = 0, [value]
    while waiting and found < most:
        part = waiting.pop()
        found += 1
        if isinstance(part, str):
            found += len(part) >> 2
        elif isinstance(part, list | dict):
            waiting.extend(islice(part if isinstance(part, list) else part.values(), most))
    return found


def step(key: object, longest: int = LONGEST_STEP) -> str:
    """A key as part of a path, or an author's words as part of a message: bounded, and always writable."""
    text = key if isinstance(key, str) else repr(key)
    short = text if len(text) <= longest else f"{text[:longest]}…"
    return short if is_text(short) else ascii(short)[1:-1]


def shown(value: object) -> str:
    """A value as part of a message: bounded, quoted if it is text."""
    return f"'{step(value)}'" if isinstance(value, str) else kind_of(value)


def kind_of(value: object) -> str:
    """What sort of JSON a value is, in the words of JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"

"""The words of a curl command, taken apart: its options as they are meant, and what has no meaning here."""

import re
from typing import Final

from msgspec import Struct, field

from ropewalk.importing.curl_options import FLAGS, HARMLESS, HARMLESS_VALUED, LEFT_OUT, REFUSED, SHORT, VALUED

_SECRET: Final = re.compile(
    r"authorization|cookie|password|passwd|passphrase|secret|credential|signature"
    r"|(?:^|[-_.])(?:token|key|auth|pwd|sig|pat|jwt|session|sid)(?:$|[-_.])|apikey|api_?key|accesstoken|authtoken",
    re.IGNORECASE,
)
_HARMLESS_KEYS: Final = frozenset({"idempotency-key", "x-idempotency-key", "sort-key", "primary-key", "partition-key"})


class Command(Struct):
    """What the words of the command say."""

    url: str | None = None
    method: str | None = None
    headers: list[str] = field(default_factory=list)
    data: list[tuple[str, str]] = field(default_factory=list)
    parts: list[tuple[str, bool]] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    user: str | None = None
    way: str = "http.basic"
    options: dict[str, str] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def read_command(words: list[str]) -> Command:
    found = Command()
    waiting = list(reversed(words))
    while waiting:
        word = waiting.pop()
        if word.startswith("--") and len(word) > 2:
            name, is_joined, value = word[2:].partition("=")
            _take(found, name, value if is_joined else None, waiting)
        elif word.startswith("-") and len(word) > 1:
            _take_short(found, word[1:], waiting)
        else:
            _take_address(found, word)
    if found.url is None:
        raise ValueError("the command names no address")
    return found


def _take_short(found: Command, letters: str, waiting: list[str]) -> None:
    """Takes options of one letter, which may stand together, the last with its value."""
    for at, letter in enumerate(letters):
        name = SHORT.get(letter, letter)
        if name in VALUED or name in HARMLESS_VALUED or name in LEFT_OUT:
            _take(found, name, letters[at + 1 :] or None, waiting)
            return
        _take(found, name, None, waiting)


def _take(found: Command, name: str, value: str | None, waiting: list[str]) -> None:
    if name in REFUSED:
        raise ValueError(f"--{name} cannot be had: {REFUSED[name]}")
    if name in FLAGS:
        found.flags.add(name)
    elif name in VALUED or name in HARMLESS_VALUED or name in LEFT_OUT:
        if value is None and not waiting:
            raise ValueError(f"--{name} needs a value")
        _keep(found, name, waiting.pop() if value is None else value)
    elif name not in HARMLESS and name.removeprefix("no-") not in HARMLESS:
        option = f"--{name}" if len(name) > 1 else f"-{name}"
        found.notes.append(f"{option} is not known and was left out")


def _keep(found: Command, name: str, value: str) -> None:
    match name:
        case "url":
            _take_address(found, value)
        case "request":
            found.method = value.upper()
        case "header":
            found.headers.append(value)
        case "data" | "data-raw" | "data-ascii" | "data-binary" | "data-urlencode" | "json":
            found.data.append((name, value))
        case "form" | "form-string":
            found.parts.append((value, name == "form"))
        case "url-query":
            found.queries.append(value)
        case "user":
            found.user = value
        case "oauth2-bearer":
            found.user, found.way = "", "http.bearer"
        case "aws-sigv4":
            found.way = "aws"
        case _ if name in LEFT_OUT:
            found.notes.append(f"--{name} was left out: {LEFT_OUT[name]}")
        case _ if name in VALUED:
            found.options[name] = value


def _take_address(found: Command, word: str) -> None:
    if found.url is None:
        found.url = word if "://" in word else f"http://{word}"
    else:
        found.notes.append(f"{shown(word)} was left out: one node sends one request")


def shown(word: str) -> str:
    """A word of the command in a note: short, and without what may be a secret."""
    return repr(word if len(word) <= 40 and not _SECRET.search(word) and "@" not in word else f"{word[:8]}…")


def is_secret(name: str) -> bool:
    """Whether a field, header or parameter of this name is likely to carry a secret."""
    return name.lower() not in _HARMLESS_KEYS and _SECRET.search(name) is not None

"""Masks secrets in everything a run reports: what a counterpart sends back may repeat what it was sent.

A secret is found as it is (in upper or lower case), with any of its characters escaped as in URLs, JSON or
quoted-printable, backwards, in hex, and in base64 at any of the three places it can have in a longer text, such as
`user:password` or what a login by SMTP sends. In base64 the whole word is masked, since the characters beside it hold
parts of the secret. A part of a secret is masked too where a text begins or ends with it: the rest may be cut off.
"""

import base64
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec
import re2

from ropewalk.core.canonical import writable
from ropewalk.core.errors import RunError
from ropewalk.core.waits import Wait
from ropewalk.nodes.values import Output, check_output

MASK: Final = "***"
SHORTEST: Final = 4
"""Of an encoded secret, and of a part of one, no less than this is looked for."""
_MEMORY: Final = 16 * 2**20
_CUT: Final = "…"
_WORD: Final = "[A-Za-z0-9+/_-]"
_IN_BASE64: Final = {"+": "(?:[+-]|%2[Bb])", "/": r"(?:\\?/|_|%2[Ff])"}


class Masking:
    """What masks these secrets."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._masks = [_mask_of(secret) for secret in secrets]

    def text(self, text: str) -> str:
        """The text without any of the secrets."""
        for mask in self._masks:
            text = mask(text)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value without any of the secrets in its texts and keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(part) for part in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(part) for key, part in value.items()}
        return value

    def _ports(self, ports: Any) -> Any:
        """Ports without any of the secrets in their names; what is no tuple of names is refused later."""
        is_named = type(ports) is tuple and all(type(port) is str for port in ports)
        return tuple(map(self.text, ports)) if is_named else ports

    def error(self, error: RunError) -> RunError:
        """An error without any of the secrets in what it says."""
        detail, body = (None if text is None else self.text(text) for text in (error.detail, error.body))
        return msgspec.structs.replace(error, message=self.text(error.message), detail=detail, body=body)

    def result(self, result: Any) -> Any:
        """What a node returned without any of the secrets; a failure if that cannot be recorded anyway."""
        if isinstance(result, Output):
            return Output(self.value(check_output(result.value)), self._ports(result.ports), result.tokens)
        if isinstance(result, Wait):
            return msgspec.convert(self.value(msgspec.to_builtins(result)), type(result))
        return result


@lru_cache(64)
def _mask_of(secret: str) -> Callable[[str], str]:
    """What masks one secret; kept, since a worker uses the same few again and again."""
    plain = writable(secret)
    encoded = [form for form in (plain.encode().hex(), *_in_base64(plain)) if len(form) >= SHORTEST]
    pattern, edges = _pattern(plain, encoded[1:]), [plain, plain[::-1], *encoded]

    def mask(text: str) -> str:
        return _without_parts(str(pattern.sub(MASK, writable(text))), edges)

    return mask


def _in_base64(text: str) -> list[str]:
    """The characters that tell of nothing but the text, for each place it can have among groups of three bytes."""
    raw = text.encode()
    whole = [base64.b64encode(b"\0" * ahead + raw).decode() for ahead in range(3)]
    return [each[-(-8 * ahead // 6) : 8 * (ahead + len(raw)) // 6] for ahead, each in enumerate(whole)]


def _pattern(plain: str, in_base64: list[str]) -> Any:
    raw = plain.encode().hex()
    words = ["".join(_IN_BASE64.get(each, each) for each in form) for form in in_base64]
    ways = [f"{_WORD}*{word}{_WORD}*=*" for word in words]
    ways += [f"(?i:{''.join(map(_spelt, plain))})", f"(?i:{re.escape(plain[::-1])})"]
    ways += [f"(?i:{raw})"] if len(raw) >= SHORTEST else []
    options = re2.Options()
    options.max_mem, options.log_errors = _MEMORY, False
    return re2.compile("|".join(ways), options)


def _spelt(character: str) -> str:
    """A character, or what stands for it where it is escaped."""
    units = character.encode("utf-16-be")
    escaped = "".join(rf"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    percent, printable = ("".join(f"{sign}{byte:02x}" for byte in character.encode()) for sign in "%=")
    ways = [rf"\\?{re.escape(character)}", percent, printable, escaped, *([r"\+"] if character == " " else [])]
    return f"(?:{'|'.join(ways)})"


def _without_parts(text: str, forms: list[str]) -> str:
    """The text without a part of a secret at which it was cut off."""
    for form in forms:
        sizes = range(min(len(form) - 1, len(text)), SHORTEST - 1, -1)
        text = next((MASK + text[size:] for size in sizes if text.startswith(form[-size:])), text)
        whole, cut = text.removesuffix(_CUT), _CUT if text.endswith(_CUT) else ""
        text = next((whole[:-size] + MASK + cut for size in sizes if whole.endswith(form[:size])), text)
    return text

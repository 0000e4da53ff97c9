"""HTML text as tokens: texts, and starts and ends of elements. Any text is HTML; comments are left out.

Everything is found by looking ahead once: the time is linear in the text, also for hostile text. The standard library's
parser looks to the end of the text again and again where something is never closed, and keeps the interpreter busy.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import Final, TypeAlias

from msgspec import Struct

MOST_ATTRIBUTES = 256

_NAME = re.compile(r"[A-Za-z][^\s/>]{0,63}")
_ATTRIBUTE = re.compile(r"[^\s/>=][^\s/>=]*")
_GAP = re.compile(r"[\s/]*")
_SPACE = re.compile(r"\s*")
_BARE = re.compile(r"[^\s>]+")
# What is text up to its end, also if it looks like a tag.
_RAW: Final = {
    name: re.compile(f"</{name}", re.IGNORECASE | re.ASCII)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}


class Start(Struct, frozen=True):
    """An opening tag."""

    name: str
    attributes: dict[str, str]


class End(Struct, frozen=True):
    """A closing tag."""

    name: str


Token: TypeAlias = str | Start | End


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text, in their order; what is cut off in the middle of a tag is left out."""
    at = 0
    while at < len(text):
        start = text.find("<", at)
        if start < 0:
            yield text[at:]
            return
        if start > at:
            yield text[at:start]
        token, at = _token(text, start)
        if token is not None:
            yield token
        if isinstance(token, Start) and token.name in _RAW:
            found = _RAW[token.name].search(text, at)
            end = len(text) if found is None else found.start()
            yield text[at:end]
            at = end


def _token(text: str, start: int) -> tuple[Token | None, int]:
    """What begins here with a `<`, None if that is nothing, and where it ends."""
    if text.startswith("<!--", start):
        return None, _behind(text, "-->", start + 2)
    if text.startswith(("<!", "<?"), start):
        return None, _behind(text, ">", start)
    is_end = text.startswith("</", start)
    name = _NAME.match(text, start + 1 + is_end)
    if name is None:
        # `</` before anything else is a comment for browsers, `<` is a text.
        return (None, _behind(text, ">", start)) if is_end else ("<", start + 1)
    if is_end:
        return End(name[0].lower()), _behind(text, ">", name.end())
    return _start(text, name[0].lower(), name.end())


def _behind(text: str, mark: str, at: int) -> int:
    found = text.find(mark, at)
    return len(text) if found < 0 else found + len(mark)


def _start(text: str, name: str, at: int) -> tuple[Token | None, int]:
    attributes: dict[str, str] = {}
    while True:
        gap = _GAP.match(text, at)
        at = gap.end() if gap else at
        if at >= len(text):
            return None, at
        if text[at] == ">":
            return Start(name, attributes), at + 1
        key, value, at = _attribute(text, at)
        if key is None:
            return None, at
        if len(attributes) < MOST_ATTRIBUTES:
            attributes.setdefault(key, value)


def _attribute(text: str, at: int) -> tuple[str | None, str, int]:
    """An attribute, its value, and where it ends; no attribute if the text ends in it."""
    found = _ATTRIBUTE.match(text, at)
    if found is None:
        return "=", "", at + 1
    key, end = found[0].lower(), found.end()
    at = _passed(text, end)
    if not text.startswith("=", at):
        return key, "", end
    at = _passed(text, at + 1)
    if text.startswith(('"', "'"), at):
        close = text.find(text[at], at + 1)
        return (None, "", len(text)) if close < 0 else (key, unescape(text[at + 1 : close]), close + 1)
    bare = _BARE.match(text, at)
    return (key, "", at) if bare is None else (key, unescape(bare[0]), bare.end())


def _passed(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at

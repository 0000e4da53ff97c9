"""The statements by name, parsed once from `queries/*.sql` and rendered for a dialect.

A statement is a block that starts with `-- name: its promise`. It has parameters `$1 …` and may have markers such as
`{{skip_locked}}`, which each dialect replaces by its own words. A block that starts with a marker says what that stands
for in every dialect: columns, or rows, that many statements ask for. It may have markers of blocks after it.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "queries"
_HEAD: Final = re.compile(r"(?:\A|\n\n)-- ([a-z_]+|\{\{[a-z_]+\}\}): ")
_COMMENT: Final = re.compile(r"\s*--[^\n]*")
_PARAMETER: Final = re.compile(r"\$(\d+)")
_MARKER: Final = re.compile(r"\s*\{\{([a-z_]+)\}\}")


@cache
def statements() -> Mapping[str, str]:
    """Every statement of the house by its name, without comments."""
    found: dict[str, str] = {}
    for file in sorted(FOLDER.glob("*.sql")):
        for name, text in _parse(file.read_text(encoding="utf-8")):
            assert name not in found, f"{file.name} names {name} a second time"
            found[name] = text
    columns = {name: text for name, text in found.items() if name.startswith("{{")}
    return {name: _with_columns(text, columns) for name, text in found.items() if name not in columns}


def _with_columns(text: str, columns: Mapping[str, str]) -> str:
    for marker, names in columns.items():
        text = text.replace(marker, names)
    return text


def _parse(text: str) -> Iterator[tuple[str, str]]:
    _, *parts = _HEAD.split(text)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        # What is left of the first line is the promise, a comment like the ones below it.
        yield name, without_comments(f"--{body}").strip().removesuffix(";")


def without_comments(text: str) -> str:
    """The SQL alone. Our texts have no literal with two dashes in it."""
    return _COMMENT.sub("", text)


def split(script: str) -> list[str]:
    """The statements of a script. Our texts have no literal with a semicolon in it."""
    return [part.strip() for part in without_comments(script).split(";") if part.strip()]


def rendered(markers: Mapping[str, str], parameter: str) -> dict[str, str]:
    """Every statement as a dialect wants it: its words for the markers, its sign before a parameter's number."""
    return {name: _render(text, markers, parameter) for name, text in statements().items()}


def _render(text: str, markers: Mapping[str, str], parameter: str) -> str:
    spoken = _MARKER.sub(lambda marker: _spaced(markers[marker[1]]), text)
    return _PARAMETER.sub(lambda number: f"{parameter}{number[1]}", spoken)


def _spaced(words: str) -> str:
    return f" {words}" if words else ""

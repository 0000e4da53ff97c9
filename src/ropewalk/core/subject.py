"""Subjects of events: words with dots between them, and patterns of such."""

import re
from typing import Final

LONGEST_NAME: Final = 255
"""Of subjects, and of the names of signals."""

_WORD = r"[A-Za-z0-9_-]+"
_SUBJECT = re.compile(rf"{_WORD}(\.{_WORD})*")
PATTERN = rf"^(({_WORD}|\*)\.)*({_WORD}|\*|>)$"
"""What a pattern looks like, for schemas."""
_PATTERN = re.compile(PATTERN)


def is_subject(text: str) -> bool:
    """Whether an event can have this subject."""
    return len(text) <= LONGEST_NAME and _SUBJECT.fullmatch(text) is not None


def is_pattern(text: str) -> bool:
    """Whether there is a subject that fits."""
    return _PATTERN.fullmatch(text) is not None


def matches(pattern: str, subject: str) -> bool:
    """Whether the subject fits: `*` stands for one word, `>` at the end for one or more."""
    wanted, words = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(words) <= len(wanted):
            return False
        words = words[: len(wanted)]
    return len(wanted) == len(words) and all(part in ("*", word) for part, word in zip(wanted, words, strict=True))

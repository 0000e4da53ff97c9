"""The traceback of what a node raised, in Python's own form, so that people and editors know it.

It is bounded for any depth of the stack, length of the chain of causes and size of the texts: the first and the last
frames of the node's own code are kept, the engine's on the way to it are left out. Each text is masked before it is
cut, since half of a secret would not be known again.
"""

import linecache
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Final

LONGEST: Final = 8_000
FIRST_FRAMES: Final = 10
LAST_FRAMES: Final = 30
MOST_CAUSES: Final = 4
MOST_NOTES: Final = 5
LONGEST_LINE: Final = 300
LONGEST_TEXT: Final = 1_000
BEYOND: Final = 4_096
"""A secret that begins before the cut and has so many characters at most is masked as a whole."""
MOST_LOOKED_AT: Final = 1_000
"""So many causes of causes are followed at most."""

_HEAD: Final = "Traceback (most recent call last):\n"
_DIRECT: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_WHILE: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"
_OURS: Final = str(Path(__file__).parent.parent)

Mask = Callable[[str], str]
Describe = Callable[[BaseException], str]


def as_it_is(text: str) -> str:
    """Masks nothing."""
    return text


def is_from_outside(raised: BaseException) -> bool:
    """Whether code that is not the engine's own had a part in raising this."""
    return any(not _is_ours(each) for each in _walk(raised.__traceback__))


def traceback_of(raised: BaseException, describe: Describe, mask: Mask = as_it_is) -> str:
    """The traceback, its causes first, as Python prints it; `describe` says an exception in one text."""
    causes = list(reversed(_chain(raised)))
    left_out = len(causes) - MOST_CAUSES
    if left_out > 0:
        # The root, which people look for, and what was made of it in the end.
        half = MOST_CAUSES // 2
        causes = [*causes[:half], *causes[-half:]]
    room = LONGEST // len(causes)
    parts = [_one(each, link, describe, mask, room) for each, link in causes]
    if left_out > 0:
        parts.insert(MOST_CAUSES // 2, f"\n… {left_out:,} exceptions left out …\n")
    return "".join(parts).removesuffix("\n")


def _chain(raised: BaseException) -> list[tuple[BaseException, str]]:
    """What was raised and what it came from, each with the words that lead from its own cause to it."""
    found: list[tuple[BaseException, str]] = []
    seen: dict[int, None] = {}
    current: BaseException | None = raised
    while current is not None and id(current) not in seen and len(found) < MOST_LOOKED_AT:
        seen[id(current)] = None
        before = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        link = "" if before is None else _DIRECT if current.__cause__ is not None else _WHILE
        found.append((current, link))
        current = before
    return found


def _one(raised: BaseException, link: str, describe: Describe, mask: Mask, room: int) -> str:
    """One exception of the chain, in so many characters."""
    told = [_masked(each, LONGEST_TEXT, mask) for each in (describe(raised), *_notes(raised))]
    end = _cut("\n".join(told), room // 2) + "\n"
    frames = _fitting(_frames(raised, mask), room - len(link) - len(_HEAD) - len(end))
    return "".join((link, _HEAD if frames else "", *frames, end))


def _notes(raised: BaseException) -> list[str]:
    notes = raised.__dict__.get("__notes__")
    return [note for note in notes if isinstance(note, str)][:MOST_NOTES] if isinstance(notes, list) else []


def _frames(raised: BaseException, mask: Mask) -> tuple[list[str], list[str], int]:
    """The first and the last frames of the node's own code as text, and how many are between them."""
    first: list[TracebackType] = []
    last: deque[TracebackType] = deque(maxlen=LAST_FRAMES)
    between, outside = 0, is_from_outside(raised)
    for each in _walk(raised.__traceback__):
        if outside and _is_ours(each):
            continue
        if len(first) < FIRST_FRAMES:
            first.append(each)
        else:
            between += len(last) == LAST_FRAMES
            last.append(each)
    for name in dict.fromkeys(each.tb_frame.f_code.co_filename for each in (*first, *last)):
        linecache.checkcache(name)
    return [_frame(each, mask) for each in first], [_frame(each, mask) for each in last], between


def _walk(found: TracebackType | None) -> Iterator[TracebackType]:
    while found is not None:
        yield found
        found = found.tb_next


def _is_ours(found: TracebackType) -> bool:
    return found.tb_frame.f_code.co_filename.startswith(_OURS)


def _frame(found: TracebackType, mask: Mask) -> str:
    """One frame as Python prints it, without the marks below its source: they take a parser on the loop."""
    code, source = found.tb_frame.f_code, _source(found)
    lines = [f'  File "{code.co_filename}", line {found.tb_lineno}, in {code.co_name}', *([source] if source else [])]
    return "".join(f"{_masked(line, LONGEST_LINE, mask)}\n" for line in lines)


def _source(found: TracebackType) -> str:
    name = found.tb_frame.f_code.co_filename
    try:
        line = linecache.getline(name, found.tb_lineno, found.tb_frame.f_globals).strip()
    except Exception:  # noqa: BLE001 -- the loader of a node's module may raise anything
        return ""
    return f"    {line}" if line else ""


def _fitting(frames: tuple[list[str], list[str], int], room: int) -> Sequence[str]:
    """As many frames as there is room for, the last ones before the first ones; it is said how many are missing."""
    first, last, between = frames
    if not between and sum(map(len, chain(first, last))) <= room:
        return [*first, *last]
    every, room = [*first, *last], room - len(_missing(10**6))
    end, begin = len(every), 0
    while begin < end:
        # Two of the last for each of the first: what went wrong is there.
        is_last = not last or (len(every) - end) <= 2 * begin
        size = len(every[end - 1] if is_last else every[begin])
        if size > room:
            break
        room -= size
        end, begin = (end - 1, begin) if is_last else (end, begin + 1)
    missing = between + end - begin
    return [*every[:begin], *([_missing(missing)] if missing else []), *every[end:]]


def _missing(count: int) -> str:
    return f"  … {count:,} frames left out …\n"


def _masked(text: str, longest: int, mask: Mask) -> str:
    """So much of a text, masked; what is far beyond the cut is not looked at."""
    return _cut(mask(text[: longest + BEYOND]), longest)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"

"""Which paths below a folder a pattern names, found in bounded work."""

import fnmatch
import re
from collections.abc import Iterator
from typing import Final

from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.folder import DEEPEST, MOST_SEEN, Folder, Found

LONGEST_PATTERN: Final = 500
ANY: Final = "**"


def pattern_problem(pattern: str) -> str | None:
    """Why a text is no pattern, if it is none."""
    parts = pattern.split("/")
    if any(part in ("", ".", "..") for part in parts):
        return "must be a pattern of paths below the folder, like **/*.csv: no / in front, no . or .. in it"
    if any(ANY in part and part != ANY for part in parts):
        return "** must be a part of its own, like **/*.csv"
    return "has too many parts" if len(parts) > DEEPEST else None


def listed(folder: Folder, path: str, pattern: str, limit: int, *, folders: bool) -> tuple[list[Found], bool]:
    """What is found, in the order of the paths, and whether there is more."""
    found: list[Found] = []
    for each in _walk(folder, path, [_part(part) for part in pattern.split("/")]):
        if each.is_folder and not folders:
            continue
        if len(found) == limit:
            return found, True
        found.append(each)
    return found, False


def _part(part: str) -> re.Pattern[str] | None:
    return None if part == ANY else re.compile(fnmatch.translate(part))


Places = frozenset[int]
"""How many parts of the pattern may be behind us."""


def _walk(folder: Folder, path: str, parts: list[re.Pattern[str] | None]) -> Iterator[Found]:
    # The last is the next: folders are gone into where they stand in the order.
    waiting = [(each, _first(parts)) for each in reversed(folder.entries(path))]
    seen = len(waiting)
    while waiting:
        each, places = waiting.pop()
        left = _after(parts, places, each.path.rpartition("/")[2])
        if len(parts) in left:
            yield each
        if each.is_folder and any(place < len(parts) for place in left) and each.path.count("/") < DEEPEST:
            try:
                inside = folder.entries(each.path)
            except FileNotFoundError:
                continue  # it was removed meanwhile
            seen += len(inside)
            if seen > MOST_SEEN:
                raise NodeFailure.permanent(f"there are more than {MOST_SEEN:,} files: list a folder further down")
            waiting += [(inner, left) for inner in reversed(inside)]


def _first(parts: list[re.Pattern[str] | None]) -> Places:
    return _closed(parts, {0})


def _after(parts: list[re.Pattern[str] | None], places: Places, name: str) -> Places:
    """Where in the pattern a path may be, one part further."""
    reached: set[int] = set()
    for place in places:
        if place < len(parts):
            part = parts[place]
            if part is None:
                reached.add(place)
            elif part.match(name):
                reached.add(place + 1)
    return _closed(parts, reached)


def _closed(parts: list[re.Pattern[str] | None], places: set[int]) -> Places:
    """`**` may stand for no part at all."""
    found = set(places)
    for place in range(len(parts)):
        if place in found and parts[place] is None:
            found.add(place + 1)
    return frozenset(found)

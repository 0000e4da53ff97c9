"""Dot paths into JSON: `customer.city`, `lines[0].sku`, `lines.0.sku`, `["a.b"].c`.

A step into an object is a key, a step into a list is a place, from the end where it is negative. Looking up where
nothing is gives `MISSING`, never an error.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, Field

JSON: TypeAlias = Any
Steps = tuple[str, ...]

LONGEST_PATH = 500
MOST_STEPS = 32

_STEP = re.compile(r"""\.?(?:([^.\[\]"]+)|\[(-?[0-9]{1,9})\]|\["((?:[^"\\]|\\.)*)"\])""")
_ESCAPE = re.compile(r"\\(.)")
_PLACE = re.compile(r"-?[0-9]{1,9}")


class Missing:
    """What stands for a value that is not there; null is there."""

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing()


@lru_cache(maxsize=4096)
def steps_of(path: str) -> Steps:
    """The steps of a path; ValueError if it is none."""
    steps: list[str] = []
    end = 0
    while end < len(path) and len(steps) <= MOST_STEPS:
        found = _STEP.match(path, end)
        # A dot stands between two steps, and nowhere else; before a bracket there may be none.
        if found is None or (path[end] == ".") != (bool(steps) and found[1] is not None):
            break
        name, place, quoted = found.groups()
        steps.append(name or place or _ESCAPE.sub(r"\1", quoted))
        end = found.end()
    if end < len(path) or not steps:
        raise ValueError('is no path; write it like customer.city, lines[0].sku or ["a key with dots"]')
    return tuple(steps)


def _a_path(text: str) -> str:
    steps_of(text)
    return text


FieldPath = Annotated[str, Field(min_length=1, max_length=LONGEST_PATH), AfterValidator(_a_path)]
"""A path as a parameter."""


def find(value: JSON, steps: Steps) -> JSON:
    """What lies at the end of the steps, or MISSING."""
    for step in steps:
        if isinstance(value, dict):
            value = value.get(step, MISSING)
        elif isinstance(value, list) and (place := _place(value, step)) is not None:
            value = value[place]
        else:
            return MISSING
    return value


def getter(path: str) -> Callable[[JSON], JSON]:
    """What looks a path up in one value after the other; null where nothing is."""
    steps = steps_of(path)
    if len(steps) == 1:
        [name] = steps
        return lambda value: value.get(name) if type(value) is dict else _or_null(find(value, steps))
    return lambda value: _or_null(find(value, steps))


def _or_null(found: JSON) -> JSON:
    return None if found is MISSING else found


def put(value: JSON, path: str, new: JSON) -> None:
    """Sets what lies at a path, in place; objects are made on the way. ValueError where a step cannot be taken."""
    *way, last = steps_of(path)
    for step in way:
        value = _entered(value, step)
    if isinstance(value, dict):
        value[last] = new
    elif isinstance(value, list) and (place := _place(value, last)) is not None:
        value[place] = new
    elif isinstance(value, list) and last == str(len(value)):
        value.append(new)
    else:
        raise ValueError(_no_way(value, last))


def _entered(value: JSON, step: str) -> JSON:
    """What a step leads into, which is made if it is not there."""
    if isinstance(value, dict):
        if value.get(step) is None:
            value[step] = {}
        return value[step]
    if isinstance(value, list) and (place := _place(value, step)) is not None:
        return value[place]
    raise ValueError(_no_way(value, step))


def _no_way(value: JSON, step: str) -> str:
    if isinstance(value, list):
        return f"the list has {len(value)} items, and no place {step[:64]!r}"
    return f"there is no {step[:64]!r} in what is neither an object nor a list"


def drop(value: JSON, path: str) -> None:
    """Removes what lies at a path, in place; nothing happens where nothing is."""
    *way, last = steps_of(path)
    holder = find(value, tuple(way))
    if isinstance(holder, dict):
        holder.pop(last, None)
    elif isinstance(holder, list) and (place := _place(holder, last)) is not None:
        del holder[place]


def kept(value: JSON, paths: list[str]) -> dict[str, JSON]:
    """An object with what lies at these paths, and nothing else."""
    made: dict[str, JSON] = {}
    for path in paths:
        found = find(value, steps_of(path))
        if found is not MISSING:
            put(made, path, found)
    return made


def last_step(path: str) -> str:
    """The name of what a path leads to."""
    return steps_of(path)[-1]


def _place(value: list[JSON], step: str) -> int | None:
    if not _PLACE.fullmatch(step):
        return None
    place = int(step)
    return place if -len(value) <= place < len(value) else None

"""Functions on text."""

from typing import Any, Final

from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.functions.table import Topic
from ropewalk.core.expression.run import Run
from ropewalk.core.expression.values import JSON, render, text_size

TEXT: Final = Topic("Text")
_PIECE: Final = 64


@TEXT.function("upper(value: text) -> text", "All letters as capitals.", 'upper("Grüße")', "GRÜSSE")
def upper(run: Run, value: str) -> str:
    run.scan(len(value))
    run.allocate(text_size(value))
    return value.upper()


@TEXT.function("lower(value: text) -> text", "All letters as small ones.", 'lower("ABC")', "abc")
def lower(run: Run, value: str) -> str:
    run.scan(len(value))
    run.allocate(text_size(value))
    return value.lower()


@TEXT.function("capitalize(value: text) -> text", "The first letter as a capital.", 'capitalize("ada l.")', "Ada l.")
def capitalize(run: Run, value: str) -> str:
    run.allocate(text_size(value))
    return value[:1].upper() + value[1:]


@TEXT.function("trim(value: text) -> text", "Without white space at both ends.", 'trim("  a b ")', "a b")
def trim(run: Run, value: str) -> str:
    run.allocate(text_size(value))
    return value.strip()


@TEXT.function(
    "starts_with(value: text, part: text) -> boolean", "Whether it begins so.", 'starts_with("abc", "ab")', True
)
def starts_with(run: Run, value: str, part: str) -> bool:
    run.scan(len(part))
    return value.startswith(part)


@TEXT.function(
    "ends_with(value: text, part: text) -> boolean", "Whether it ends so.", 'ends_with("a.pdf", ".pdf")', True
)
def ends_with(run: Run, value: str, part: str) -> bool:
    run.scan(len(part))
    return value.endswith(part)


@TEXT.function(
    "index_of(value: text, part: text) -> integer or null",
    "Where the part first stands, from 0; null if nowhere.",
    'index_of("a-b", "-")',
    1,
)
def index_of(run: Run, value: str, part: str) -> int | None:
    run.scan(len(value))
    found = value.find(part)
    return None if found < 0 else found


@TEXT.function(
    "replace(value: text, old: text, new: text) -> text",
    "Every `old` replaced.",
    'replace("a-b-c", "-", "/")',
    "a/b/c",
)
def replace(run: Run, value: str, old: str, new: str) -> str:
    if not old:
        raise Refused("replace needs a text to look for")
    run.scan(2 * len(value))
    run.allocate(text_size(value) + value.count(old) * text_size(new))
    return value.replace(old, new)


@TEXT.function(
    "split(value: text, separator: text) -> list", "The parts between separators.", 'split("a,b", ",")', ["a", "b"]
)
def split(run: Run, value: str, separator: str) -> list[str]:
    if not separator:
        raise Refused("split needs a separator")
    run.scan(2 * len(value))
    pieces = 1 + value.count(separator)
    run.walk(pieces)
    run.allocate(text_size(value) + _PIECE * pieces)
    return value.split(separator)


@TEXT.function("join(items: list, separator?: text) -> text", "The items as one text.", 'join(["a", 1], ", ")', "a, 1")
def join(run: Run, items: list[JSON], separator: str = "") -> str:
    run.charge(len(items))
    parts = [render(run, item) for item in items]
    run.allocate(sum(map(text_size, parts)) + len(parts) * text_size(separator))
    return separator.join(parts)


@TEXT.function("repeat(value: text, times: integer) -> text", "The text so many times.", 'repeat("ab", 3)', "ababab")
def repeat(run: Run, value: str, times: int) -> str:
    run.allocate(max(0, times) * text_size(value))
    return value * times


@TEXT.function(
    "pad_start(value: text, width: integer, fill?: text) -> text",
    "Filled up on the left to a width.",
    'pad_start("7", 3, "0")',
    "007",
)
def pad_start(run: Run, value: str, width: int, fill: str = " ") -> str:
    return value.rjust(_padded(run, value, width, fill), fill)


@TEXT.function(
    "pad_end(value: text, width: integer, fill?: text) -> text",
    "Filled up on the right to a width.",
    'pad_end("ab", 4, ".")',
    "ab..",
)
def pad_end(run: Run, value: str, width: int, fill: str = " ") -> str:
    return value.ljust(_padded(run, value, width, fill), fill)


def _padded(run: Run, value: str, width: int, fill: str) -> int:
    if len(fill) != 1:
        raise Refused("padding fills with one character")
    size = max(len(value), width)
    run.allocate(size if value.isascii() and fill.isascii() else 2 * size)
    return size


@TEXT.function(
    "length(value: text or list or object or null) -> integer",
    "Characters of a text, items of a list, keys of an object; 0 for null.",
    'length("añb")',
    3,
)
def length(run: Run, value: Any) -> int:
    return 0 if value is None else len(value)


@TEXT.function(
    "slice(value: text or list, start: integer, end?: integer) -> text or list",
    "From `start` to before `end`; negative numbers count from the end.",
    'slice("abcdef", 1, -1)',
    "bcde",
)
def cut(run: Run, value: Any, start: int, end: int | None = None) -> Any:
    first, last, _ = slice(start, end).indices(len(value))
    run.allocate(8 * max(0, last - first) if isinstance(value, list) else text_size(value))
    return value[first:last]

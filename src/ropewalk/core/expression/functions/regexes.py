"""Functions on regular expressions, by RE2, which is linear in the subject. Linear is not yet bounded:

- a search costs at worst (its slow engine) about 7 ns for each instruction of the program and byte of the subject;
- a search for the next match may read to the end of the subject each time, so that all matches are quadratic;
- compiling costs up to a millisecond and memory up to `_MEMORY`, kept in RE2's own cache.

So each search is paid for at its worst before it is made, and a pattern when an evaluation first uses it.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import re2

from ropewalk.core.expression.faults import Refused
from ropewalk.core.expression.functions.table import Topic
from ropewalk.core.expression.run import Run
from ropewalk.core.expression.values import shown, text_size, utf8

REGEX: Final = Topic("Regular expressions")
MAX_PATTERN: Final = 512
MAX_SUBJECT: Final = 1 << 16
MAX_WORK: Final = 3_000_000
_MEMORY: Final = 1 << 17
_COMPILING: Final = 500
# Up to here, and without groups, the automaton always fits the memory: its fast engine never gives up.
_SMALL_PROGRAM: Final = 16
_GROUP = re.compile(r"\$([0-9$])")


def _options(has_groups: bool) -> Any:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    options.never_capture = not has_groups
    return options


_WITH_GROUPS: Final = _options(has_groups=True)
_WITHOUT_GROUPS: Final = _options(has_groups=False)


@REGEX.function(
    "matches(value: text, pattern: regex) -> boolean",
    "Whether the pattern is found; anchor it with ^ and $ for the whole text.",
    'matches("AB-12", "^[A-Z]+-[0-9]+$")',
    True,
    cost=8,
)
def matches(run: Run, value: str, pattern: str) -> bool:
    return next(_found(run, value, pattern), None) is not None


@REGEX.function(
    "match(value: text, pattern: regex) -> list or null",
    "The first match: all of it, then its groups; null if none.",
    'match("AB-12", "([A-Z]+)-([0-9]+)")',
    ["AB-12", "AB", "12"],
    cost=10,
)
def match(run: Run, value: str, pattern: str) -> list[str | None] | None:
    found = next(_found(run, value, pattern, has_groups=True), None)
    if found is None:
        return None
    run.allocate(text_size(value))
    return [found.group(), *found.groups()]


@REGEX.function(
    "find_all(value: text, pattern: regex) -> list", "Every match.", 'find_all("a1b22", "[0-9]+")', ["1", "22"], cost=10
)
def find_all(run: Run, value: str, pattern: str) -> list[str]:
    run.allocate(text_size(value))
    return [found.group() for found in _found(run, value, pattern)]


@REGEX.function(
    "regex_replace(value: text, pattern: regex, replacement: text) -> text",
    "Every match replaced; $1 … $9 stand for groups, $0 for the match, $$ for a dollar sign.",
    'regex_replace("ada byron", "([a-z]+) ([a-z]+)", "$2, $1")',
    "byron, ada",
    cost=12,
)
def regex_replace(run: Run, value: str, pattern: str, replacement: str) -> str:
    pieces: list[str] = []
    end = 0
    for found in _found(run, value, pattern, has_groups="$" in replacement):
        piece = _filled(run, replacement, found)
        run.allocate(text_size(piece))
        pieces += (value[end : found.start()], piece)
        end = found.end()
    pieces.append(value[end:])
    run.allocate(sum(map(text_size, pieces)))
    return "".join(pieces)


def _filled(run: Run, replacement: str, found: Any) -> str:
    if "$" not in replacement:
        return replacement
    groups = [found.group(), *found.groups()]
    marks = _GROUP.findall(replacement)
    run.charge(len(marks))
    run.allocate(text_size(replacement) + sum(text_size(_group(groups, mark)) for mark in marks))
    return _GROUP.sub(lambda mark: _group(groups, mark[1]), replacement)


def _group(groups: list[str | None], mark: str) -> str:
    if mark == "$":
        return "$"
    if int(mark) >= len(groups):
        raise Refused(f"the pattern has no group ${mark}")
    return groups[int(mark)] or ""


def check_pattern(pattern: str) -> None:
    """Refuse a pattern RE2 cannot compile."""
    _compiled(pattern, has_groups=True)


def _found(run: Run, value: str, pattern: str, *, has_groups: bool = False) -> Iterator[Any]:
    subject = len(utf8(value))
    if subject > MAX_SUBJECT:
        raise Refused("regular expressions take a text of at most 64 KiB")
    program = _program(run, pattern, has_groups)
    size = program.programsize
    price = 1 if size <= _SMALL_PROGRAM and not has_groups else size
    _pay(run, price * subject)
    for found in program.finditer(value):
        yield found
        run.charge(10 if has_groups else 4)
        _pay(run, price * (subject - found.end()))


def _pay(run: Run, work: int) -> None:
    run.charge(work >> 8)
    run.regex_work += work
    if run.regex_work > MAX_WORK:
        raise Refused("the regular expression takes too long on this text; use a simpler one or a shorter text")


def _program(run: Run, pattern: str, has_groups: bool) -> Any:
    if run.patterns is None:
        run.patterns = {}
    key = (pattern, has_groups)
    if key not in run.patterns:
        run.charge(_COMPILING)
        run.patterns[key] = _compiled(pattern, has_groups)
    return run.patterns[key]


def _compiled(pattern: str, has_groups: bool) -> Any:
    if len(pattern) > MAX_PATTERN:
        raise Refused(f"regular expressions are at most {MAX_PATTERN} characters long")
    utf8(pattern)
    try:
        return re2.compile(pattern, _WITH_GROUPS if has_groups else _WITHOUT_GROUPS)
    except re2.error as error:
        raise Refused(f"cannot use the pattern {shown(pattern)}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else "unknown"
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)

"""A reason why something is not running: a code for programs, a sentence for people, and what helps."""

import shlex
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct

from ropewalk.core.duration import SECOND, format_duration
from ropewalk.core.instant import rfc3339

Json = dict[str, Any]
FEW: Final = 5
"""How many of anything a reason names; the rest it counts."""

_LONGEST: Final = 160
_DAY: Final = slice(0, 10)
_TO_THE_SECOND: Final = slice(0, 19)
_SUFFIXES: Final = {1: "st", 2: "nd", 3: "rd"}


class Cause(StrEnum):
    """Every reason there is; the names are part of the API."""

    # An execution that has not got, or lost, what it needs to start nodes
    CAPACITY = "CAPACITY"
    CONCURRENCY_KEY = "CONCURRENCY_KEY"
    NOT_BEFORE = "NOT_BEFORE"
    CLAIMED = "CLAIMED"
    DISPATCH_FAILED = "DISPATCH_FAILED"
    WORKERS_FULL = "WORKERS_FULL"
    TURN = "TURN"
    NO_WORKER = "NO_WORKER"
    OWNER_LOST = "OWNER_LOST"
    SET_ASIDE = "SET_ASIDE"
    UNREADABLE = "UNREADABLE"
    # An execution that was stopped, or that is over
    PAUSED = "PAUSED"
    ENDING = "ENDING"
    ENDED = "ENDED"
    UNREAD_SIGNALS = "UNREAD_SIGNALS"
    CLOSING = "CLOSING"
    # A node that waits for something to happen
    TIMER = "TIMER"
    APPROVAL = "APPROVAL"
    SIGNAL = "SIGNAL"
    EVENT = "EVENT"
    CHILD = "CHILD"
    BREAKER = "BREAKER"
    RATE_LIMIT = "RATE_LIMIT"
    BUDGET = "BUDGET"
    NODE_TYPE = "NODE_TYPE"
    RETRY = "RETRY"
    ROUND = "ROUND"
    # A node that could run but for other executions
    PREDECESSORS = "PREDECESSORS"
    EXECUTION = "EXECUTION"
    MAX_PARALLEL = "MAX_PARALLEL"
    MAP_CONCURRENCY = "MAP_CONCURRENCY"
    NO_WORKER_IN_POOL = "NO_WORKER_IN_POOL"
    WORKER_FULL = "WORKER_FULL"
    ATTEMPT_LOST = "ATTEMPT_LOST"
    # Nothing keeps it
    RUNNING = "RUNNING"
    ITEMS = "ITEMS"
    # A node that is over
    SUCCESS = "SUCCESS"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    BLOCKED = "BLOCKED"


class Reason(Struct, frozen=True, rename="camel"):
    """Why; `command` is what to type after `ropewalk`, `action` what else helps. `node` if it is a node's."""

    code: Cause
    why: str
    waits_for: Json = {}
    command: str | None = None
    action: str | None = None
    node: str | None = None
    item: int | None = None

    def json(self) -> Json:
        built: Json = msgspec.to_builtins(self)
        return built


def command(*words: str) -> str:
    """A command line, its words quoted where they need it."""
    return shlex.join(words)


def clock(at: int, now: int) -> str:
    """A moment for a sentence, to the second: `12:03:10Z` if it is today, else with its day."""
    text = f"{rfc3339(at)[_TO_THE_SECOND]}Z"
    is_today = text[_DAY] == rfc3339(now)[_DAY]
    return text[11:] if is_today else text


def lapse(length: int) -> str:
    """A length of time for a sentence: whole seconds once there are any."""
    length = max(0, length)
    return format_duration(length - length % (SECOND if length >= SECOND else SECOND // 1000))


def brief(text: object) -> str:
    """The beginning of a user's text, on one line."""
    words = " ".join(str(text).split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def few(names: Sequence[str]) -> str:
    """The first of many names, and how many more there are."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more


def nth(number: int) -> str:
    """`1st`, `2nd`, `11th`."""
    is_teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if is_teen else _SUFFIXES.get(number % 10, 'th')}"


def count(number: int, noun: str) -> str:
    """`1 slot`, `2 slots`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"

"""What a node may wait for without holding a worker.

A node type returns one of these instead of an output; the core keeps it, and ends the node when what it
waits for has come. So `delay`, `approval` or `subworkflow` are ordinary node types, and a third party's
node may wait too.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.canonical import is_text, writable


class _Wait(Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="for", gc=False):
    pass


class Timer(_Wait, frozen=True, tag="timer"):
    """Until a moment (µs since the epoch)."""

    due: int


class Approval(_Wait, frozen=True, tag="approval"):
    """Until a person says yes or no."""

    title: str
    details: Any = None


class EventWait(_Wait, frozen=True, tag="event"):
    """Until a matching event is published, counted from now. `scope` has what the filter reads besides the event."""

    subject: str
    filter: str | None = None
    scope: dict[str, Any] | None = None


class SignalWait(_Wait, frozen=True, tag="signal"):
    """Until this execution is told `name`; what was told earlier and not yet used counts."""

    name: str


class ChildWait(_Wait, frozen=True, tag="child"):
    """Until a child execution ends."""

    child: str
    workflow: str
    input: Any = None
    version: int | None = None


class BreakerWait(_Wait, frozen=True, tag="breaker"):
    """Until the target may be tried again; the attempt then goes on and none is used up."""

    target: str
    due: int


class TypeWait(_Wait, frozen=True, tag="nodeType"):
    """Until a worker that knows the node type may be found; the attempt then goes on and none is used up."""

    type: str
    due: int


class RateLimitWait(_Wait, frozen=True, tag="rateLimit"):
    """Until shortly before the attempt's slot of a rate limit; the attempt then goes on and none is used up.

    `limit` is the one that puts it off the most, `held` are those of which it has the slot. Without a slot it asks
    again then: no slot could be had, or no worker knew the limit.
    """

    limit: str
    due: int
    slot: int | None = None
    held: tuple[str, ...] = ()


class BudgetWait(_Wait, frozen=True, tag="budget"):
    """Until the execution is resumed, which has paused itself: its models have `spent` all that is `allowed`.

    The attempt then goes on and none is used up.
    """

    what: str
    spent: float
    allowed: float
    due: int


Hold = BreakerWait | TypeWait | RateLimitWait | BudgetWait
"""What keeps an attempt from beginning, rather than from ending: it goes on under its number."""
Wait = Timer | Approval | EventWait | SignalWait | ChildWait | Hold


def writable_wait(wait: Wait) -> Wait:
    """A wait as every store keeps it: its names and titles; values are JSON, which can say anything."""
    texts = {name: text for name in wait.__struct_fields__ if isinstance(text := getattr(wait, name), str)}
    odd = {name: writable(text) for name, text in texts.items() if not is_text(text)}
    return replace(wait, **odd) if odd else wait

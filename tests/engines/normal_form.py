"""What two engines must agree on about the same story: per node and item the facts in their order, and the execution's
own facts. When something happened, ids, and the order across nodes may differ, and which starts were one event.
"""

import re
from collections import defaultdict
from typing import Any

import msgspec

from ropewalk.core.events import Event, ItemsGivenUp, ItemsStarted, NodesReset, NodesSkipped, NodesStarted
from ropewalk.service import reading
from ropewalk.store import auditing
from ropewalk.store.access import Reader

_TIMES = {"at", "due", "retryAt", "nextAt", "deadline", "graceUntil", "slot", "until"}
_IDS = {"trace", "once", "source", "hash"}
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Place = tuple[str, int | None] | None
"""A node or item; None for the execution as a whole."""


async def normal_forms(reader: Reader) -> list[str]:
    """The logs of a store, in no order that time has made."""
    ids = [execution async for execution in auditing.every_execution(reader)]
    return sorted([normal_form((await reading.recorded(reader, each)).events) for each in ids])


def normal_form(events: list[Event]) -> str:
    facts: defaultdict[Place, list[str]] = defaultdict(list)
    for event in events:
        for place in _places(event):
            facts[place].append(_fact(event))
    lines = [f"{place}: {' '.join(facts[place])}" for place in sorted(facts, key=str)]
    return "\n".join(lines)


def _places(event: Event) -> list[Place]:
    if isinstance(event, NodesStarted | NodesSkipped | NodesReset):
        return [(node, None) for node in event.nodes]
    if isinstance(event, ItemsStarted | ItemsGivenUp):
        return [(event.node, item) for item in event.items]
    node = getattr(event, "node", None)
    return [None if node is None else (node, getattr(event, "item", None))]


def _fact(event: Event) -> str:
    fields = msgspec.to_builtins(event)
    for told in ("nodes", "items"):
        if not isinstance(fields.get(told), dict):
            fields.pop(told, None)
    return _ID.sub("#", msgspec.json.encode(_without_times(fields), order="sorted").decode())


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_times(each) for name, each in value.items() if name not in _TIMES | _IDS}
    return [_without_times(each) for each in value] if isinstance(value, list | tuple) else value

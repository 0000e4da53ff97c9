"""What every engine must do, told once: a scenario is a plain async function that is given a world and asserts.

An engine's own test module runs every one of them in a world of its own and judges what the store has afterwards.
"""

import inspect
from collections.abc import Awaitable, Callable

from tests.engines.scenarios import (
    children,
    closing,
    durability,
    error_kinds,
    events,
    failures,
    graphs,
    limits,
    maps,
    rate_limits,
    rounds,
    speaking,
    verbs,
    waits,
)
from tests.engines.worlds import World

Scenario = Callable[[World], Awaitable[None]]


def _told_in(module: object) -> list[Scenario]:
    named = inspect.getmembers(module, inspect.iscoroutinefunction)
    mine = [each for name, each in named if each.__module__ == module.__name__ and not name.startswith("_")]
    return [each for each in mine if list(inspect.signature(each).parameters) == ["world"]]


SCENARIOS: list[Scenario] = [
    each
    for module in (
        graphs,
        failures,
        error_kinds,
        closing,
        rounds,
        maps,
        children,
        limits,
        rate_limits,
        waits,
        events,
        speaking,
        verbs,
        durability,
    )
    for each in _told_in(module)
]

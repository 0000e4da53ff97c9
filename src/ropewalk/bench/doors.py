"""W1 and W4 by the doors that users have: exactly the public calls, with floor and inside figures in the same run.

A door is a module `door_<name>` with a `DOOR`. Both of its functions take how many executions a round has, how many
rounds, how many seconds they may take, and the stores, and give the rounds of every contender.
"""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module

from msgspec import Struct

from ropewalk.bench.contenders import Broken
from ropewalk.bench.rounds import Measured
from ropewalk.bench.shapes import Shape
from ropewalk.bench.stores import STORES, Stores
from ropewalk.bench.workloads import Workload

Measure = Callable[[int, int, float, Stores], Measured]


class Door(Struct, frozen=True):
    """How the two workloads go by one door, on which stores; with shapes, what a profile in this process executes."""

    one_by_one: Measure
    at_once: Measure
    single: Shape | None = None
    diamond: Shape | None = None
    stores: tuple[str, ...] = STORES


def workloads(name: str, scale: float = 1.0) -> Mapping[str, Workload]:
    """W1 and W4 by this door; `scale` makes them smaller."""
    door = _door(name)
    singles, many = (max(2, round(size * scale)) for size in (200, 1_000))
    found = (
        Workload("W1", "one node, from the request to the result", singles, 15, partial(door.one_by_one, singles),
                 door.single, stores=door.stores),
        Workload("W4", "1,000 × (a → b, c, d → e)", many, 40, partial(door.at_once, many), door.diamond,
                 is_at_once=True, stores=door.stores),
    )  # fmt: skip
    return {each.name: each for each in found}


def _door(name: str) -> Door:
    # Imported when asked for: one door does without what the others need.
    try:
        door: Door = import_module(f"ropewalk.bench.door_{name}").DOOR
    except ModuleNotFoundError as error:
        raise Broken(f"the door {name} cannot be measured here: {error}") from error
    return door

"""The door of a fleet: `ropewalk up --no-dispatch`, one or two `ropewalk worker`, and `AsyncClient`, nothing else."""

from typing import Final

from ropewalk.bench import public, rounds
from ropewalk.bench.contenders import CONTENDERS
from ropewalk.bench.doors import Door
from ropewalk.bench.rounds import Measured, turns
from ropewalk.bench.rounds import _in_child as in_child
from ropewalk.bench.shapes import single
from ropewalk.bench.stores import POSTGRES, Stores

FLEETS: Final = {"fleet-1": 1, "fleet-2": 2}
"""How many workers each has."""


def one_by_one(repeats: int, turns_: int, seconds: float, stores: Stores) -> Measured:
    """W1 by the door with one worker, inside and on the floor."""
    measured: Measured = {"fleet-1": [], **{name: [] for name in CONTENDERS}}
    for _ in turns(turns_, seconds):
        with stores.fresh() as db, public.serving(db, "--no-dispatch", workers=1) as served:
            measured["fleet-1"].append(public.one_by_one(served, repeats, seconds))
        for name, found in rounds.one_by_one(single(), repeats, rounds.latency, 1, seconds, stores).items():
            measured[name] += found
    return measured


def at_once(executions: int, turns_: int, seconds: float, stores: Stores) -> Measured:
    """W4 by the door with one worker and with two, inside and on the floor."""
    measured: Measured = {name: [] for name in (*FLEETS, *CONTENDERS)}
    for _ in turns(turns_, seconds):
        for name, workers in FLEETS.items():
            with stores.fresh() as db, public.serving(db, "--no-dispatch", workers=workers) as served:
                measured[name].append(public.at_once(served, executions, seconds))
        for name in CONTENDERS:
            with stores.fresh() as db:
                measured[name].append(in_child(name, db, executions, seconds))
    return measured


DOOR: Final = Door(one_by_one, at_once, stores=(POSTGRES,))

"""The door of a fleet: `ropewalk up --no-dispatch`, one or two `ropewalk worker`, and `AsyncClient`, nothing else."""

from functools import partial
from typing import Final

from ropewalk.bench import public, rounds
from ropewalk.bench.contenders import CONTENDERS, FLEET_1, FLEET_2
from ropewalk.bench.doors import Door
from ropewalk.bench.figures import Round
from ropewalk.bench.rounds import Measured, turns
from ropewalk.bench.shapes import single
from ropewalk.bench.stores import POSTGRES, Stores


def one_by_one(repeats: int, turns_: int, seconds: float, stores: Stores) -> Measured:
    """W1 by the door with one worker, inside and on the floor; by the door also how soon an end is heard of."""
    measured: Measured = {FLEET_1: [], **{name: [] for name in CONTENDERS}}
    for _ in turns(turns_, seconds):
        with stores.fresh() as db, public.serving(db, "--no-dispatch", workers=1) as served:
            alone = public.one_by_one(served, repeats, seconds)
            measured[FLEET_1].append({**alone, **public.notices(served, repeats, seconds)})
        for name, found in rounds.one_by_one(single(), repeats, rounds.latency, 1, seconds, stores).items():
            measured[name] += found
    return measured


def at_once(executions: int, turns_: int, seconds: float, stores: Stores) -> Measured:
    """W4 by the door with one worker and with two, inside and on the floor."""
    fleets = {FLEET_1: partial(_at_once, 1), FLEET_2: partial(_at_once, 2)}
    return rounds.in_children(CONTENDERS, executions, turns_, seconds, stores, fleets)


def _at_once(workers: int, db: str, executions: int, seconds: float) -> Round:
    with public.serving(db, "--no-dispatch", workers=workers) as served:
        return public.at_once(served, executions, seconds)


DOOR: Final = Door(one_by_one, at_once, stores=(POSTGRES,))

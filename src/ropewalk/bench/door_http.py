"""The door of programs elsewhere: `ropewalk up`, `AsyncClient.start` by name and `result`, nothing else."""

from typing import Final

from ropewalk.bench import public, rounds
from ropewalk.bench.contenders import CONTENDERS, HTTP
from ropewalk.bench.doors import Door
from ropewalk.bench.figures import Round
from ropewalk.bench.rounds import Measured, turns
from ropewalk.bench.shapes import single
from ropewalk.bench.stores import Stores


def one_by_one(repeats: int, turns_: int, seconds: float, stores: Stores) -> Measured:
    """W1 by the door, inside and on the floor."""
    measured: Measured = {HTTP: [], **{name: [] for name in CONTENDERS}}
    for _ in turns(turns_, seconds):
        with stores.fresh() as db, public.serving(db) as served:
            measured[HTTP].append(public.one_by_one(served, repeats, seconds))
        for name, found in rounds.one_by_one(single(), repeats, rounds.latency, 1, seconds, stores).items():
            measured[name] += found
    return measured


def at_once(executions: int, turns_: int, seconds: float, stores: Stores) -> Measured:
    """W4 by the door, inside and on the floor."""
    return rounds.in_children(CONTENDERS, executions, turns_, seconds, stores, {HTTP: _at_once})


def _at_once(db: str, executions: int, seconds: float) -> Round:
    with public.serving(db) as served:
        return public.at_once(served, executions, seconds)


DOOR: Final = Door(one_by_one, at_once)

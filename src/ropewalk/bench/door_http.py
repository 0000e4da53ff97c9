"""The door of programs elsewhere: `ropewalk up`, `AsyncClient.start` by name and `result`, nothing else."""

from typing import Final

from ropewalk.bench import public, rounds
from ropewalk.bench.contenders import CONTENDERS
from ropewalk.bench.rounds import Measured, turns
from ropewalk.bench.rounds import _in_child as in_child
from ropewalk.bench.shapes import single
from ropewalk.bench.stores import Stores

HTTP: Final = "http"
SINGLES: Final = 200
MANY: Final = 1_000


def measure(rounds: int, seconds: float, stores: Stores) -> Measured:
    """W1 and W4 by this door; each round has the figures of both."""
    alone, together = one_by_one(SINGLES, rounds, seconds, stores), at_once(MANY, rounds, seconds, stores)
    return {name: [{**one, **many} for one, many in zip(alone[name], together[name], strict=False)] for name in alone}


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
    measured: Measured = {HTTP: [], **{name: [] for name in CONTENDERS}}
    for _ in turns(turns_, seconds):
        with stores.fresh() as db, public.serving(db) as served:
            measured[HTTP].append(public.at_once(served, executions, seconds))
        for name in CONTENDERS:
            with stores.fresh() as db:
                measured[name].append(in_child(name, db, executions, seconds))
    return measured

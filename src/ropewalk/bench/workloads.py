"""The workloads by name, and how large each is."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from msgspec import Struct

from ropewalk.bench import claiming, fleet, killing, queueing, rounds
from ropewalk.bench.figures import Figure, figures
from ropewalk.bench.rounds import Measured
from ropewalk.bench.shapes import Shape, chain, diamond, fan, single
from ropewalk.bench.stores import POSTGRES, STORES, Stores

ROUNDS: Final = 5
SINGLE_STARTS: Final = 20
API: Final = "API"
"""Measured when it is asked for: it takes as long as all the others."""


class Workload(Struct, frozen=True):
    """One thing to measure; `seconds` is what its rounds may take, `n` the executions of one round."""

    name: str
    about: str
    n: int
    seconds: float
    measure: Callable[[int, float, Stores], Measured]
    shape: Shape | None = None
    is_at_once: bool = False
    stores: tuple[str, ...] = STORES

    def figures(self, turns: int, stores: Stores) -> Iterator[Figure]:
        """The medians of so many rounds, or of as many as fit into the time."""
        measured = self.measure(turns, self.seconds * max(1, turns / ROUNDS), stores)
        for engine, found in measured.items():
            n = self.n * len(found) * fleet.SHARES.get(engine, 1)
            yield from figures(self.name, engine, stores.name, found, n)


def workloads(scale: float = 1.0) -> Mapping[str, Workload]:
    """Every workload; `scale` makes all of them smaller, for a look that is quick and says little."""

    def sized(size: int) -> int:
        return max(2, round(size * scale))

    found = (
        _one_by_one("W1", "one node, from the request to the result", single(), sized(200), 10, rounds.latency),
        _one_by_one("W2", "a chain of 40", chain(sized(40)), sized(5), 10, rounds.per_node),
        _one_by_one("W3", "one, then 100 at once, then one", fan(sized(100)), sized(10), 8, rounds.whole),
        _one_by_one("W3k", "one, then 1,000 at once, then one", fan(sized(1000)), sized(3), 12, rounds.whole),
        _at_once("W4", "1,000 × (a → b, c, d → e)", sized(1000), 25),
        Workload("W5", "kill −9 in a chain of 40 × 50 ms", 1, 15, partial(killing.killed, sized(40))),
        *_of_the_queue(sized),
        Workload(API, "starts over HTTP by 16 clients, and 20 starts/s to their first node", sized(60), 60,
                 partial(_over_http, sized(60))),
    )  # fmt: skip
    return {each.name: each for each in found}


def _over_http(starts: int, rounds: int, seconds: float, stores: Stores) -> Measured:
    # Here, since no other workload needs the web.
    from ropewalk.bench import api

    return api.starts(starts, rounds, seconds, stores)


def _of_the_queue(sized: Callable[[int], int]) -> Iterator[Workload]:
    starts, claims = sized(60), sized(50)
    yield Workload(
        "dispatch", "from acceptance to the first node, at 20 starts/s", starts, 7, partial(queueing.dispatch, starts)
    )
    yield Workload(
        "lease", "a claim, 4 workers contending", claims * claiming.CLAIMERS, 6, partial(claiming.lease, claims),
        stores=(POSTGRES,),
    )  # fmt: skip
    yield Workload("refill", "a freed slot of a full workspace is taken again", sized(100), 6,
                   partial(queueing.refill, sized(100)))  # fmt: skip
    yield Workload("fairness", "what 10,000 waiting in a full workspace cost a start in another", SINGLE_STARTS, 8,
                   partial(queueing.fairness, sized(10_000), SINGLE_STARTS))  # fmt: skip


def _one_by_one(name: str, about: str, shape: Shape, repeats: int, seconds: float, read: rounds.Reading) -> Workload:
    measure = partial(rounds.one_by_one, shape, repeats, read)
    return Workload(name, about, repeats, seconds, measure, shape)


def _at_once(name: str, about: str, executions: int, seconds: float) -> Workload:
    return Workload(name, about, executions, seconds, partial(rounds.at_once, executions), diamond(), is_at_once=True)

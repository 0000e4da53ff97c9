"""The workloads by name, and how large each is."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from msgspec import Struct

from ropewalk.bench import killing, rounds
from ropewalk.bench.figures import Figure, figures
from ropewalk.bench.rounds import Measured
from ropewalk.bench.shapes import Shape, chain, diamond, fan, single

ROUNDS: Final = 5


class Workload(Struct, frozen=True):
    """One thing to measure; `seconds` is what its rounds may take, `n` the executions of one round."""

    name: str
    about: str
    n: int
    seconds: float
    measure: Callable[[int, float, str], Measured]
    shape: Shape | None = None
    is_at_once: bool = False

    def figures(self, turns: int, store: str, folder: str) -> Iterator[Figure]:
        """The medians of so many rounds, or of as many as fit into the time."""
        measured = self.measure(turns, self.seconds * max(1, turns / ROUNDS), folder)
        for engine, found in measured.items():
            yield from figures(self.name, engine, store, found, self.n * len(found))


def workloads(scale: float = 1.0) -> Mapping[str, Workload]:
    """Every workload; `scale` makes all of them smaller, for a look that is quick and says little."""

    def sized(size: int) -> int:
        return max(2, round(size * scale))

    found = (
        _one_by_one("W1", "one node, from the request to the result", single(), sized(200), 15, rounds.latency),
        _one_by_one("W2", "a chain of 40", chain(sized(40)), sized(5), 15, rounds.per_node),
        _one_by_one("W3", "one, then 100 at once, then one", fan(sized(100)), sized(10), 10, rounds.whole),
        _one_by_one("W3k", "one, then 1,000 at once, then one", fan(sized(1000)), sized(3), 20, rounds.whole),
        _at_once("W4", "1,000 × (a → b, c, d → e)", sized(1000), 30),
        Workload(
            "W5", "kill −9 in a chain of 40 × 50 ms, restarted at once", 1, 25, partial(killing.killed, sized(40))
        ),
    )
    return {each.name: each for each in found}


def _one_by_one(name: str, about: str, shape: Shape, repeats: int, seconds: float, read: rounds.Reading) -> Workload:
    measure = partial(rounds.one_by_one, shape, repeats, read)
    return Workload(name, about, repeats, seconds, measure, shape)


def _at_once(name: str, about: str, executions: int, seconds: float) -> Workload:
    return Workload(name, about, executions, seconds, partial(rounds.at_once, executions), diamond(), is_at_once=True)

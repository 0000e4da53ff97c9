"""Counters and histograms that cost next to nothing to count with, shown in the words of Prometheus.

A busy worker counts a dozen things per execution. The client library's own figures take a lock for each, and walk
through a histogram's bounds one by one; these are written by one thread, the loop's, and may be read by any.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

Figure = TypeVar("Figure")


class Tally:
    """How often something happened."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def inc(self) -> None:
        """It happened once more."""
        self.count += 1


class Spread:
    """How many values there were up to each bound, and what they are together."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        # One more than there are bounds: for what is above all of them.
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """There was one more value, this one."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value


class _Labelled(Collector, Generic[Figure]):
    """The figures of one name, each under its labels' values; one without labels is there from the beginning."""

    def __init__(self, name: str, about: str, labels: Sequence[str], make: Callable[[], Figure]) -> None:
        self._about = (f"ropewalk_{name}", about)
        self._labels = labels
        self._make = make
        self._figures: dict[tuple[str, ...], Figure] = {} if labels else {(): make()}

    def labels(self, *values: str) -> Figure:
        """The one under these values."""
        found = self._figures.get(values)
        if found is None:
            found = self._figures[values] = self._make()
        return found


class Tallies(_Labelled[Tally]):
    """A counter."""

    def __init__(self, name: str, about: str, labels: Sequence[str] = ()) -> None:
        super().__init__(name, about, labels, Tally)

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(*self._about, labels=self._labels)
        for values, tally in list(self._figures.items()):
            family.add_metric(values, float(tally.count))
        yield family


class Spreads(_Labelled[Spread]):
    """A histogram."""

    def __init__(self, name: str, about: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> None:
        super().__init__(name, about, labels, lambda: Spread(bounds))
        self._bounds = [*(str(float(bound)) for bound in bounds), "+Inf"]

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(*self._about, labels=self._labels)
        for values, spread in list(self._figures.items()):
            buckets = list(zip(self._bounds, accumulate(spread.counts), strict=True))
            family.add_metric(values, buckets, spread.total)
        yield family

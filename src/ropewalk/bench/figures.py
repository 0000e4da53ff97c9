"""What was measured, as one line per figure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

UNITS: Mapping[str, str] = {
    "latency_ms_p50": "ms",
    "latency_ms_p95": "ms",
    "latency_ms_p99": "ms",
    "notice_ms_p95": "ms",
    "ms_per_node": "ms",
    "ms": "ms",
    "executions_per_s": "1/s",
    "nodes_per_s": "1/s",
    "peak_rss_mb": "MB",
    "seconds_lost": "s",
    "takeover_seconds": "s",
    "starts_per_s": "1/s",
    "dispatch_ms_p95": "ms",
    "lease_ms_p50": "ms",
    "lease_ms_p95": "ms",
    "refill_ms_p95": "ms",
    "fairness_ms": "ms",
}
Round = Mapping[str, float]
"""One round of one contender: its value by metric."""


class Figure(Struct, frozen=True):
    """The median of a few rounds; `n` is how many executions it rests on."""

    workload: str
    metric: str
    value: float
    unit: str
    n: int
    store: str
    engine: str


def figures(workload: str, engine: str, store: str, rounds: Sequence[Round], n: int) -> Iterator[Figure]:
    """The figures of one contender in one workload, in the order they were measured."""
    for metric in rounds[0]:
        value = round(statistics.median(each[metric] for each in rounds), 3)
        yield Figure(workload, metric, value, UNITS[metric], n, store, engine)


def percentile(sorted_values: Sequence[float], percent: int) -> float:
    """The value that `percent` of a hundred do not exceed."""
    return sorted_values[min(len(sorted_values) - 1, len(sorted_values) * percent // 100)]

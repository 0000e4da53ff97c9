"""Counters and histograms of our own: shown exactly as the client library shows its own."""

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from ropewalk.telemetry.tallies import Spreads, Tallies

BOUNDS = (0.001, 0.5, 1, 1_800)


def shown(registry: CollectorRegistry) -> list[str]:
    """What Prometheus reads, without the moments at which counting began."""
    return [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]


@pytest.mark.parametrize("states", [(), ("SUCCESS",), ("SUCCESS", "FAILED", "SUCCESS")])
def test_a_counter_is_shown_as_the_library_shows_it(states: tuple[str, ...]):
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    tallies, counter = (
        Tallies("ended", "Ends.", ("state",)),
        Counter("ropewalk_ended", "Ends.", ("state",), registry=theirs),
    )
    ours.register(tallies)

    for state in states:
        tallies.labels(state).inc()
        counter.labels(state).inc()

    assert shown(ours) == shown(theirs)


@pytest.mark.parametrize("values", [(), (0.0,), (0.001, 0.0011, 1, 1.5), (1_800, 1_801, 10**9)])
def test_a_histogram_is_shown_as_the_library_shows_it(values: tuple[float, ...]):
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    spreads = Spreads("took", "Times.", BOUNDS)
    histogram = Histogram("ropewalk_took", "Times.", buckets=BOUNDS, registry=theirs)
    ours.register(spreads)

    for value in values:
        spreads.labels().observe(value)
        histogram.observe(value)

    assert shown(ours) == shown(theirs)


def test_a_figure_without_labels_is_shown_before_anything_happened():
    registry = CollectorRegistry()
    registry.register(Tallies("started", "Starts."))

    assert registry.get_sample_value("ropewalk_started_total") == 0

"""The figures: what they count, and that dashboards speak of those there are."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ropewalk.service import Service
from ropewalk.telemetry.facts import Undispatched
from ropewalk.telemetry.metrics import Metrics, Sample
from ropewalk.telemetry.watch import Watch

DOCS = Path(__file__).parent.parent.parent / "docs"
TWICE = {
    "name": "twice",
    "nodes": [
        {"id": "a", "type": "noop"},
        {
            "id": "b",
            "type": "fail",
            "with": {"message": "no", "type": "TRANSIENT"},
            "retry": {"maxAttempts": 2, "delay": 0},
        },
    ],
}


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"ropewalk_{name}", labels)


def names(metrics: Metrics) -> set[str]:
    """Every name a query may use."""
    return {sample.name for family in metrics.registry.collect() for sample in family.samples}


def everything() -> Metrics:
    """ServerMetrics that have something to show under every name."""
    metrics = Metrics()
    metrics.count_stale_writes(lambda: 3)
    metrics.count_rewinds(lambda: 1)
    metrics.show(Sample(1, 2, 3, {"OPEN": 4}))
    metrics.ended.labels("SUCCESS").inc()
    metrics.runs.labels("SUCCESS", "").inc()
    metrics.run_time.labels("SUCCESS").observe(1)
    metrics.requests.labels("startExecution", "202").inc()
    metrics.request_time.labels("startExecution").observe(1)
    return metrics


async def test_executions_runs_and_attempts_are_counted(service: Service, metrics: Metrics):
    service.engine.observe(Watch(metrics))

    await service.ended(await service.start(await service.save(TWICE)))

    assert value(metrics, "executions_started_total") == 1
    assert value(metrics, "executions_ended_total", state="FAILED") == 1
    assert value(metrics, "runs_ended_total", state="SUCCESS", error_type="") == 1
    assert value(metrics, "runs_ended_total", state="FAILED", error_type="TRANSIENT") == 1
    assert value(metrics, "runs_ended_total", state="DLQ", error_type="TRANSIENT") == 1
    assert value(metrics, "node_attempts_sum") == 1 + 2
    assert value(metrics, "dispatch_delay_seconds_count") == 1


def test_failed_dispatches_and_claims_in_vain_are_counted(metrics: Metrics):
    watch = Watch(metrics)

    watch.undispatched(Undispatched("e1", "default", 1, "gone", is_given_up=False))
    watch.at_capacity()
    watch.leased(0.004)

    assert value(metrics, "dispatch_failures_total") == 1
    assert value(metrics, "claims_at_capacity_total") == 1
    assert value(metrics, "lease_seconds_sum") == 0.004


@pytest.mark.parametrize(
    ("name", "labels", "count"),
    [
        ("queue_waiting", {}, 1),
        ("workspaces_at_capacity", {}, 2),
        ("dead_letters", {}, 3),
        ("breakers", {"state": "OPEN"}, 4),
        ("breakers", {"state": "CLOSED"}, 0),
        ("stale_writes_refused_total", {}, 3),
        ("store_up", {}, 1),
    ],
)
def test_what_the_store_says_is_shown(name: str, labels: Any, count: int):
    assert value(everything(), name, **labels) == count


def test_a_store_that_is_away_is_shown_beside_what_it_said_last():
    metrics = everything()

    metrics.show(None)

    assert (value(metrics, "store_up"), value(metrics, "queue_waiting")) == (0, 1)


async def test_an_observer_that_fails_stops_nothing(service: Service):
    class Broken(Watch):
        def committed(self, fact: Any) -> None:
            raise RuntimeError("broken")

    service.engine.observe(Broken(Metrics()))

    ended = await service.ended(await service.start(await service.save({"name": "empty"})))

    assert ended.state == "SUCCESS"


async def test_nothing_is_remembered_of_what_is_over(service: Service, metrics: Metrics):
    watch = Watch(metrics)
    service.engine.observe(watch)

    await service.ended(await service.start(await service.save(TWICE)))
    await service.engine.commit.settled()

    assert not watch._known


def test_every_metric_of_the_dashboard_exists():
    dashboard = json.loads((DOCS / "grafana.json").read_text())
    known = names(everything())

    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    used = {name for query in queries for name in re.findall(r"ropewalk_\w+", query)}

    assert len(queries) >= 10
    assert used <= known


def test_every_metric_of_the_manual_exists_and_every_one_is_in_it():
    manual = set(re.findall(r"`(ropewalk_\w+)`", (DOCS / "telemetry.md").read_text()))
    shown = (name for name in names(everything()) if not name.endswith("_created"))
    known = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}

    assert manual == known

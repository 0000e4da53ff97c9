"""The doors over HTTP are measured by public calls, with inside and floor in the same run."""

from pathlib import Path

from ropewalk.bench import door_fleet, door_http
from ropewalk.bench.figures import UNITS, Figure
from ropewalk.bench.stores import POSTGRES, Files, Schemas
from ropewalk.bench.table import rows

W1 = {"latency_ms_p50", "latency_ms_p95", "latency_ms_p99"}


def test_the_http_door_is_measured_beside_inside_and_floor(tmp_path: Path):
    stores = Files(str(tmp_path))

    alone, together = door_http.one_by_one(5, 1, 60, stores), door_http.at_once(70, 1, 60, stores)

    assert alone.keys() == together.keys() == {"http", "native", "floor"}
    assert all(set(found[0]) == W1 for found in alone.values())
    assert all(found[0]["executions_per_s"] > 0 for found in together.values())


def test_the_fleet_door_is_measured_with_one_worker_and_with_two(database: str):
    stores = Schemas(database)

    alone, together = door_fleet.one_by_one(5, 1, 60, stores), door_fleet.at_once(70, 1, 60, stores)

    assert alone.keys() == {"fleet-1", "native", "floor"}
    assert alone["fleet-1"][0]["notice_ms_p95"] > 0
    assert together.keys() == {"fleet-1", "fleet-2", "native", "floor"}
    assert all(found[0]["executions_per_s"] > 0 for found in together.values())


def test_the_table_of_the_doors_has_their_ratios_and_bars():
    found = {
        ("W1", "latency_ms_p50"): {"native": 1.0, "http": 3.0, "fleet-1": 9.0},
        ("W1", "notice_ms_p95"): {"fleet-1": 4.0},
        ("W4", "executions_per_s"): {"native": 8_000.0, "http": 1_600.0, "fleet-1": 1_000.0, "fleet-2": 1_250.0},
    }
    figures = [
        Figure(workload, metric, value, UNITS[metric], 1, POSTGRES, engine)
        for (workload, metric), values in found.items()
        for engine, value in values.items()
    ]

    shown = {row[:3]: row[4:] for row in rows(figures)}

    assert shown["W1", "latency_ms_p50", "http"] == ("1", "3.00 ×", "≤ 4 ms ✓", "≤ 2.5 ms ✗")
    assert shown["W1", "latency_ms_p50", "fleet-1"] == ("1", "9.00 ×", "≤ 8 ms ✗", "≤ 5 ms ✗")
    assert shown["W1", "notice_ms_p95", "fleet-1"] == ("–", "–", "≤ 10 ms ✓", "")
    assert shown["W4", "executions_per_s", "http"] == ("8,000", "0.20 ×", "≥ 1500 /s ✓", "≥ 2500 /s ✗")
    assert shown["W4", "executions_per_s", "fleet-2"] == ("1,000", "1.25 ×", "≥ 1.2 × ✓", "≥ 1.5 × ✗")

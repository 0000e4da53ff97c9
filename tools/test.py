"""Every test, in the order in which a failure tells most: the core alone, the rest, the long simulations.

The core's tests run under three hash seeds, because a set's order must never decide anything.
"""

import os
import subprocess
import sys
import time

HASH_SEEDS = ("0", "1", "424242")
HISTORIES = "50000"


Step = tuple[str, list[str], dict[str, str]]


def steps() -> list[Step]:
    """What is run, under which name, with which environment."""
    pytest = [sys.executable, "-m", "pytest"]
    coverage = ["--cov", "--cov-report=term:skip-covered"]
    first, *others = HASH_SEEDS
    core = [("core, with branch coverage", [*pytest, "-n", "2", *coverage, "tests/core"], {"PYTHONHASHSEED": first})]
    core += [
        (f"core under hash seed {seed}", [*pytest, "-n", "2", "tests/core"], {"PYTHONHASHSEED": seed})
        for seed in others
    ]
    rest: list[Step] = [("everything else", [*pytest, "-n", "2", "--ignore=tests/core", "tests"], {})]
    simulation: list[Step] = [
        ("simulated histories", [sys.executable, "-m", "tools.simulate", "--histories", HISTORIES], {})
    ]
    return [*core, *simulation, *rest]


def main() -> int:
    for name, command, environment in steps():
        print(f"== {name}", flush=True)
        began = time.monotonic()
        result = subprocess.run(command, env={**os.environ, **environment}, check=False)
        print(f"== {name}: {time.monotonic() - began:.0f} s", flush=True)
        if result.returncode:
            return result.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())

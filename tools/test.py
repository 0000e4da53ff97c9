"""Every test, in the order in which a failure tells most: the core alone, the rest, the long simulations.

The core's tests run under three hash seeds, because a set's order must never decide anything.

A few tests of whole processes depend on a machine that gives each process its turn. When at most `FEW` of "everything
else" fail, these are executed once more, alone: what fails again fails, and what passes alone is named as unsteady, so
that the next engineer mends it. The core and the simulations have no second chance: nothing there depends on time.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HASH_SEEDS = ("0", "1", "424242")
HISTORIES = "50000"
FEW = 5
TESTS_FAILED = 1
FAILED = Path(".pytest_cache/v/cache/lastfailed")


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
    rest: list[Step] = [("everything else", [*pytest, "-n", "2", "--cache-clear", "--ignore=tests/core", "tests"], {})]
    simulation: list[Step] = [
        ("simulated histories", [sys.executable, "-m", "tools.simulate", "--histories", HISTORIES], {})
    ]
    return [*core, *simulation, *rest]


def run(name: str, command: list[str], environment: dict[str, str]) -> int:
    """The step's exit code; its name and its time are printed."""
    print(f"== {name}", flush=True)
    began = time.monotonic()
    result = subprocess.run(command, env={**os.environ, **environment}, check=False)
    print(f"== {name}: {time.monotonic() - began:.0f} s", flush=True)
    return result.returncode


def alone() -> int:
    """Execute the few tests that failed beside others once more; the exit code says whether they pass alone."""
    failed = sorted(json.loads(FAILED.read_text(encoding="utf-8"))) if FAILED.exists() else []
    if not 0 < len(failed) <= FEW:
        return 1
    code = run("what failed, alone", [sys.executable, "-m", "pytest", "-n", "0", *failed], {})
    for test in [] if code else failed:
        print(f"unsteady: {test} failed beside others and passes alone", flush=True)
    return code


def main() -> int:
    *steady, rest = steps()
    for step in steady:
        if code := run(*step):
            return code
    code = run(*rest)
    return alone() if code == TESTS_FAILED else code


if __name__ == "__main__":
    sys.exit(main())

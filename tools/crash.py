"""Real processes, killed with SIGKILL at random moments, all on one store; then the checker on every log.

python -m tools.crash --cycles 500              # exit 1 if anything accepted is lost, doubled or wrong
python -m tools.crash --cycles 500 --seed 4711  # the same moments again, as far as a machine repeats itself
"""

import argparse
import asyncio
import json
import secrets
import shutil
import statistics
import sys
import tempfile

from tests.crash.driver import Campaign, Figures, Misbehaved
from tests.crash.ledgers import Place
from tests.crash.verdict import Verdict, judge

MOST_SHOWN = 20
TELL_EVERY = 10


def campaign(cycles: int, seed: int) -> int:
    """Kill, judge and say what happened; 1 if a promise was broken, and then the store is kept."""
    place = Place(tempfile.mkdtemp(prefix="ropewalk-crash-"))
    running = Campaign(place, seed, progress=lambda figures: _show_progress(figures, cycles))
    violations: list[str] = []
    try:
        running.run(cycles)
    except Misbehaved as error:
        violations.append(str(error))
    else:
        verdict = asyncio.run(judge(place))
        violations += verdict.violations
        _print_verdict(verdict)
    _print_figures(running.figures, len(violations))
    if violations:
        _print_failure(seed, place, violations)
        return 1
    shutil.rmtree(place.folder)
    return 0


def _show_progress(figures: Figures, cycles: int) -> None:
    if figures.cycles % TELL_EVERY == 0 or figures.cycles == cycles:
        print(f"{figures.cycles} of {cycles} kills", file=sys.stderr, flush=True)


def _print_verdict(verdict: Verdict) -> None:
    starts = verdict.accepted
    _print_figure("accepted_starts", starts, "executions", starts)
    for state, count in sorted(verdict.states.items()):
        _print_figure(f"ended_{state.lower()}", count, "executions", verdict.states.total())
    _print_figure("effects", verdict.effects, "effects", starts)
    _print_figure("effects_repeated", verdict.repeated, "effects", verdict.effects)
    _print_figure("attempts_lost", verdict.lost_attempts, "attempts", starts)


def _print_figures(figures: Figures, violations: int) -> None:
    n = figures.cycles
    _print_figure("kills", n, "kills", n)
    for death, count in sorted(figures.deaths.items()):
        _print_figure(f"kills_{death}", count, "kills", n)
    for name, seconds in (("serving_again", figures.warm), ("serving_again_new_interpreter", figures.cold)):
        if len(seconds) > 1:
            _print_figure(
                f"{name}_p95", round(statistics.quantiles(seconds, n=20, method="inclusive")[-1], 3), "s", len(seconds)
            )
            _print_figure(f"{name}_max", round(max(seconds), 3), "s", len(seconds))
    _print_figure("quiet_after", round(figures.quiesced_in, 3), "s", 1)
    _print_figure("violations", violations, "violations", n)


def _print_figure(metric: str, value: float, unit: str, n: int) -> None:
    print(json.dumps({"workload": "crash", "metric": metric, "value": value, "unit": unit, "n": n}))


def _print_failure(seed: int, place: Place, violations: list[str]) -> None:
    print(f"\nseed {seed} broke {len(violations)} promises; the store is kept: {place.database}", file=sys.stderr)
    for violation in violations[:MOST_SHOWN]:
        print(f"  {violation}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.crash", description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=int, default=500, help="how many processes to kill")
    parser.add_argument("--seed", type=int, help="chooses the moments and the load; one is made up if not given")
    options = parser.parse_args()
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    return campaign(options.cycles, seed)


if __name__ == "__main__":
    sys.exit(main())

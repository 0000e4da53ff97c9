"""`ropewalk check`."""

import click

from ropewalk.checker import INVARIANTS, Violation
from ropewalk.cli.auditing import checked
from ropewalk.cli.codes import Code
from ropewalk.cli.console import console, print_json
from ropewalk.cli.project import Project, on_project
from ropewalk.cli.rendering.text import plain
from ropewalk.cli.session import finish, reading_from
from ropewalk.cli.view import View

MOST_SHOWN = 100
PROGRESS_EVERY = 1000


@click.command()
@on_project
def check(project: Project) -> int:
    """Hold every execution of a store to the guarantees.

    Each log is held to the invariants, and the tables to what the logs make of them; also while a process executes on
    the store.
    """

    async def look() -> Code:
        view = View(console(is_error=True))
        seen = 0
        found: list[Violation] = []
        async with reading_from(project) as reader:
            async for each in checked(reader):
                seen += each.history is not None or bool(each.violations)
                found += each.violations
                if seen % PROGRESS_EVERY == 0:
                    view.say(f"{seen:,} executions checked, {len(found):,} violations")
        if project.is_json:
            print_json({"executions": seen, "violations": [_as_json(each) for each in found]})
        else:
            for violation in found[:MOST_SHOWN]:
                print(plain(str(violation)))
            print(
                f"{seen:,} executions checked against {len(INVARIANTS)} invariants and their tables: {_verdict(found)}"
            )
        return Code.FAILED if found else Code.OK

    return finish(look())


def _verdict(found: list[Violation]) -> str:
    if not found:
        return "no violations"
    more = f", of which {MOST_SHOWN} are shown" if len(found) > MOST_SHOWN else ""
    return f"{len(found):,} violations{more}"


def _as_json(violation: Violation) -> dict[str, object]:
    known = INVARIANTS.get(violation.invariant)
    return {
        "invariant": violation.invariant,
        "sentence": "The tables are what the logs make them." if known is None else known.sentence,
        "execution": violation.execution,
        "seq": violation.seq,
        "message": violation.message,
    }

"""`ropewalk check`."""

import click

from ropewalk.checker import INVARIANTS, Violation
from ropewalk.cli.backend.project import Project, on_store
from ropewalk.cli.backend.queries import blobs_of, reading_from
from ropewalk.cli.backend.session import finish
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import console, print_json
from ropewalk.cli.views.progress import View
from ropewalk.cli.views.text import plain
from ropewalk.core.instant import rfc3339
from ropewalk.service.auditing import BLOBS, Audit
from ropewalk.service.requests import SENTENCES
from ropewalk.store import audit

MOST_SHOWN = 100
MOST_TOLD = 10_000
PROGRESS_EVERY = 1000
_SENTENCES = {name: invariant.sentence for name, invariant in INVARIANTS.items()} | {
    BLOBS: "Every large value and every file is kept, and is what was recorded.",
    **SENTENCES,
}


@click.command()
@on_store
def check(project: Project) -> int:
    """Hold every execution of a store to the guarantees.

    Each log is held to the invariants, and the tables to what the logs make of them; also while a process executes on
    the store.
    """

    async def show() -> Code:
        async with reading_from(project) as reader:
            blobs = blobs_of(project, reader)
            seen, found = await _checked(Audit(reader, load_blob=blobs.get, read_file=blobs.chunks))
            rewinds = await audit.rewinds(reader, MOST_SHOWN)
        if project.is_json:
            told = [{"at": rfc3339(each.at), "worker": each.worker, "message": each.why} for each in rewinds]
            print_json({"executions": seen, "violations": [_as_json(each) for each in found], "rewinds": told})
        else:
            for rewind in rewinds:
                print(plain(f"{rfc3339(rewind.at)} {rewind.why}"))
            for violation in found[:MOST_SHOWN]:
                print(plain(str(violation)))
            print(
                f"{seen:,} executions checked against {len(INVARIANTS)} invariants and their tables: {_verdict(found)}"
            )
        return Code.FAILED if found else Code.OK

    return finish(show())


async def _checked(audit: Audit) -> tuple[int, list[Violation]]:
    """How many executions there are, and what is wrong with them; the check stops at as many violations as are told."""
    view = View(console(is_error=True))
    seen = 0
    found: list[Violation] = []
    async for each in audit.executions():
        seen += 1
        found += each.violations
        if seen % PROGRESS_EVERY == 0:
            view.say(f"{seen:,} executions checked, {len(found):,} violations")
        if len(found) >= MOST_TOLD:
            return seen, found
    return seen, found + await audit.together()


def _verdict(found: list[Violation]) -> str:
    if not found:
        return "no violations"
    more = f", of which {MOST_SHOWN} are shown" if len(found) > MOST_SHOWN else ""
    rest = "; the rest was not looked at" if len(found) >= MOST_TOLD else ""
    return f"{len(found):,} violations{more}{rest}"


def _as_json(violation: Violation) -> dict[str, object]:
    return {
        "invariant": violation.invariant,
        "sentence": _SENTENCES[violation.invariant],
        "execution": violation.execution,
        "seq": violation.seq,
        "message": violation.message,
    }

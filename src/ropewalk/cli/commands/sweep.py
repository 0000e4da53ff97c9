"""`ropewalk sweep`: what is old goes, now."""

from typing import Final

import click
from msgspec import structs

from ropewalk.cli.backend.project import Project, on_store
from ropewalk.cli.backend.queries import reading_from
from ropewalk.cli.backend.session import Session, finish, me, open_session
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import print_json
from ropewalk.cli.views.progress import now
from ropewalk.core.duration import YEAR, format_duration, parse_duration
from ropewalk.core.errors import InvalidInput, Problem
from ropewalk.service.retention import DEFAULT, SHORTEST, START, Policy, Swept, survey

_LONGEST: Final = 100 * YEAR
_WORDS: Final = {
    "executions": "executions",
    "letters": "dead letters",
    "keys": "idempotency keys",
    "results": "cached results and kept values",
    "audit": "audit entries",
    "blobs": "blobs",
}


@click.command()
@click.option("--older-than", metavar="DURATION", default=format_duration(DEFAULT.executions), show_default=True,
              help="How long ago executions ended and dead letters were resolved.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only say what would go first; nothing is removed.")
@on_store
def sweep(project: Project, older_than: str, dry_run: bool) -> int:
    """Remove what is old: executions, and what belongs to them.

    An execution that is not over stays, and so does one with a dead letter that waits for a person.
    """
    policy = _policy(older_than)

    async def show() -> Code:
        async with reading_from(project) as reader:
            return _told(project, await survey(reader, now(), policy), "would go")

    async def act() -> Code:
        async with open_session(project, executes=False) as session:
            return _told(project, await _swept(session, policy), "removed")

    return finish(show() if dry_run else act())


def _policy(older_than: str) -> Policy:
    try:
        kept = parse_duration(older_than, SHORTEST, _LONGEST)
    except ValueError as error:
        raise InvalidInput([Problem(("--older-than",), str(error))]) from error
    return Policy(executions=kept, letters=kept)


async def _swept(session: Session, policy: Policy) -> Swept:
    """Round after round until one finds nothing more: parents go in the round after their children."""
    total, position, before = Swept(), START, 0
    while True:
        step = await session.verbs.sweep(policy, position, me())
        total, position = _sum(total, step), step.position
        if position.is_end:
            if total.total == before:
                return total
            position, before = START, total.total


def _sum(one: Swept, other: Swept) -> Swept:
    return structs.replace(one, **{name: getattr(one, name) + getattr(other, name) for name in _WORDS})


def _told(project: Project, swept: Swept, verb: str) -> Code:
    counts = {name: getattr(swept, name) for name in _WORDS}
    if project.is_json:
        print_json(counts)
    else:
        told = ", ".join(f"{counts[name]:,} {word}" for name, word in _WORDS.items() if counts[name])
        print(f"{verb}: {told or 'nothing'}")
    return Code.OK

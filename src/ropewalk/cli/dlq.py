"""`ropewalk dlq`: the dead letters."""

import click

from ropewalk.cli.carrying import Way, carry_on, detach_option
from ropewalk.cli.codes import Code
from ropewalk.cli.console import console, print_json
from ropewalk.cli.ids import letter_id
from ropewalk.cli.loading import assignments, json_value
from ropewalk.cli.project import Project, on_project
from ropewalk.cli.rendering.dlq import groups_listing, letter_details, letters_listing
from ropewalk.cli.session import WORKSPACE, Session, finish, me, opened, reading_from
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import InvalidInput
from ropewalk.core.instant import rfc3339
from ropewalk.core.state import Resolution
from ropewalk.service import reading
from ropewalk.store import dlq as stored


@click.group()
def dlq() -> None:
    """Look through the dead letters, and work them off."""


@dlq.command()
@click.option("--resolution", type=click.Choice(list(Resolution), case_sensitive=False), default=Resolution.PENDING)
@click.option("--fingerprint", help="Only those that failed alike.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@on_project
def ls(project: Project, resolution: str, fingerprint: str | None, limit: int) -> int:
    """List dead letters, the newest first."""

    async def look() -> Code:
        async with reading_from(project) as reader:
            found = await reading.list_dead_letters(reader, WORKSPACE, Resolution(resolution), fingerprint, limit)
        if project.is_json:
            print_json(found)
        else:
            console().print(letters_listing(found))
        return Code.OK

    return finish(look())


@dlq.command()
@on_project
def groups(project: Project) -> int:
    """Gather what failed alike, the most frequent first."""

    async def look() -> Code:
        async with reading_from(project) as reader:
            found = [_group(each) for each in await stored.groups(reader, WORKSPACE)]
        if project.is_json:
            print_json(found)
        else:
            console().print(groups_listing(found))
        return Code.OK

    return finish(look())


def _group(group: stored.Group) -> dict[str, JSON]:
    return {
        "fingerprint": group.fingerprint,
        "count": group.count,
        "firstAt": rfc3339(group.first_at),
        "lastAt": rfc3339(group.last_at),
        "node": group.node,
        "reason": group.reason,
    }


@dlq.command()
@click.argument("letter")
@on_project
def show(project: Project, letter: str) -> int:
    """Show a dead letter: why it gave up, and with which inputs."""

    async def look() -> Code:
        async with reading_from(project) as reader:
            found = await reading.get_dead_letter(reader, WORKSPACE, await letter_id(reader, letter))
        if project.is_json:
            print_json(found)
        else:
            console().print(letter_details(found, project.hint))
        return Code.OK

    return finish(look())


@dlq.command()
@click.argument("letter")
@click.option("--set", "pairs", multiple=True, metavar="KEY=JSON", help="Another value for one input; repeatable.")
@click.option("--input", "value", metavar="JSON", help="Other inputs, as one object: JSON or @file.")
@detach_option
@on_project
def requeue(project: Project, letter: str, pairs: tuple[str, ...], value: str | None, detach: bool) -> int:
    """Try a dead letter again, with other inputs if wanted; its execution goes on."""
    given = {} if value is None else json_value(value, "--input")
    if not isinstance(given, dict):
        raise InvalidInput("--input must be an object: its keys replace the node's inputs")
    overrides = {**given, **assignments(pairs, "--set")}

    async def act(session: Session) -> str:
        found = await letter_id(session.reader, letter)
        return await session.verbs.requeue(found, overrides or None, me())

    return carry_on(project, act, Way(detach))


@dlq.command()
@click.argument("letter")
@click.option("--output", required=True, metavar="JSON", help="What the node should have given: JSON or @file.")
@click.option("--port", "ports", multiple=True, help="A way out that is taken; repeatable.")
@detach_option
@on_project
def fix(project: Project, letter: str, output: str, ports: tuple[str, ...], detach: bool) -> int:
    """Supply the output a node failed to give; its execution goes on."""
    given = json_value(output, "--output")

    async def act(session: Session) -> str:
        return await session.verbs.fix(await letter_id(session.reader, letter), given, me(), ports)

    return carry_on(project, act, Way(detach))


@dlq.command()
@click.argument("letter")
@click.option("--notes", help="Why; kept with it.")
@on_project
def discard(project: Project, letter: str, notes: str | None) -> int:
    """Close a dead letter without doing anything about it."""

    async def act() -> Code:
        async with opened(project, executes=False) as session:
            found = await letter_id(session.reader, letter)
            await session.verbs.discard(found, me(), notes)
        if project.is_json:
            print_json({"id": found, "resolution": Resolution.DISCARDED})
        else:
            print(f"{found}: discarded")
        return Code.OK

    return finish(act())

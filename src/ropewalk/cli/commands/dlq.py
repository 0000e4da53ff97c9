"""`ropewalk dlq`: the dead letters."""

from typing import Final

import click

from ropewalk.cli.arguments import assignments, json_value
from ropewalk.cli.backend.bulk_queries import NO_MORE, Counted
from ropewalk.cli.backend.ids import letter_id, whole_fingerprint
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.queries import Queries, queries_on
from ropewalk.cli.backend.session import Session, finish, me, open_session
from ropewalk.cli.commands.dlq_bulk import WhichLetters, discard_many, on_letters, requeue_many
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.processes.attaching import Mode, attach, detach_option
from ropewalk.cli.views.console import answer, print_json
from ropewalk.cli.views.dlq import groups_listing, letter_details, letters_listing
from ropewalk.cli.views.more import tell_more
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import InvalidInput
from ropewalk.core.state import Resolution

LARGEST_PAGE: Final = 1000


@click.group()
def dlq() -> None:
    """Look through the dead letters, and work them off."""


@dlq.command()
@click.option("--resolution", type=click.Choice(list(Resolution), case_sensitive=False), default=Resolution.PENDING)
@click.option("--fingerprint", help="Only those that failed alike.")
@click.option("--limit", type=click.IntRange(1, LARGEST_PAGE), default=20, show_default=True)
@on_store_or_server
def ls(project: Project, resolution: str, fingerprint: str | None, limit: int) -> int:
    """List dead letters, the newest first."""

    async def show_all() -> Code:
        async with queries_on(project) as queries:
            alike = await whole_fingerprint(queries, fingerprint)
            found = await queries.letters(Resolution(resolution), alike, limit)
            is_full = len(found) == limit and not project.is_json
            left = await _left(queries, Resolution(resolution), alike, limit) if is_full else NO_MORE
        code = answer(found, lambda: letters_listing(found), is_json=project.is_json)
        kind = () if fingerprint is None else ("--fingerprint", fingerprint)
        tell_more(project, left, "dlq", "ls", "--resolution", resolution.lower(), *kind, "--limit", str(LARGEST_PAGE))
        return code

    return finish(show_all())


async def _left(queries: Queries, resolution: Resolution, fingerprint: str | None, shown: int) -> Counted:
    """How many more there are; those that wait for a person are counted by what failed alike."""
    if resolution is Resolution.PENDING:
        groups = await queries.groups(LARGEST_PAGE)
        found = sum(each["count"] for each in groups if fingerprint in (None, each["fingerprint"]))
        return Counted(found - shown, len(groups) < LARGEST_PAGE)
    found = len(await queries.letters(resolution, fingerprint, LARGEST_PAGE))
    return Counted(found - shown, found < LARGEST_PAGE)


@dlq.command()
@click.option("--limit", type=click.IntRange(1, LARGEST_PAGE), default=50, show_default=True)
@on_store_or_server
def groups(project: Project, limit: int) -> int:
    """Gather what failed alike, the most frequent first."""

    async def show_all() -> Code:
        async with queries_on(project) as queries:
            found = await queries.groups(limit)
            all_of_them = await queries.groups(LARGEST_PAGE) if len(found) == limit and not project.is_json else found
        code = answer(found, lambda: groups_listing(found), is_json=project.is_json)
        left = Counted(len(all_of_them) - len(found), len(all_of_them) < LARGEST_PAGE)
        tell_more(project, left, "dlq", "groups", "--limit", str(LARGEST_PAGE))
        return code

    return finish(show_all())


@dlq.command()
@click.argument("letter")
@on_store_or_server
def show(project: Project, letter: str) -> int:
    """Show a dead letter: why it gave up, and with which inputs."""

    async def show_all() -> Code:
        async with queries_on(project) as queries:
            found = await queries.letter(await letter_id(queries, letter))
        return answer(found, lambda: letter_details(found, project.hint), is_json=project.is_json)

    return finish(show_all())


@dlq.command()
@on_letters
@click.option("--set", "pairs", multiple=True, metavar="KEY=JSON", help="Another value for one input; repeatable.")
@click.option("--input", "value", metavar="JSON", help="Other inputs, as one object: JSON or @file.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Of many, at most so many a second.")
@click.option("--stop-after-failures", type=click.IntRange(1), metavar="N", help="Of many, until so many fail again.")
@detach_option
@on_store_or_server
def requeue(project: Project, letter: str | None, which: WhichLetters, pairs: tuple[str, ...], value: str | None,
            rate: float | None, stop_after_failures: int | None, detach: bool) -> int:  # fmt: skip
    """Try a dead letter again, with other inputs if wanted; its execution goes on.

    Many are tried one after the other, the oldest first, with the inputs they had.
    """
    overrides = _overrides(pairs, value)
    if letter is None:
        if overrides or detach:
            raise InvalidInput("--set, --input and --detach are for one LETTER")
        return requeue_many(project, which, rate, stop_after_failures)
    return _requeue(project, letter, overrides, detach)


def _overrides(pairs: tuple[str, ...], value: str | None) -> dict[str, JSON]:
    given = {} if value is None else json_value(value, "--input")
    if not isinstance(given, dict):
        raise InvalidInput("--input must be an object: its keys replace the node's inputs")
    return {**given, **assignments(pairs, "--set")}


def _requeue(project: Project, letter: str, overrides: dict[str, JSON], detach: bool) -> Code:
    async def act(session: Session) -> str:
        found = await letter_id(session.queries, letter)
        return await session.verbs.requeue(found, overrides or None, me())

    return attach(project, act, Mode(detach))


@dlq.command()
@click.argument("letter")
@click.option("--output", required=True, metavar="JSON", help="What the node should have given: JSON or @file.")
@click.option("--port", "ports", multiple=True, help="A way out that is taken; repeatable.")
@detach_option
@on_store_or_server
def fix(project: Project, letter: str, output: str, ports: tuple[str, ...], detach: bool) -> int:
    """Supply the output a node failed to give; its execution goes on."""
    given = json_value(output, "--output")

    async def act(session: Session) -> str:
        return await session.verbs.fix(await letter_id(session.queries, letter), given, me(), ports)

    return attach(project, act, Mode(detach))


@dlq.command()
@on_letters
@click.option("--notes", help="Why; kept with it.")
@on_store_or_server
def discard(project: Project, letter: str | None, which: WhichLetters, notes: str | None) -> int:
    """Close a dead letter, or many, without doing anything about it."""
    return discard_many(project, which, notes) if letter is None else _discard(project, letter, notes)


@dlq.command()
@click.argument("letter")
@click.argument("text")
@on_store_or_server
def note(project: Project, letter: str, text: str) -> int:
    """Say something about a dead letter, for the next person who looks at it."""

    async def act() -> Code:
        async with open_session(project, executes=False) as session:
            found = await letter_id(session.queries, letter)
            await session.verbs.note(found, text, me())
        if project.is_json:
            print_json({"id": found, "noted": True})
        else:
            print(f"{found}: noted")
        return Code.OK

    return finish(act())


def _discard(project: Project, letter: str, notes: str | None) -> Code:
    async def act() -> Code:
        async with open_session(project, executes=False) as session:
            found = await letter_id(session.queries, letter)
            await session.verbs.discard(found, me(), notes)
        if project.is_json:
            print_json({"id": found, "resolution": Resolution.DISCARDED})
        else:
            print(f"{found}: discarded")
        return Code.OK

    return finish(act())

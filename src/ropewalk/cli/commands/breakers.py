"""`ropewalk breakers`: the shared health of what nodes call."""

import click

from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.queries import queries_on
from ropewalk.cli.backend.session import finish, me, open_session
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.breakers import breakers_listing
from ropewalk.cli.views.console import answer, print_json
from ropewalk.cli.views.text import plain


@click.group()
def breakers() -> None:
    """List the health of what nodes call, or close a breaker by hand."""


@breakers.command()
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@on_store_or_server
def ls(project: Project, limit: int) -> int:
    """List the targets that have failed, by name, and the rate of failures that each breaker saw."""

    async def show_all() -> Code:
        async with queries_on(project) as queries:
            found = await queries.breakers(limit)
        return answer(found, lambda: breakers_listing(found, limit), is_json=project.is_json)

    return finish(show_all())


@breakers.command()
@click.argument("target", nargs=-1, required=True)
@on_store_or_server
def reset(project: Project, target: tuple[str, ...]) -> int:
    """Close the breaker of TARGET, as `ls` names it; the attempts that it holds go on."""
    named = " ".join(target)

    async def act() -> Code:
        async with open_session(project, executes=False) as session:
            is_new = await session.verbs.reset_breaker(named, me())
        if project.is_json:
            print_json({"target": named, "changed": is_new})
        else:
            print(f"{plain(named)}: closed" if is_new else f"{plain(named)}: closed already")
        return Code.OK

    return finish(act())

"""`ropewalk keys`: the API keys of a server's workspace."""

from datetime import timedelta
from typing import Any, Final

import click

from ropewalk.cli.backend.bulk_queries import Counted
from ropewalk.cli.backend.profiles import Server
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.session import finish
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import answer, print_json
from ropewalk.cli.views.keys import keys_listing
from ropewalk.cli.views.more import tell_more
from ropewalk.cli.views.progress import now, view_for
from ropewalk.core.duration import SECOND, parse_duration
from ropewalk.core.errors import InvalidInput, Problem

MOST_COUNTED: Final = 1000
ROLES: Final = ("viewer", "operator", "editor", "admin", "runner")


@click.group()
def keys() -> None:
    """List, make and revoke the API keys of a server."""


def _server(project: Project) -> Server:
    """Keys open a server; a store is open to those who can read its file or log in to its database."""
    if project.server is None:
        raise InvalidInput("keys are for a server: name it with --server URL, or --profile after `ropewalk login`")
    return project.server


@keys.command()
@click.option("--limit", type=click.IntRange(1, MOST_COUNTED), default=20, show_default=True)
@on_store_or_server
def ls(project: Project, limit: int) -> int:
    """List keys, the newest first, revoked and expired ones too."""
    server = _server(project)

    async def show() -> Code:
        from ropewalk.cli.backend.server import connected  # here, since most commands do without the client

        wanted = limit if project.is_json else limit + MOST_COUNTED
        async with connected(server) as there:
            found: list[Any] = [each async for each in there.client.keys(wanted)]
        code = answer(found[:limit], lambda: keys_listing(found[:limit], now()), is_json=project.is_json)
        tell_more(project, Counted(len(found[limit:]), len(found) < wanted), "keys", "ls", "--limit", str(MOST_COUNTED))
        return code

    return finish(show())


@keys.command()
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What it may do.")
@click.option("--scope", "scopes", multiple=True, metavar="RIGHT", help="All that is used of the role; repeatable.")
@click.option("--pool", "pools", multiple=True, metavar="POOL", help="Where a runner takes work from; repeatable.")
@click.option("--expires-in", metavar="DURATION", help="When it ends, like 90d; never if that is left out.")
@on_store_or_server
def create(project: Project, name: str, role: str, scopes: tuple[str, ...], pools: tuple[str, ...],
           expires_in: str | None) -> int:  # fmt: skip
    """Make a key. Its token goes to stdout, this once and nowhere else."""
    server, life = _server(project), _life(expires_in)

    async def make() -> Code:
        from ropewalk.cli.backend.server import connected  # here, as above

        async with connected(server) as there:
            made: Any = await there.client.create_key(
                name, role, scopes=scopes or None, pools=pools or None, expires_in=life  # type: ignore[arg-type]  # the server knows the words
            )  # fmt: skip
        if project.is_json:
            print_json(made)
            return Code.OK
        view_for(project).say(f"key {made['id']}; revoke it with: {project.hint('keys', 'revoke', made['id'])}")
        print(made["token"])
        return Code.OK

    return finish(make())


def _life(expires_in: str | None) -> timedelta | None:
    try:
        return None if expires_in is None else timedelta(seconds=parse_duration(expires_in) / SECOND)
    except ValueError as error:
        raise InvalidInput([Problem(("--expires-in",), str(error))]) from error


@keys.command()
@click.argument("key")
@on_store_or_server
def revoke(project: Project, key: str) -> int:
    """Revoke a key and the sessions it opened, on every server within five seconds."""
    server = _server(project)

    async def end() -> Code:
        from ropewalk.cli.backend.server import connected  # here, as above

        async with connected(server) as there:
            ended: Any = await there.client.revoke_key(key)
        if project.is_json:
            print_json(ended)
        else:
            print(f"{key}: revoked")
        return Code.OK

    return finish(end())

"""`ropewalk login`: remember a server and the token for it."""

import os
import sys
from typing import Final

import click

from ropewalk.cli.backend.profiles import DEFAULT, TOKEN, Server, keep_profile, keep_token
from ropewalk.cli.backend.session import finish
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import print_json
from ropewalk.cli.views.text import plain

LONGEST_TOKEN: Final = 16 * 1024


@click.command()
@click.argument("url")
@click.option("--profile", default=DEFAULT, show_default=True, metavar="NAME", help="What to call it.")
@click.option("--workspace", metavar="NAME", help="Which workspace is meant, if not the token's own.")
@click.option("--json", "is_json", is_flag=True, help="Answer with JSON and nothing else.")
def login(url: str, profile: str, workspace: str | None, is_json: bool) -> int:
    """Remember a server and the token for it.

    The token is asked for, or read from ROPEWALK_TOKEN or stdin; it is tried, then kept in the keyring if there is
    one (the package `keyring`), else in a file that only you can read. Afterwards: `ropewalk … --profile NAME`.
    """
    server = Server(url.rstrip("/"), workspace)
    token = _token()
    who = finish(_tried(server, token))
    where = keep_token(server.url, token)
    path = keep_profile(profile, server)
    if is_json:
        print_json({"profile": profile, "url": server.url, "subject": who, "file": str(path)})
    else:
        print(plain(f"{server.url} knows you as {who}; profile {profile!r} is in {path}, the token {where}"))
    return Code.OK


def _token() -> str:
    """The token, never from the command line, which every user of the machine can read."""
    if given := os.environ.get(TOKEN):
        return given
    if not sys.stdin.isatty():
        return sys.stdin.read(LONGEST_TOKEN).strip()
    return str(click.prompt("Token", hide_input=True)).strip()


async def _tried(server: Server, token: str) -> str:
    """Who one is there; nothing is kept that does not open anything."""
    # Here, since most commands do without the client.
    from ropewalk.cli.backend.server import connected

    async with connected(server, token) as there:
        return str((await there.client.me())["subject"])

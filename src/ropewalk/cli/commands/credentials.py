"""`ropewalk credentials`: what nodes log in with. A secret is typed or piped in, and never an argument."""

import sys
from typing import Any, Final

import click

from ropewalk.cli.backend.credential_input import Given, values_of
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.session import finish, me, open_session
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import answer, print_json
from ropewalk.cli.views.credentials import (
    credential_page,
    credentials_listing,
    shares_listing,
    type_page,
    types_listing,
)
from ropewalk.cli.views.progress import now
from ropewalk.cli.views.text import plain
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import NotFound

MOST: Final = 200


@click.group()
def credentials() -> None:
    """Keep, try, share and rotate credentials."""


async def _asked(project: Project, request: str, about: dict[str, JSON], *, creates: bool = False) -> Any:
    async with open_session(project, executes=False, creates=creates) as session:
        return await session.verbs.manage_credentials(request, about, me())


@credentials.command()
@click.option("--limit", type=click.IntRange(1, MOST), default=MOST, show_default=True)
@on_store_or_server
def ls(project: Project, limit: int) -> int:
    """List credentials by name, without their secrets."""

    async def show() -> Code:
        found = await _asked(project, "list", {"limit": limit})
        return answer(found, lambda: credentials_listing(found, now()), is_json=project.is_json)

    return finish(show())


@credentials.command()
@click.argument("name")
@on_store_or_server
def show(project: Project, name: str) -> int:
    """Show a credential without its secrets, and the workflows that use it."""

    async def look() -> Code:
        found = await _asked(project, "show", {"name": name})
        return answer(found, lambda: credential_page(found, now()), is_json=project.is_json)

    return finish(look())


@credentials.command()
@click.argument("name", required=False, metavar="[TYPE]")
@on_store_or_server
def types(project: Project, name: str | None) -> int:
    """List the types of credentials, or show the fields of one."""

    async def look() -> Code:
        found = await _types(project)
        if name is None:
            return answer(found, lambda: types_listing(found), is_json=project.is_json)
        one = _type(found, name)
        return answer(one, lambda: type_page(one), is_json=project.is_json)

    return finish(look())


async def _types(project: Project) -> list[Any]:
    if project.server is not None:
        return list(await _asked(project, "types", {}))
    # Here, since the table of types comes with a library that is slow to import.
    from ropewalk.service.credential_types import shown_types

    return shown_types()


def _type(found: list[Any], name: str) -> Any:
    for each in found:
        if each["name"] == name:
            return each
    raise NotFound(f"there is no type {name!r}; `ropewalk credentials types` lists them")


@credentials.command("set")
@click.argument("name")
@click.option("--type", "kind", metavar="TYPE", help="Of which type it is; needed if it is new.")
@click.option("--field", "fields", multiple=True, metavar="NAME=VALUE", help="A field that is no secret; repeatable.")
@click.option("--secret", metavar="FIELD", help="Which secret is asked for, or read from stdin.")
@click.option("--values", "takes_json", is_flag=True, help="Read all fields from stdin, as a JSON object.")
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="Where alone it may be sent to; repeatable.")
@click.option("--any-host", is_flag=True, help="It may be sent anywhere.")
@on_store_or_server
def set_(project: Project, name: str, kind: str | None, fields: tuple[str, ...], secret: str | None, takes_json: bool,
         hosts: tuple[str, ...], any_host: bool) -> int:  # fmt: skip
    """Make a credential, or set fields of it anew; the others stay.

    A secret is asked for, or read from stdin; an argument would be seen by every user of the machine. A field may be
    env:NAME or file:/path, as far as the settings credentials.env and credentials.files say so.
    """
    given = Given(fields, secret, takes_json)

    async def keep() -> Code:
        known = await _types(project)
        of_type = _type(known, kind) if kind else _type(known, (await _asked(project, "show", {"name": name}))["type"])
        values = values_of(given, of_type, is_new=kind is not None)
        about: dict[str, JSON] = {"name": name, "type": kind, "values": values}
        if hosts or any_host:
            about["hosts"] = list(hosts)
        made = await _asked(project, "set", about, creates=True)
        if project.is_json:
            print_json(made)
        else:
            print(f"{plain(name)}: kept, revision {made['revision']}")
        return Code.OK

    return finish(keep())


@credentials.command()
@click.argument("name")
@on_store_or_server
def test(project: Project, name: str) -> int:
    """Try whether the counterpart takes a credential."""

    async def try_it() -> Code:
        came = await _asked(project, "test", {"name": name})
        if project.is_json:
            print_json(came)
        else:
            word = {True: "good", False: "refused", None: "not tried"}[came["ok"]]
            print(f"{plain(name)}: {word}: {plain(came['message'])}")
        return Code.FAILED if came["ok"] is False else Code.OK

    return finish(try_it())


@credentials.command()
@click.argument("name")
@on_store_or_server
def rm(project: Project, name: str) -> int:
    """Forget a credential and its secrets. Workflows that name it fail from then on."""

    async def forget() -> Code:
        changed = await _asked(project, "remove", {"name": name})
        if project.is_json:
            print_json({"name": name, "changed": changed})
        else:
            print(f"{plain(name)}: removed" if changed else f"{plain(name)}: there is none")
        return Code.OK

    return finish(forget())


@credentials.command()
@click.argument("name")
@click.argument("subject", required=False)
@click.option("--remove", "is_removed", is_flag=True, help="Let SUBJECT use it no more.")
@on_store_or_server
def share(project: Project, name: str, subject: str | None, is_removed: bool) -> int:
    """Let SUBJECT (user:… or key:…) use a credential, or list who may.

    Members with the right to use credentials may use every one of the workspace: a share is for the others.
    """

    async def act() -> Code:
        if subject is None:
            found = await _asked(project, "shares", {"name": name, "limit": MOST})
            return answer(found, lambda: shares_listing(found), is_json=project.is_json)
        about: dict[str, JSON] = {"name": name, "subject": subject}
        came = await _asked(project, "unshare" if is_removed else "share", about)
        if project.is_json:
            print_json({"subject": subject, "changed": came} if is_removed else came)
        else:
            print(f"{plain(subject)} may use {plain(name)}" + (" no more" if is_removed else ""))
        return Code.OK

    return finish(act())


@credentials.command()
@on_store_or_server
def rotate(project: Project) -> int:
    """Wrap the keys of all workspaces with the new master key.

    Start every server and worker with the new key as ROPEWALK_KEY and the old one as ROPEWALK_KEY_BEFORE first; take
    the old one away when this command has come to its end. Broken off, it is called again.
    """

    async def wrap() -> Code:
        came = await _asked(project, "rotate", {})
        if project.is_json:
            print_json(came)
        else:
            sys.stdout.write(f"{came['rewrapped']} keys were wrapped by another master key, and are by this one now\n")
        return Code.OK

    return finish(wrap())

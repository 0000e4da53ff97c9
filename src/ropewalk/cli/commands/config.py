"""`ropewalk config`: what is set, and who said so."""

import os
from typing import Any, Final

import click

from ropewalk.cli.backend.address import shown
from ropewalk.cli.backend.project import Project, on_store
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.columns import kept, prose
from ropewalk.cli.views.console import print_drawn, print_json
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import plain
from ropewalk.configuration import Configuration, Found, strangers

MASKED: Final = "***"


@click.group()
def config() -> None:
    """Say what is set, and where each value came from."""


@config.command()
@on_store
def show(project: Project) -> int:
    """List every setting: its value, and who said so.

    A flag wins over the environment, that over the configuration file, that over the default.
    """
    unknown = strangers(os.environ)
    if project.is_json:
        print_json(
            {"file": project.configuration.file, "settings": _as_json(project.configuration), "unknown": list(unknown)}
        )
        return Code.OK
    print_drawn(_listing(project.configuration))
    for name in unknown:
        click.echo(f"{plain(name)} is in the environment, and no setting of this name is known", err=True)
    return Code.OK


def _as_json(configuration: Configuration) -> dict[str, Any]:
    return {each.setting.name: {"value": _shown(each), "origin": each.origin} for each in configuration}


def _listing(configuration: Configuration) -> Table:
    table = Table(kept("SETTING"), kept("FROM"), prose("VALUE"))
    for each in configuration:
        table.add(each.setting.name, each.origin, _words(_shown(each)))
    return table


def _shown(found: Found) -> Any:
    """The value without a password in it."""
    if found.setting.is_secret and found.value:
        return MASKED
    if found.setting.name == "db":
        return shown(found.value)
    return found.value


def _words(value: Any) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return str(value).lower()
        case tuple() | list():
            return plain(", ".join(map(str, value))) or "–"
        case dict():
            return plain(", ".join(f"{name}={each}" for name, each in value.items())) or "–"
    return plain(str(value))

"""What a command works on: which store, which node types, and how to answer."""

import os
import shlex
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, TypeVar

import click
from msgspec import Struct
from msgspec.structs import replace

from ropewalk.cli.backend.address import address, shown
from ropewalk.cli.backend.profiles import Server, profile
from ropewalk.configuration import Configuration, resolve
from ropewalk.core.errors import InvalidInput
from ropewalk.store.address import is_shared
from ropewalk.wiring import FleetSettings, Settings

Command = TypeVar("Command", bound=Callable[..., Any])


class Project(Struct, frozen=True):
    """The store, the modules that define node types, whether the answer is for a program, and all that is set.

    `file` is the configuration that the caller named, None for the one in the current folder. A `server` has the store
    and the node types itself, and then `db` and `nodes` do not matter.
    """

    db: str
    nodes: tuple[str, ...]
    is_json: bool
    configuration: Configuration
    file: str | None = None
    server: Server | None = None

    @property
    def settings(self) -> Settings:
        """What holds for a process that executes here."""
        return replace(Settings.of(self.configuration), db=self.db)

    @property
    def fleet(self) -> FleetSettings:
        """How it lives with others on a shared store."""
        return self.settings.fleet

    @property
    def is_shared(self) -> bool:
        """Whether the store is a server's, for any number of workers, and not a file of one process."""
        return is_shared(self.db)

    @property
    def has_executors(self) -> bool:
        """Whether other processes execute there even if this command does not: the workers of a fleet, or a server."""
        return self.is_shared or self.server is not None

    @property
    def place(self) -> str:
        """The store's address without its password."""
        return shown(self.db)

    @property
    def arguments(self) -> list[str]:
        """The options with which another command works on the same."""
        file = () if self.file is None else ("--config", self.file)
        return ["--db", self.db, *file, *(part for module in self.nodes for part in ("--nodes", module))]

    def told(self, **flags: Any) -> "Project":
        """The same, with what a command's own options say; one that is None says nothing."""
        said = {name.replace("__", "."): value for name, value in flags.items()}
        return project(self.db, self.nodes, is_json=self.is_json, file=self.file, flags=said)

    def hint(self, *words: str) -> str:
        """A command to type next, with the options it needs here."""
        if self.server is not None:
            return shlex.join(["ropewalk", *words, *_options(self.server)])
        default = project(None, (), is_json=False, file=self.file)
        options = [] if self.db == default.db else ["--db", self.place]
        options += [] if self.file is None else ["--config", self.file]
        extra = () if self.nodes == default.nodes else self.nodes
        return shlex.join(["ropewalk", *words, *options, *(part for module in extra for part in ("--nodes", module))])


chosen: Final[ContextVar[Project | None]] = ContextVar("chosen", default=None)
"""What the command of this process works on, for what is said when it fails."""


def _options(server: Server) -> list[str]:
    if server == chosen_server(None, None, None):
        return []
    return ["--server", server.url, *(() if server.workspace is None else ("--workspace", server.workspace))]


def project(db: str | None, nodes: tuple[str, ...], *, is_json: bool, environment: Mapping[str, str] = os.environ,
            file: str | None = None, flags: Mapping[str, Any] | None = None) -> Project:  # fmt: skip
    """What options, environment and configuration file say together."""
    said = {**(flags or {}), "db": db or None, "nodes": nodes or None}
    configuration = resolve(said, environment, file)
    return Project(address(configuration["db"]), configuration["nodes"], is_json, configuration, file)


def chosen_server(url: str | None, name: str | None, workspace: str | None) -> Server | None:
    """The server that options and environment name, None if they name none."""
    if url is not None and name is not None:
        raise InvalidInput("--server and --profile both say where: give one of them")
    if url is None and name is None:
        url, name = os.environ.get("ROPEWALK_SERVER"), os.environ.get("ROPEWALK_PROFILE")
    found = Server(url.rstrip("/")) if url else profile(name) if name else None
    return found if found is None or workspace is None else Server(found.url, workspace)


def on_store(command: Command) -> Command:
    """Gives a command that needs the store itself its options, and hands it the `Project` they make."""

    @_store_options
    @click.option("--server", hidden=True)
    @click.option("--profile", hidden=True)
    @wraps(command)
    def with_project(*arguments: Any, db: str | None, nodes: tuple[str, ...], file: str | None, is_json: bool,
                     server: str | None, profile: str | None, **options: Any) -> Any:  # fmt: skip
        if server or profile:
            name = click.get_current_context().info_name
            raise InvalidInput(f"`ropewalk {name}` needs the store itself, and not a server: name it with --db")
        here = project(db, nodes, is_json=is_json, file=file)
        chosen.set(here)
        return command(here, *arguments, **options)

    return with_project  # type: ignore[return-value]  # the options it adds are taken away again


def on_store_or_server(command: Command) -> Command:
    """The same for a command that works on a store and through a server alike."""

    @_store_options
    @click.option("--server", metavar="URL", help="Ask this server instead of a store. [env: ROPEWALK_SERVER]")
    @click.option("--profile", metavar="NAME", help="The server of this login. [env: ROPEWALK_PROFILE]")
    @click.option("--workspace", metavar="NAME", help="Which workspace of the server, if not the token's own.")
    @wraps(command)
    def with_project(*arguments: Any, db: str | None, nodes: tuple[str, ...], file: str | None, is_json: bool,
                     server: str | None, profile: str | None, workspace: str | None,
                     **options: Any) -> Any:  # fmt: skip
        there = _there(db, server, profile, workspace)
        here = replace(project(db, nodes, is_json=is_json, file=file), server=there)
        chosen.set(here)
        return command(here, *arguments, **options)

    return with_project  # type: ignore[return-value]  # the options it adds are taken away again


def _there(db: str | None, server: str | None, profile: str | None, workspace: str | None) -> Server | None:
    """The server to ask; None if an option names a store, which wins over a server in the environment."""
    if db is not None and (server or profile):
        raise InvalidInput("--db names a store and --server or --profile a server: give one of them")
    found = None if db is not None else chosen_server(server, profile, workspace)
    if found is None and workspace is not None:
        raise InvalidInput("--workspace is for a server: name one with --server or --profile")
    return found


def _store_options(command: Command) -> Command:
    """The options every command has."""
    for option in reversed(_STORE_OPTIONS):
        command = option(command)
    return command


_STORE_OPTIONS: Final[tuple[Callable[[Any], Any], ...]] = (
    click.option(
        "--db",
        metavar="PATH|URL",
        help="The store: a file, or postgresql://user@host/database. [env: ROPEWALK_DB; default: ropewalk.db]",
    ),
    click.option(
        "--nodes",
        multiple=True,
        metavar="MODULE",
        help="A module, .py file or YAML declaration with node types; repeatable.",
    ),
    click.option(
        "--config", "file", metavar="FILE", help="The configuration. [env: ROPEWALK_CONFIG; default: ropewalk.toml]"
    ),
    click.option("--json", "is_json", is_flag=True, help="Answer with JSON and nothing else."),
)

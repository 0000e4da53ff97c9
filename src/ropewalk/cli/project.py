"""What a command works on: which store, which node types, and how to answer.

An option wins over the environment, that over `ropewalk.toml` in the current directory:

    db = "jobs.db"              # or postgresql://user@host/database
    nodes = ["nodes.py"]
    lease = 15                  # of a fleet: silent for so long (s), a worker counts as dead
    notify = true               # workers wake each other
    pooled = false              # a transaction pooler is in between
"""

import os
import shlex
import tomllib
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec
from msgspec import Struct

from ropewalk.cli.address import address, shown
from ropewalk.core.errors import InvalidInput, RopewalkError
from ropewalk.wiring import FleetSettings, is_shared

FILE: Final = "ropewalk.toml"
SHORTEST_LEASE: Final = 1
LONGEST_LEASE: Final = 3600
_YES: Final = ("1", "true", "yes", "on")
_NO: Final = ("0", "false", "no", "off")
Command = TypeVar("Command", bound=Callable[..., Any])


class ProjectFile(Struct, frozen=True, forbid_unknown_fields=True):
    """What `ropewalk.toml` may say."""

    db: str | None = None
    nodes: tuple[str, ...] = ()
    lease: float = FleetSettings().lease_seconds
    notify: bool = True
    pooled: bool = False


class Project(Struct, frozen=True):
    """The store, the modules that define node types, and whether the answer is for a program."""

    db: str
    nodes: tuple[str, ...] = ()
    is_json: bool = False
    fleet: FleetSettings = FleetSettings()

    @property
    def is_shared(self) -> bool:
        """Whether the store is a server's, for any number of workers, and not a file of one process."""
        return is_shared(self.db)

    @property
    def place(self) -> str:
        """The store as anyone may see it."""
        return shown(self.db)

    @property
    def arguments(self) -> list[str]:
        """The options with which another command works on the same."""
        return ["--db", self.db, *(part for module in self.nodes for part in ("--nodes", module))]

    def hint(self, *words: str) -> str:
        """A command to type next, with the options it needs here."""
        default = project(None, (), is_json=False)
        options = [] if self.db == default.db else ["--db", self.place]
        extra = () if self.nodes == default.nodes else self.nodes
        return shlex.join(["ropewalk", *words, *options, *(part for module in extra for part in ("--nodes", module))])


def project(db: str | None, nodes: tuple[str, ...], *, is_json: bool, environment: Mapping[str, str] = os.environ,
            folder: str = ".") -> Project:  # fmt: skip
    """What options, environment and project file say together."""
    file = _project_file(Path(folder) / FILE)
    chosen = db or environment.get("ROPEWALK_DB") or file.db or "ropewalk.db"
    modules = nodes or tuple(environment.get("ROPEWALK_NODES", "").replace(",", " ").split()) or file.nodes
    return Project(address(chosen), modules, is_json, _fleet(file, environment))


def _fleet(file: ProjectFile, environment: Mapping[str, str]) -> FleetSettings:
    return FleetSettings(
        lease_seconds=_seconds(environment.get("ROPEWALK_LEASE"), file.lease),
        notify=_is_on(environment.get("ROPEWALK_NOTIFY"), file.notify),
        pooled=_is_on(environment.get("ROPEWALK_POOLED"), file.pooled),
    )


def _seconds(word: str | None, otherwise: float) -> float:
    try:
        given = otherwise if word is None else float(word)
    except ValueError as error:
        raise InvalidInput(f"ROPEWALK_LEASE is {word!r}: give it in seconds") from error
    if not SHORTEST_LEASE <= given <= LONGEST_LEASE:
        raise InvalidInput(f"a lease takes from {SHORTEST_LEASE} to {LONGEST_LEASE} s, not {given:g}")
    return given


def _is_on(word: str | None, otherwise: bool) -> bool:
    if word is None:
        return otherwise
    if word.lower() not in (*_YES, *_NO):
        raise InvalidInput(f"ROPEWALK_NOTIFY and ROPEWALK_POOLED are 1 or 0, not {word!r}")
    return word.lower() in _YES


def _project_file(path: Path) -> ProjectFile:
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), ProjectFile)
    except FileNotFoundError:
        return ProjectFile()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise RopewalkError(
            f"{path} cannot be used: {error}; it may have `db`, `nodes`, `lease`, `notify` and `pooled`"
        ) from error


def on_project(command: Command) -> Command:
    """Gives a command the options every one has, and hands it the `Project` they make."""

    @click.option(
        "--db",
        metavar="PATH|URL",
        help="The store: a file, or postgresql://user@host/database. [env: ROPEWALK_DB; default: ropewalk.db]",
    )
    @click.option("--nodes", multiple=True, metavar="MODULE", help="A module or .py file with node types; repeatable.")
    @click.option("--json", "is_json", is_flag=True, help="Answer with JSON and nothing else.")
    @wraps(command)
    def with_project(*arguments: Any, db: str | None, nodes: tuple[str, ...], is_json: bool, **options: Any) -> Any:
        return command(project(db, nodes, is_json=is_json), *arguments, **options)

    return with_project  # type: ignore[return-value]  # the options it adds are taken away again

"""What a command works on: which store, which node types, and how to answer.

An option wins over the environment, that over `ropewalk.toml` in the current directory:

    db = "jobs.db"
    nodes = ["nodes.py"]
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

from ropewalk.core.errors import RopewalkError

FILE: Final = "ropewalk.toml"
Command = TypeVar("Command", bound=Callable[..., Any])


class ProjectFile(Struct, frozen=True, forbid_unknown_fields=True):
    """What `ropewalk.toml` may say."""

    db: str | None = None
    nodes: tuple[str, ...] = ()


class Project(Struct, frozen=True):
    """The store, the modules that define node types, and whether the answer is for a program."""

    db: str
    nodes: tuple[str, ...] = ()
    is_json: bool = False

    @property
    def arguments(self) -> list[str]:
        """The options with which another command works on the same."""
        return ["--db", self.db, *(part for module in self.nodes for part in ("--nodes", module))]

    def hint(self, *words: str) -> str:
        """A command to type next, with the options it needs here."""
        default = project(None, (), is_json=False)
        options = [] if self.db == default.db else ["--db", self.db]
        extra = () if self.nodes == default.nodes else self.nodes
        return shlex.join(["ropewalk", *words, *options, *(part for module in extra for part in ("--nodes", module))])


def project(db: str | None, nodes: tuple[str, ...], *, is_json: bool, environment: Mapping[str, str] = os.environ,
            folder: str = ".") -> Project:  # fmt: skip
    """What options, environment and project file say together."""
    file = _project_file(Path(folder) / FILE)
    chosen = db or environment.get("ROPEWALK_DB") or file.db or "ropewalk.db"
    modules = nodes or tuple(environment.get("ROPEWALK_NODES", "").replace(",", " ").split()) or file.nodes
    return Project(chosen.removeprefix("sqlite:///"), modules, is_json)


def _project_file(path: Path) -> ProjectFile:
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), ProjectFile)
    except FileNotFoundError:
        return ProjectFile()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise RopewalkError(f"{path} cannot be used: {error}; it may have `db` and `nodes`") from error


def on_project(command: Command) -> Command:
    """Gives a command the options every one has, and hands it the `Project` they make."""

    @click.option("--db", metavar="PATH", help="The store. [env: ROPEWALK_DB; default: ropewalk.db]")
    @click.option("--nodes", multiple=True, metavar="MODULE", help="A module or .py file with node types; repeatable.")
    @click.option("--json", "is_json", is_flag=True, help="Answer with JSON and nothing else.")
    @wraps(command)
    def with_project(*arguments: Any, db: str | None, nodes: tuple[str, ...], is_json: bool, **options: Any) -> Any:
        return command(project(db, nodes, is_json=is_json), *arguments, **options)

    return with_project  # type: ignore[return-value]  # the options it adds are taken away again

"""`ropewalk files`: ls, get."""

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click
from rich.text import Text

from ropewalk.cli.backend.ids import execution_id
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.queries import Queries, queries_on
from ropewalk.cli.backend.session import finish
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import answer
from ropewalk.cli.views.files import files_listing
from ropewalk.cli.views.text import plain
from ropewalk.core.errors import NotFound, RopewalkError
from ropewalk.nodes.files import file_name

Json = dict[str, Any]
STDOUT: Final = "-"


@click.group()
def files() -> None:
    """List the files of an execution, or save one."""


@files.command()
@click.argument("execution")
@on_store_or_server
def ls(project: Project, execution: str) -> int:
    """List the files that an execution names."""

    async def show() -> Code:
        async with queries_on(project) as queries:
            found = await queries.files(await execution_id(queries, execution))
        return answer(found, lambda: files_listing(found), is_json=project.is_json)

    return finish(show())


@files.command()
@click.argument("execution")
@click.argument("wanted", metavar="HASH|NAME")
@click.option("-o", "--output", metavar="FILE", help="Where to save it, - for stdout; by default under its name, here.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@on_store_or_server
def get(project: Project, execution: str, wanted: str, output: str | None, force: bool) -> int:
    """Save a file that an execution names, by the beginning of its hash or by its name.

    It is there whole, or not at all.
    """

    async def save() -> Code:
        async with queries_on(project) as queries:
            found = await execution_id(queries, execution)
            chosen = _chosen(await queries.files(found), wanted)
            if output == STDOUT:
                return await _printed(queries, found, chosen["hash"])
            path = output or file_name(chosen["name"] or chosen["hash"][:12])
            if os.path.exists(path) and not force:
                raise RopewalkError(f"there is a file {path} already: --force replaces it, -o saves elsewhere")
            await queries.save_file(found, chosen["hash"], path)
        told = {"path": str(Path(path).absolute()), "size": chosen["size"], "hash": chosen["hash"]}
        return answer(told, lambda: Text(plain(f"saved {path}, {chosen['size']:,} bytes")), is_json=project.is_json)

    return finish(save())


async def _printed(queries: Queries, execution: str, digest: str) -> Code:
    """The content on stdout, once it is known to be whole."""
    with TemporaryDirectory(prefix="ropewalk-") as folder:
        path = os.path.join(folder, "content")
        await queries.save_file(execution, digest, path)
        with open(path, "rb") as content:
            shutil.copyfileobj(content, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    return Code.OK


def _chosen(found: list[Json], file: str) -> Json:
    """The one file of this name, or whose hash begins so."""
    named = [each for each in found if each["name"] == file]
    chosen = named or [each for each in found if len(file) >= 4 and each["hash"].startswith(file)]
    if not chosen:
        raise NotFound(f"the execution names no file {file!r}: `ropewalk files ls` lists those it names")
    if len(chosen) > 1:
        raise RopewalkError(f"{len(chosen)} files are called {file!r}: name one by its hash")
    return chosen[0]

"""`ropewalk executions`: list, show, events."""

import asyncio
from typing import Any, Final

import click

from ropewalk.cli.codes import Code
from ropewalk.cli.console import console, print_json, print_json_line
from ropewalk.cli.ids import execution_id
from ropewalk.cli.picture import Picture
from ropewalk.cli.project import Project, on_project
from ropewalk.cli.rendering.executions import details, listing
from ropewalk.cli.rendering.story import event_line
from ropewalk.cli.rendering.text import plain
from ropewalk.cli.session import WORKSPACE, blobs_of, finish, is_over, reading_from
from ropewalk.cli.view import now
from ropewalk.core.errors import NotFound
from ropewalk.core.state import ExecutionState
from ropewalk.service import reading
from ropewalk.store import executions as stored
from ropewalk.store import workflows
from ropewalk.store.access import Reader

LARGEST_PAGE: Final = 1000
_PAUSE: Final = 0.1


@click.group()
def executions() -> None:
    """List executions, show one, or read its events."""


@executions.command()
@click.option("--state", type=click.Choice(list(ExecutionState), case_sensitive=False), help="Only those.")
@click.option("--workflow", metavar="NAME", help="Only those of this workflow.")
@click.option("--limit", type=click.IntRange(1, LARGEST_PAGE), default=20, show_default=True)
@click.option("--before", metavar="ID", default=stored.NEWEST, help="Older than this one: the next page.")
@on_project
def ls(project: Project, state: str | None, workflow: str | None, limit: int, before: str) -> int:
    """List executions, the newest first."""

    async def look() -> Code:
        async with reading_from(project) as reader:
            wanted = stored.Filter(
                workflow=None if workflow is None else await _workflow_id(reader, workflow),
                state=None if state is None else ExecutionState(state),
            )
            found = await reading.list_executions(reader, WORKSPACE, wanted, before=before, limit=limit)
        if project.is_json:
            print_json(found)
        else:
            console().print(listing(found, now()))
        return Code.OK

    return finish(look())


async def _workflow_id(reader: Reader, name: str) -> str:
    found = await workflows.get_by_name(reader, WORKSPACE, name)
    if found is None:
        raise NotFound(f"there is no workflow {name!r} in this store")
    return found.id


@executions.command()
@click.argument("execution")
@on_project
def show(project: Project, execution: str) -> int:
    """Show an execution: its timeline, its input and what came of it."""

    async def look() -> Code:
        async with reading_from(project) as reader:
            found = await execution_id(reader, execution)
            shown = await reading.get_execution(reader, blobs_of(project, reader), WORKSPACE, found)
            if project.is_json:
                print_json({**shown, "runs": await reading.list_runs(reader, found)})
                return Code.OK
            picture = Picture.of(await reading.recorded(reader, found)).json()
        console().print(details(shown, picture, now()))
        return Code.OK

    return finish(look())


@executions.command()
@click.argument("execution")
@click.option("--after", type=int, default=0, metavar="SEQ", help="Only those after this number.")
@click.option("--follow", is_flag=True, help="Go on until the execution ends.")
@on_project
def events(project: Project, execution: str, after: int, follow: bool) -> int:
    """Read the log of an execution, one line an event (JSON lines with --json)."""

    async def look() -> Code:
        async with reading_from(project) as reader:
            found = await execution_id(reader, execution)
            last = await _print_events(project, reader, found, after)
            while follow and not await is_over(reader, found):
                await asyncio.sleep(_PAUSE)
                last = await _print_events(project, reader, found, last)
            await _print_events(project, reader, found, last)
        return Code.OK

    return finish(look())


async def _print_events(project: Project, reader: Reader, execution: str, after: int) -> int:
    """Print what is new; the number of the last one printed."""
    envelopes: list[dict[str, Any]] = await reading.list_events(reader, execution, after)
    for envelope in envelopes:
        if project.is_json:
            print_json_line(envelope)
        else:
            print(plain(event_line(envelope)), flush=True)
    return envelopes[-1]["seq"] if envelopes else after

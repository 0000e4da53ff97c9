"""`ropewalk executions`: list, show, events."""

from typing import Any, Final

import click
from msgspec.structs import replace

from ropewalk.cli.backend.bulk_queries import NO_MORE, bulk_queries
from ropewalk.cli.backend.ids import before_id, execution_id
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.queries import Search, queries_on
from ropewalk.cli.backend.session import finish
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.streams import is_read
from ropewalk.cli.views.console import answer, print_drawn, print_json, print_json_line
from ropewalk.cli.views.events import event_line
from ropewalk.cli.views.executions import details, listing
from ropewalk.cli.views.more import tell_more
from ropewalk.cli.views.progress import now
from ropewalk.cli.views.snapshot import Snapshot
from ropewalk.cli.views.text import plain
from ropewalk.cli.views.waiting import waiting_listing
from ropewalk.core.state import ExecutionState

LARGEST_PAGE: Final = 1000


@click.group()
def executions() -> None:
    """List executions, show one, or read its events."""


@executions.command()
@click.option("--state", type=click.Choice(list(ExecutionState), case_sensitive=False), help="Only those.")
@click.option("--workflow", metavar="NAME", help="Only those of this workflow.")
@click.option("--waiting", is_flag=True, help="Only those of which a node waits, and what for.")
@click.option("--search", metavar="TEXT", help="Only those with this text in id, workflow or error.")
@click.option("--limit", type=click.IntRange(1, LARGEST_PAGE), default=20, show_default=True)
@click.option("--before", metavar="ID", help="Older than this one: the next page.")
@on_store_or_server
def ls(project: Project, state: str | None, workflow: str | None, waiting: bool, search: str | None, limit: int,
       before: str | None) -> int:  # fmt: skip
    """List executions, the newest first."""

    async def show() -> Code:
        async with queries_on(project) as queries:
            wanted = Search(
                workflow=None if workflow is None else await queries.workflow_id(workflow),
                state=None if state is None else ExecutionState(state),
                before=await before_id(queries, before),
                limit=limit,
                search=search,
                waiting=waiting,
            )
            found = await queries.executions(wanted)
            last = found[-1]["id"] if len(found) == limit and not project.is_json else None
            left = NO_MORE if last is None else await bulk_queries(queries).count(replace(wanted, before=last))
        drawn = waiting_listing if waiting else lambda some: listing(some, now())
        code = answer(found, lambda: drawn(found), is_json=project.is_json)
        tell_more(project, left, "executions", "ls", *_same(workflow, wanted, last))
        return code

    return finish(show())


def _same(workflow: str | None, wanted: Search, last: str | None) -> list[str]:
    """The options that show the next page of the same list."""
    said = {"--state": wanted.state, "--workflow": workflow, "--search": wanted.search, "--before": last}
    options = [word for name, value in said.items() if value for word in (name, value)]
    return ["--waiting", *options] if wanted.waiting else options


@executions.command()
@click.argument("execution")
@on_store_or_server
def show(project: Project, execution: str) -> int:
    """Show an execution: its timeline, its input and what came of it."""

    async def draw() -> Code:
        async with queries_on(project) as queries:
            found = await execution_id(queries, execution)
            shown = await queries.execution(found)
            if project.is_json:
                print_json({**shown, "runs": await queries.runs(found)})
                return Code.OK
            snapshot = Snapshot.of(await queries.history(found)).json()
        print_drawn(details(shown, snapshot, now()))
        return Code.OK

    return finish(draw())


@executions.command()
@click.argument("execution")
@click.option("--after", type=int, default=0, metavar="SEQ", help="Only those after this number.")
@click.option("--follow", is_flag=True, help="Go on until the execution ends.")
@on_store_or_server
def events(project: Project, execution: str, after: int, follow: bool) -> int:
    """Read the log of an execution, one line an event (JSON lines with --json)."""

    async def read() -> Code:
        async with queries_on(project) as queries:
            found = await execution_id(queries, execution)
            if follow:
                async for envelope in queries.follow(found, after):
                    _print_event(project, envelope)
                    if not is_read():
                        break
                return Code.OK
            for envelope in await queries.events(found, after):
                _print_event(project, envelope)
        return Code.OK

    return finish(read())


def _print_event(project: Project, envelope: dict[str, Any]) -> None:
    if project.is_json:
        print_json_line(envelope)
    else:
        print(plain(event_line(envelope)), flush=True)

"""`ropewalk workers`: who is there."""

import click

from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.queries import queries_on
from ropewalk.cli.backend.session import finish
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import answer
from ropewalk.cli.views.workers import workers_listing


@click.command()
@click.argument("_", metavar="[ls]", required=False, type=click.Choice(["ls"]))
@click.option("--all", "is_all", is_flag=True, help="Also those that have left, and commands that only tell something.")
@on_store_or_server
def workers(project: Project, _: str | None, is_all: bool) -> int:
    """List the workers, and whether they are alive."""

    async def show() -> Code:
        async with queries_on(project) as queries:
            found = await queries.workers(is_all=is_all)
        return answer(found, lambda: workers_listing(found), is_json=project.is_json)

    return finish(show())

"""`ropewalk workers`: who is there."""

import click

from ropewalk.cli.codes import Code
from ropewalk.cli.console import answer
from ropewalk.cli.looking import looking
from ropewalk.cli.project import Project, anywhere
from ropewalk.cli.rendering.workers import workers_listing
from ropewalk.cli.session import finish


@click.command()
@click.argument("_", metavar="[ls]", required=False, type=click.Choice(["ls"]))
@click.option("--all", "is_all", is_flag=True, help="Also those that have left, and commands that only tell something.")
@anywhere
def workers(project: Project, _: str | None, is_all: bool) -> int:
    """List the workers, and whether they are alive."""

    async def show() -> Code:
        async with looking(project) as look:
            found = await look.workers(is_all=is_all)
        return answer(found, lambda: workers_listing(found), is_json=project.is_json)

    return finish(show())

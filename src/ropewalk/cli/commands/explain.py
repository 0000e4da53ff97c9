"""`ropewalk explain`."""

import click

from ropewalk.cli.backend.ids import execution_id
from ropewalk.cli.backend.project import Project, anywhere
from ropewalk.cli.backend.queries import looking
from ropewalk.cli.backend.session import finish
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import answer
from ropewalk.cli.views.explain import explained


@click.command()
@click.argument("execution")
@click.argument("node", required=False)
@anywhere
def explain(project: Project, execution: str, node: str | None) -> int:
    """Say why an execution is not running, and what it waits for.

    With NODE, that node is explained, also one that is done.
    """

    async def show() -> Code:
        async with looking(project) as look:
            found = await look.explanation(await execution_id(look, execution), node)
        return answer(found, lambda: explained(found, project.hint), is_json=project.is_json)

    return finish(show())

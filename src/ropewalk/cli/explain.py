"""`ropewalk explain`."""

import click

from ropewalk.cli.codes import Code
from ropewalk.cli.console import console, print_json
from ropewalk.cli.ids import execution_id
from ropewalk.cli.looking import looking
from ropewalk.cli.project import Project, anywhere
from ropewalk.cli.rendering.explain import explained
from ropewalk.cli.session import finish


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
            answer = await look.explanation(await execution_id(look, execution), node)
        if project.is_json:
            print_json(answer)
        else:
            console().print(explained(answer, project.hint))
        return Code.OK

    return finish(show())

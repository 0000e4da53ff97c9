"""`ropewalk explain`."""

import click

from ropewalk.cli.backend.ids import execution_id
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.queries import queries_on
from ropewalk.cli.backend.session import finish
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import answer
from ropewalk.cli.views.explain import explained


@click.command()
@click.argument("execution")
@click.argument("node", required=False)
@on_store_or_server
def explain(project: Project, execution: str, node: str | None) -> int:
    """Say why an execution is not running, and what it waits for.

    With NODE, that node is explained, also one that is done.
    """

    async def show() -> Code:
        async with queries_on(project) as queries:
            found = await queries.explanation(await execution_id(queries, execution), node)
        return answer(found, lambda: explained(found, project.hint), is_json=project.is_json)

    return finish(show())

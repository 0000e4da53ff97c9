"""`ropewalk approvals`: what waits for a person."""

from typing import Final

import click

from ropewalk.cli.backend.bulk_queries import Counted, bulk_queries
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.queries import queries_on
from ropewalk.cli.backend.session import finish
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import answer
from ropewalk.cli.views.more import tell_more
from ropewalk.cli.views.progress import now
from ropewalk.cli.views.waiting import approvals_listing

MOST_COUNTED: Final = 1000


@click.command()
@click.argument("_", metavar="[ls]", required=False, type=click.Choice(["ls"]))
@click.option("--workflow", metavar="NAME", help="Only those of this workflow.")
@click.option("--limit", type=click.IntRange(1, MOST_COUNTED), default=20, show_default=True)
@on_store_or_server
def approvals(project: Project, _: str | None, workflow: str | None, limit: int) -> int:
    """List what waits for a person, and who may answer.

    Those of the newest executions come first. `ropewalk approve` and `ropewalk reject` answer.
    """

    async def show() -> Code:
        async with queries_on(project) as queries:
            chosen = None if workflow is None else await queries.workflow_id(workflow)
            wanted = limit if project.is_json else limit + MOST_COUNTED
            found = await bulk_queries(queries).approvals(chosen, wanted)
        shown = found[:limit]
        code = answer(shown, lambda: approvals_listing(shown, project.hint, now()), is_json=project.is_json)
        left = Counted(len(found) - len(shown), len(found) < wanted)
        narrowed = () if workflow is None else ("--workflow", workflow)
        tell_more(project, left, "approvals", *narrowed, "--limit", str(min(MOST_COUNTED, 10 * limit)))
        return code

    return finish(show())

"""`ropewalk explain`."""

from collections.abc import Callable

import click

from ropewalk.cli.codes import Code
from ropewalk.cli.console import console, print_json
from ropewalk.cli.ids import execution_id
from ropewalk.cli.project import Project, on_project
from ropewalk.cli.rendering.explain import explained
from ropewalk.cli.session import WORKSPACE, finish, owner_of, reading_from
from ropewalk.cli.view import now
from ropewalk.core.duration import SECOND
from ropewalk.service import explaining
from ropewalk.store.workers import Worker


def _liveness(project: Project) -> Callable[[Worker], bool] | None:
    """The one worker of a file lives as long as its lock is held; those of a fleet as long as their lease."""
    if project.is_shared:
        return None
    has_owner = owner_of(project) is not None
    return lambda worker: has_owner


@click.command()
@click.argument("execution")
@click.argument("node", required=False)
@on_project
def explain(project: Project, execution: str, node: str | None) -> int:
    """Say why an execution is not running, and what it waits for.

    With NODE, that node is explained, also one that is done.
    """

    async def look() -> Code:
        async with reading_from(project) as reader:
            found = await execution_id(reader, execution)
            answer = await explaining.explain(
                reader, WORKSPACE, found, now(), node=node, alive=_liveness(project),
                lease=round(project.fleet.lease_seconds * SECOND),
            )  # fmt: skip
        if project.is_json:
            print_json(answer)
        else:
            console().print(explained(answer, project.hint))
        return Code.OK

    return finish(look())

"""`ropewalk resume`: one execution, or everything that is unfinished."""

import click

from ropewalk.cli.backend.ids import execution_id
from ropewalk.cli.backend.project import Project, anywhere
from ropewalk.cli.backend.session import Session, finish, me
from ropewalk.cli.processes.attaching import Way, carry_on, detach_option
from ropewalk.cli.processes.resuming import detached, work_off


@click.command()
@click.argument("execution", required=False)
@detach_option
@click.option("--background", is_flag=True, hidden=True)
@anywhere
def resume(project: Project, execution: str | None, detach: bool, background: bool) -> int:
    """Go on with what was paused, or what a crash left behind.

    Without EXECUTION, everything unfinished in the store goes on until nothing is. On a PostgreSQL store the workers
    do that, and with --server the server; this command only lets what is paused go on.
    """
    if background:
        return finish(work_off(project, wakes_paused=False, is_background=True))
    if execution is None:
        return finish(detached(project) if detach else work_off(project, wakes_paused=True))

    async def go_on(session: Session) -> str:
        found = await execution_id(session.look, execution)
        await session.verbs.resume(found, me())
        return found

    return carry_on(project, go_on, Way(detach, watches_owner=True))

"""`ropewalk resume`: one execution, or everything that is unfinished."""

import click

from ropewalk.cli.backend.ids import execution_id
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.session import Session, finish, me
from ropewalk.cli.processes.attaching import Mode, attach, detach_option
from ropewalk.cli.processes.resuming import resume_all, resume_all_detached


@click.command()
@click.argument("execution", required=False)
@detach_option
@click.option("--background", is_flag=True, hidden=True)
@on_store_or_server
def resume(project: Project, execution: str | None, detach: bool, background: bool) -> int:
    """Go on with what was paused, or what a crash left behind.

    Without EXECUTION, everything unfinished in the store goes on until nothing is. On a PostgreSQL store the workers
    do that, and with --server the server; this command only lets what is paused go on.
    """
    if background:
        return finish(resume_all(project, wakes_paused=False, is_background=True))
    if execution is None:
        return finish(resume_all_detached(project) if detach else resume_all(project, wakes_paused=True))

    async def go_on(session: Session) -> str:
        found = await execution_id(session.queries, execution)
        await session.verbs.resume(found, me())
        return found

    return attach(project, go_on, Mode(detach, watches_owner=True))

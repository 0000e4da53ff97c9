"""`ropewalk workers`: who is there."""

import click

from ropewalk.cli.codes import Code
from ropewalk.cli.console import console, print_json
from ropewalk.cli.fleet import Seen, seen
from ropewalk.cli.project import Project, on_project
from ropewalk.cli.rendering.workers import workers_listing
from ropewalk.cli.session import finish, reading_from
from ropewalk.core.canonical import JSON
from ropewalk.core.instant import rfc3339


@click.command()
@click.argument("_", metavar="[ls]", required=False, type=click.Choice(["ls"]))
@click.option("--all", "is_all", is_flag=True, help="Also those that have left, and commands that only tell something.")
@on_project
def workers(project: Project, _: str | None, is_all: bool) -> int:
    """List the workers, and whether they are alive."""

    async def look() -> Code:
        async with reading_from(project) as reader:
            everyone = await seen(project, reader)
        found = [_as_json(each) for each in everyone if is_all or not project.is_shared or _is_wanted(each)]
        if project.is_json:
            print_json(found)
        else:
            console().print(workers_listing(found))
        return Code.OK

    return finish(look())


def _is_wanted(each: Seen) -> bool:
    return each.is_worker and each.silence is not None


def _as_json(each: Seen) -> dict[str, JSON]:
    worker = each.worker
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.version,
        "pool": worker.pool,
        "load": worker.load,
        "slots": worker.slots,
        "startedAt": rfc3339(worker.started_at),
        "heartbeatAt": None if each.silence is None else rfc3339(worker.heartbeat_at),
        "silence": each.silence,
        "isAlive": each.is_alive,
    }

"""`ropewalk explain`."""

import click

from ropewalk.cli.codes import Code
from ropewalk.cli.console import console, print_json
from ropewalk.cli.explaining import Facts, explanation
from ropewalk.cli.ids import execution_id
from ropewalk.cli.picture import Picture
from ropewalk.cli.project import Project, on_project
from ropewalk.cli.rendering.explain import explained
from ropewalk.cli.session import WORKSPACE, finish, owner_of, reading_from
from ropewalk.cli.view import now
from ropewalk.core.events import ExecutionPaused
from ropewalk.core.state import ExecutionState, Resolution
from ropewalk.service.reading import Recorded, recorded
from ropewalk.store import dlq, executions
from ropewalk.store.access import Reader

MOST_LOOKED_AT = 1000


@click.command()
@click.argument("execution")
@on_project
def explain(project: Project, execution: str) -> int:
    """Say why an execution is not running, and what it waits for."""

    async def look() -> Code:
        async with reading_from(project) as reader:
            story = await recorded(reader, await execution_id(reader, execution))
            answer = explanation(Picture.of(story).json(), await _facts(project, reader, story))
        if project.is_json:
            print_json(answer)
        else:
            console().print(explained(answer, project.hint))
        return Code.OK

    return finish(look())


async def _facts(project: Project, reader: Reader, story: Recorded) -> Facts:
    owner = owner_of(project)
    pauses = [event.by for event in story.events if isinstance(event, ExecutionPaused)]
    letters = await dlq.of_execution(reader, story.id, limit=MOST_LOOKED_AT)
    return Facts(
        now=now(),
        owner=None if owner is None else owner.pid,
        paused_by=pauses[-1] if pauses else None,
        key_holder=await _key_holder(reader, story),
        max_parallel=story.plan.max_parallel,
        letters={letter.node: letter.id for letter in letters if letter.resolution == Resolution.PENDING},
    )


async def _key_holder(reader: Reader, story: Recorded) -> str | None:
    """Who else is under way with the same concurrency key, if this one has not begun."""
    key = story.accepted.concurrency_key
    if key is None or story.folded().is_started:
        return None
    for state in (ExecutionState.RUNNING, ExecutionState.PAUSED):
        wanted = executions.Filter(state=state)
        for row in await executions.listed(reader, WORKSPACE, wanted, limit=MOST_LOOKED_AT):
            if row.concurrency_key == key and row.id != story.id:
                return row.id
    return None

"""`ropewalk publish`: an event, to every execution that waits for it."""

import click

from ropewalk.cli.arguments import json_value
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.session import Executor, finish, me, open_session
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import print_json


@click.command()
@click.argument("subject")
@click.argument("payload", required=False)
@on_store_or_server
def publish(project: Project, subject: str, payload: str | None) -> int:
    """Publish an event to every execution that waits for it. PAYLOAD is JSON or @file."""
    given = None if payload is None else json_value(payload, "PAYLOAD")

    async def act() -> Code:
        async with open_session(project, executes=False) as session:
            told = await session.verbs.publish(subject, given, me())
            owner = session.owner
        if project.is_json:
            print_json({"subject": subject, "told": told})
        else:
            print(f"{subject}: {told} waiting{_next_step(project, owner) if told else ''}")
        return Code.OK

    return finish(act())


def _next_step(project: Project, owner: Executor | None) -> str:
    if owner is None:
        return f"; go on with: {project.hint('resume')}"
    return "" if owner.is_there else f"; {owner.words(project)}"

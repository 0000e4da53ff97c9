"""`ropewalk run`."""

import click
from msgspec.structs import replace

from ropewalk.cli.arguments import Loaded, assignments, json_value, load_workflow
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.session import Session, me
from ropewalk.cli.processes.attaching import Mode, attach
from ropewalk.core.canonical import JSON
from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import InvalidDefinition
from ropewalk.modules import Catalogue, catalogue


@click.command()
@click.argument("workflow", metavar="FILE|MODULE:WORKFLOW")
@click.option("--input", "value", metavar="JSON", help="The input: JSON, @file, or - for stdin.")
@click.option(
    "--var", "overrides", multiple=True, metavar="KEY=VALUE", help="Another value for a variable; repeatable."
)
@click.option("--detach", is_flag=True, help="Let a background process, or the workers, execute it; print the id.")
@on_store_or_server
def run(project: Project, workflow: str, value: str | None, overrides: tuple[str, ...], detach: bool) -> int:
    """Execute a workflow, and show how it goes.

    The result goes to stdout. Ctrl-C pauses the execution durably; a second one leaves at once, and nothing recorded
    is lost. If another process executes on the file, it takes the workflow over and this command watches.

    On a PostgreSQL store this command is a worker until the execution ends: it executes its own workflow, and claims
    like any worker what else waits in the queue. --detach leaves the workflow to the workers there are.

    With --server the file is saved there as the next version, unless it is the same, published and started.
    """
    loaded = load_workflow(workflow)
    project = replace(project, nodes=tuple(dict.fromkeys((*project.nodes, *loaded.modules))))
    given = None if value is None else json_value(value, "--input")
    variables = assignments(overrides, "--var")
    known = None if project.server is not None else _checked(project, loaded, given)

    async def start(session: Session) -> str:
        try:
            version = await session.verbs.save(loaded.value, me())
        except InvalidDefinition as error:
            raise loaded.explain(error) from error
        return await session.verbs.start(version, given, variables, me())

    return attach(project, start, Mode(detach, creates=True, watches_owner=True, joins=True, known=known))


def _checked(project: Project, loaded: Loaded, given: JSON) -> Catalogue:
    """What is known here, if it is enough for this workflow; before there is a store that nothing can be started on."""
    known = catalogue(project.nodes)
    try:
        parse_definition(loaded.value, known.types.infos(), missing=known.types.missing).check_input(given)
    except InvalidDefinition as error:
        raise loaded.explain(error) from error
    return known

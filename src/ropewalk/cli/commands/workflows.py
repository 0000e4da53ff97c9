"""`ropewalk workflows`: list, show, diff, publish."""

from typing import Any, Final

import click
from msgspec.structs import replace

from ropewalk.cli.arguments import Loaded, load_workflow
from ropewalk.cli.backend.bulk_queries import Counted
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.queries import Json, queries_on
from ropewalk.cli.backend.session import Session, finish, me, open_session
from ropewalk.cli.backend.workflow_queries import WorkflowQueries, workflow_queries
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import answer, print_json
from ropewalk.cli.views.more import tell_more
from ropewalk.cli.views.workflows import differences_listing, document_text, workflows_listing
from ropewalk.core.errors import InvalidDefinition, InvalidInput, InvalidTransition

MOST_COUNTED: Final = 1000
_FILES: Final = (".yaml", ".yml", ".json", ".py")


@click.group()
def workflows() -> None:
    """List workflows, show one, compare and publish versions."""


@workflows.command()
@click.option("--name", "prefix", default="", metavar="TEXT", help="Only those whose name begins like this.")
@click.option("--archived", is_flag=True, help="Archived ones too.")
@click.option("--limit", type=click.IntRange(1, MOST_COUNTED), default=50, show_default=True)
@on_store_or_server
def ls(project: Project, prefix: str, archived: bool, limit: int) -> int:
    """List workflows by name, with their latest and their published version."""

    async def show_all() -> Code:
        wanted = limit if project.is_json else limit + MOST_COUNTED
        async with queries_on(project) as queries:
            found = await workflow_queries(queries).listed(prefix, archived=archived, limit=wanted)
        shown = found[:limit]
        code = answer(shown, lambda: workflows_listing(shown), is_json=project.is_json)
        same = (*(("--name", prefix) if prefix else ()), *(("--archived",) if archived else ()))
        left = Counted(len(found) - len(shown), len(found) < wanted)
        tell_more(project, left, "workflows", "ls", *same, "--limit", str(MOST_COUNTED))
        return code

    return finish(show_all())


@workflows.command()
@click.argument("name")
@click.option(
    "--version", type=click.IntRange(1), help="Which version; the published one if left out, else the latest."
)
@on_store_or_server
def show(project: Project, name: str, version: int | None) -> int:
    """Show a workflow: its document as YAML, with its versions in comments."""

    async def draw() -> Code:
        async with queries_on(project) as queries:
            there = workflow_queries(queries)
            about = await there.summary(name)
            number = version or about["published"] or about["latest"]
            found = {**about, **await there.version(about["id"], number), "versions": await there.versions(about["id"])}
        if project.is_json:
            print_json(found)
        else:
            print(document_text(found), end="")
        return Code.OK

    return finish(draw())


@workflows.command()
@click.argument("name")
@click.option("--from", "before", type=click.IntRange(1), help="The version before; the one published if left out.")
@click.option("--to", "after", type=click.IntRange(1), help="The version after; the latest if left out.")
@on_store_or_server
def diff(project: Project, name: str, before: int | None, after: int | None) -> int:
    """Say what one version of a workflow changes in another.

    Without options, what the latest changes in the published one; if that is the latest, in the one before it.
    """

    async def compare() -> Code:
        async with queries_on(project) as queries:
            there = workflow_queries(queries)
            about = await there.summary(name)
            pair = _pair(about, before, after)
            found = {"from": pair[0], "to": pair[1], **await there.compared(about["id"], *pair)}
        return answer(found, lambda: differences_listing(about["name"], found), is_json=project.is_json)

    return finish(compare())


def _pair(about: Json, before: int | None, after: int | None) -> tuple[int, int]:
    """The versions to compare."""
    new: int = after or about["latest"]
    old = before or (about["published"] if about["published"] not in (None, new) else new - 1)
    if old < 1:
        raise InvalidTransition(f"workflow {about['name']!r} has one version: there is nothing to compare it with")
    return old, new


@workflows.command()
@click.argument("workflow", metavar="NAME|FILE|MODULE:WORKFLOW")
@click.option("--version", type=click.IntRange(1), help="Of NAME, which version; the latest if left out.")
@on_store_or_server
def publish(project: Project, workflow: str, version: int | None) -> int:
    """Let starts that name no version take this one.

    A file (.yaml, .yml, .json, .py, or MODULE:WORKFLOW) is saved first, as the next version unless it is the same as
    the latest. A name means a version that is saved already: so a published one is taken back.
    """
    if not _is_file(workflow):
        return finish(_publish_version(project, workflow, version))
    if version is not None:
        raise InvalidInput("--version is for a NAME: a file is saved as the next version, or is the latest")
    return finish(_publish_file(project, workflow))


def _is_file(word: str) -> bool:
    return ":" in word or word.endswith(_FILES)


async def _publish_version(project: Project, name: str, version: int | None) -> Code:
    async with open_session(project, executes=False) as session:
        about = await workflow_queries(session.queries).summary(name)
        number: int = version or about["latest"]
        changed = await session.verbs.publish_version(about["id"], number, me())
    return _published(project, about["name"], number, changed)


async def _publish_file(project: Project, file: str) -> Code:
    loaded = load_workflow(file)
    project = replace(project, nodes=tuple(dict.fromkeys((*project.nodes, *loaded.modules))))
    opening = open_session(project, executes=False, needs_types=True, creates=True)
    async with opening as session:
        before = await _published_before(workflow_queries(session.queries), loaded)
        saved = await _saved(session, loaded)
        about = await workflow_queries(session.queries).summary(saved.workflow)
    return _published(project, about["name"], saved.version, before != saved.version)


async def _published_before(queries: WorkflowQueries, loaded: Loaded) -> int | None:
    """The version that starts take now, if there is such a workflow."""
    name = loaded.value.get("name") if isinstance(loaded.value, dict) else None
    found = await queries.listed(name, archived=False, limit=1) if isinstance(name, str) else []
    return next((each["published"] for each in found if each["name"] == name), None)


async def _saved(session: Session, loaded: Loaded) -> Any:
    try:
        return await session.verbs.save(loaded.value, me())
    except InvalidDefinition as error:
        raise loaded.explain(error) from error


def _published(project: Project, name: str, version: int, changed: bool) -> Code:
    if project.is_json:
        print_json({"name": name, "version": version, "changed": changed})
    else:
        print(f"{name}: version {version} is published{'' if changed else ' already'}")
    return Code.OK

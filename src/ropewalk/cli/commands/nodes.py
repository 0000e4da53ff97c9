"""`ropewalk nodes`: what a node can be, and what each type takes and gives."""

from difflib import get_close_matches

import click

from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.backend.queries import Json
from ropewalk.cli.backend.session import finish
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import answer
from ropewalk.cli.views.node_types import type_page, types_listing
from ropewalk.core.definition.node_type import CATEGORIES
from ropewalk.core.errors import NotFound


@click.command()
@click.argument("words", nargs=-1, metavar="[show TYPE]")
@click.option("--category", type=click.Choice(CATEGORIES), help="Only the types of this category.")
@on_store_or_server
def nodes(project: Project, words: tuple[str, ...], category: str | None) -> int:
    """List the node types and what each is for, or show one.

    TYPE is shown with its fields, its ports and its output. Types of installed packages and of the modules that --nodes
    names are among them; with --server, those of the server.
    """
    match words:
        case () | ("ls",):
            wanted = None
        case ("show", name):
            wanted = name
        case _:
            raise click.UsageError("write `ropewalk nodes`, or `ropewalk nodes show TYPE`")

    async def show() -> Code:
        known = {each["name"]: each for each in await _known(project)}
        if wanted is not None:
            found = _only(known, wanted)
            return answer(found, lambda: type_page(found), is_json=project.is_json)
        listed = sorted(known.values(), key=lambda each: (CATEGORIES.index(each["category"]), each["name"]))
        chosen = [each for each in listed if category in (None, each["category"])]
        return answer(chosen, lambda: types_listing(chosen), is_json=project.is_json)

    return finish(show())


def _only(known: dict[str, Json], name: str) -> Json:
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "`ropewalk nodes` lists them"
        raise NotFound(f"there is no node type {name!r}; {hint}")
    return known[name]


async def _known(project: Project) -> list[Json]:
    if project.server is None:
        # Here, since only a command that looks at node types imports all of them.
        from ropewalk.modules import catalogue
        from ropewalk.service.node_types import shown_type

        return [shown_type(info) for info in catalogue(project.nodes).types.infos().values()]
    from ropewalk.cli.backend.server import connected  # here, since most commands do without the client

    async with connected(project.server) as there:
        return [dict(each) async for each in there.client.node_types()]

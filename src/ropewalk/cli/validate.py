"""`ropewalk validate`."""

import click

from ropewalk.cli.codes import Code
from ropewalk.cli.complaint import as_json, lines_of
from ropewalk.cli.console import print_json
from ropewalk.cli.loading import Catalogue, catalogue, load_workflow
from ropewalk.cli.project import Project, on_project
from ropewalk.cli.rendering.text import plain
from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import Invalid, RopewalkError


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|MODULE:WORKFLOW...")
@on_project
def validate(project: Project, files: tuple[str, ...]) -> int:
    """Say everything that is wrong with workflow files.

    One line a problem, `file:line: path: message`; nothing is executed.
    """
    known = catalogue(project)
    found = {file: _fault(file, known) for file in files}
    if project.is_json:
        print_json([_answer(file, fault) for file, fault in found.items()])
    else:
        for file, fault in found.items():
            for line in [f"{file}: ok"] if fault is None else lines_of(fault):
                print(plain(line))
    return Code.BAD_INPUT if any(found.values()) else Code.OK


def _fault(file: str, known: Catalogue) -> RopewalkError | None:
    try:
        loaded = load_workflow(file)
    except RopewalkError as error:
        return error
    try:
        parse_definition(loaded.value, known.types.infos())
    except Invalid as error:
        return loaded.explain(error)
    return None


def _answer(file: str, fault: RopewalkError | None) -> dict[str, object]:
    return {"file": file, "valid": fault is None, "problems": _problems(fault)}


def _problems(fault: RopewalkError | None) -> object:
    if fault is None:
        return []
    return as_json(fault)["problems"] or [{"path": "(document)", "message": str(fault)}]

"""`ropewalk validate`."""

from collections.abc import Callable
from functools import cache

import click

from ropewalk.cli.arguments import Loaded, load_workflow
from ropewalk.cli.backend.profiles import Server
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import print_json
from ropewalk.cli.views.errors import as_json, lines_of
from ropewalk.cli.views.text import plain
from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import Invalid, RopewalkError
from ropewalk.modules import catalogue

Check = Callable[[Loaded], object]


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|MODULE:WORKFLOW...")
@on_store_or_server
def validate(project: Project, files: tuple[str, ...]) -> int:
    """Say everything that is wrong with workflow files.

    One line a problem, `file:line: path: message`; nothing is executed. With --server, its node types are those that
    count.
    """
    check = _here(project) if project.server is None else _there(project.server)
    found = {file: _fault(file, check) for file in files}
    if project.is_json:
        print_json([_answer(file, fault) for file, fault in found.items()])
    else:
        for file, fault in found.items():
            for line in [f"{file}: ok"] if fault is None else lines_of(fault):
                print(plain(line))
    return Code.BAD_INPUT if any(found.values()) else Code.OK


def _here(project: Project) -> Check:
    known = cache(lambda modules: catalogue((*project.nodes, *modules)).types)
    known(())  # what is wrong with the project's own modules is not the files' fault

    def check(loaded: Loaded) -> object:
        types = known(loaded.modules)
        return parse_definition(loaded.value, types.infos(), missing=types.missing)

    return check


def _there(server: Server) -> Check:
    # Here, since most commands do without the client.
    from ropewalk.cli.backend.server import check_document
    from ropewalk.cli.backend.session import finish

    return lambda loaded: finish(check_document(server, loaded.value))


def _fault(file: str, check: Check) -> RopewalkError | None:
    try:
        loaded = load_workflow(file)
    except RopewalkError as error:
        return error
    try:
        check(loaded)
    except Invalid as error:
        return loaded.explain(error)
    return None


def _answer(file: str, fault: RopewalkError | None) -> dict[str, object]:
    return {"file": file, "valid": fault is None, "problems": _problems(fault)}


def _problems(fault: RopewalkError | None) -> object:
    if fault is None:
        return []
    return as_json(fault)["problems"] or [{"path": "(document)", "message": str(fault)}]

"""The node types of a command, brought to the process that owns the file: it is told nothing that it cannot execute."""

import os

from ropewalk.cli.backend.project import Project
from ropewalk.control.client import RemoteService
from ropewalk.core.errors import Conflict, Unavailable


class OwnerLeft(Unavailable):
    """The owner went away before it answered; nothing was asked of it but to know more."""


async def require_node_types(project: Project, owner: RemoteService, pid: int) -> None:
    """See that the owner of the file knows the node types of this command; refused where it does not.

    A process that commands have started learns them. A server, and a program of its own, take none: they know types of
    the same names, or lack them.
    """
    from ropewalk.modules import is_file  # here, since only commands that meet an owner need it

    modules = tuple(os.path.abspath(each) if is_file(each) else each for each in project.nodes)
    try:
        loaded = await owner.learn(modules, os.getcwd())
    except Unavailable as error:
        raise OwnerLeft(str(error)) from error
    if loaded.refused:
        _require_known(project, pid, loaded.types)


def _require_known(project: Project, pid: int, known: tuple[str, ...]) -> None:
    from ropewalk.modules import defined_by  # here, since an owner that learns needs no look at them by this command

    missing = [each.name for each in defined_by(project.nodes)[0] if each.name not in known]
    if missing:
        options = " ".join(f"--nodes {each}" for each in project.nodes)
        raise Conflict(
            f"process {pid} executes on {project.place} and does not know {', '.join(missing)}, which this command "
            f"brings: start that process again with {options}, or name another file with --db"
        )

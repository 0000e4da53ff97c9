"""`ropewalk doctor`."""

import click
import msgspec

from ropewalk.cli.codes import Code
from ropewalk.cli.console import print_drawn, print_json
from ropewalk.cli.examining import examined
from ropewalk.cli.findings import Health
from ropewalk.cli.project import Project, on_project
from ropewalk.cli.rendering.doctor import findings
from ropewalk.cli.session import finish


@click.command()
@on_project
def doctor(project: Project) -> int:
    """Look at this machine and the store with a physician's eye."""
    found = finish(examined(project))
    if project.is_json:
        print_json(found)
    else:
        print_drawn(findings(msgspec.to_builtins(found)))
    return Code.FAILED if any(each.health is Health.ILL for each in found) else Code.OK

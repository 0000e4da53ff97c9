"""`ropewalk doctor`."""

import click
import msgspec

from ropewalk.cli.backend.project import Project, on_store
from ropewalk.cli.backend.session import finish
from ropewalk.cli.commands.doctor.findings import Health
from ropewalk.cli.commands.doctor.machine import examined
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import print_drawn, print_json
from ropewalk.cli.views.doctor import findings


@click.command()
@on_store
def doctor(project: Project) -> int:
    """Look at this machine and the store with a physician's eye."""
    found = finish(examined(project))
    if project.is_json:
        print_json(found)
    else:
        print_drawn(findings(msgspec.to_builtins(found)))
    return Code.FAILED if any(each.health is Health.FAULT for each in found) else Code.OK

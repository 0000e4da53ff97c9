"""`ropewalk reset-clock`."""

import click

from ropewalk.cli.backend.project import Project, on_store
from ropewalk.cli.exit_codes import Code
from ropewalk.cli.views.console import print_json
from ropewalk.cli.views.text import lapse
from ropewalk.core.errors import InvalidInput
from ropewalk.store.sqlite import reset_clock as reset


@click.command("reset-clock")
@click.option("--force", is_flag=True, help="Also if unfinished executions have events of the future.")
@on_store
def reset_clock(project: Project, force: bool) -> int:
    """Set the time of a file back to this machine's.

    The time of a store never goes back by itself: after a clock that was a day ahead, waits until a moment would end a
    day early for good. `doctor` says how far a store is ahead. Stop what works on the file, see that the machine's
    clock is right, then reset. Executions that have events of the future keep their order: they are dated no earlier,
    so their pauses and time limits take that much longer.
    """
    if project.is_shared:
        raise InvalidInput("a shared store goes by the clock of its database server: set that one")
    done = reset(project.db, is_forced=force)
    if project.is_json:
        print_json(done)
    elif done.ahead:
        print(f"the store was {lapse(done.ahead)} ahead; it goes by this machine's clock again")
    else:
        print("the store was not ahead of this machine's clock; nothing was changed")
    return Code.OK

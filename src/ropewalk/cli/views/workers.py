"""Workers as a table."""

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import kept, optional, when
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import clock, lapse

Json = dict[str, Any]


def workers_listing(found: list[Json]) -> RenderableType:
    """Workers, one a line."""
    if not found:
        return Text("no workers")
    table = Table(
        kept("ID"), kept("STATE"), kept("POOL"), kept("LOAD"), optional("HEARD OF"), optional("HOST"), optional("PID"),
        when("SINCE"), optional("VERSION"),
    )  # fmt: skip
    for each in found:
        heard_of = "" if each["silence"] is None else f"{lapse(each['silence'])} ago"
        table.add(
            each["id"], _state(each), each["pool"], f"{each['load']}/{each['slots']}", heard_of, each["host"],
            str(each["pid"]), clock(each["startedAt"]), each["version"],
        )  # fmt: skip
    return table


def _state(each: Json) -> Text:
    if each["isAlive"]:
        return Text("alive", style="green")
    return Text("left", style="dim") if each["silence"] is None else Text("dead", style="bold red")

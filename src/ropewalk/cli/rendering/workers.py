"""Workers as a table."""

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ropewalk.cli.rendering.executions import plain_table
from ropewalk.cli.rendering.text import clock, lapse, text

Json = dict[str, Any]


def workers_listing(found: list[Json]) -> RenderableType:
    """Workers, one a line."""
    if not found:
        return Text("no workers")
    table = plain_table("ID", "HOST", "PID", "VERSION", "POOL", "LOAD", "SINCE", "HEARD OF", "")
    for each in found:
        table.add_row(
            text(each["id"]),
            text(each["host"]),
            str(each["pid"]),
            text(each["version"]),
            text(each["pool"]),
            f"{each['load']}/{each['slots']}",
            clock(each["startedAt"]),
            "" if each["silence"] is None else f"{lapse(each['silence'])} ago",
            _state(each),
        )
    return table


def _state(each: Json) -> Text:
    if each["isAlive"]:
        return Text("alive", style="green")
    return Text("left", style="dim") if each["silence"] is None else Text("dead", style="bold red")

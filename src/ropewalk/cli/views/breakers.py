"""Breakers as a table."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import kept, when
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import clock

Json = dict[str, Any]
STYLES = {"CLOSED": "green", "OPEN": "bold red", "HALF_OPEN": "yellow"}


def breakers_listing(found: list[Json], limit: int) -> RenderableType:
    """Breakers, one a line."""
    if not found:
        return Text("no breakers: no target has failed")
    table = Table(kept("TARGET"), kept("STATE"), kept("FAILED"), when("NEXT PROBE"))
    for each in found:
        table.add(
            each["target"],
            Text(each["state"], style=STYLES.get(each["state"], "")),
            rate(each),
            "–" if each["nextRetry"] is None else clock(each["nextRetry"]),
        )
    more = [Text(f"the first {limit}; --limit shows more", style="dim")] if len(found) == limit else []
    return Group(table, *more)


def rate(each: Json) -> str:
    """How many of how many calls failed, as the breaker saw it."""
    calls, failures = each["callCount"], each["failureCount"]
    return f"{failures} of {calls} ({100 * failures / calls:.0f} %)" if calls else "–"

"""Findings as a table."""

from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import kept, prose
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import plain

_STYLES: Final = {"ok": "green", "warning": "yellow", "fault": "bold red"}


def findings(found: list[dict[str, Any]]) -> RenderableType:
    """What was looked at, one a line, with what to do."""
    table = Table(kept(), kept(), prose())
    for each in found:
        value = Text(plain(each["value"]))
        if each["remedy"]:
            value.append(f": {plain(each['remedy'])}", style="yellow")
        table.add(Text(each["health"], style=_STYLES[each["health"]]), each["what"], value)
    return table

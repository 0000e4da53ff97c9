"""Findings as a table."""

from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ropewalk.cli.rendering.text import plain

_STYLES: Final = {"ok": "green", "warning": "yellow", "fault": "bold red"}


def findings(found: list[dict[str, Any]]) -> RenderableType:
    """What was looked at, one a line, with what to do."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for each in found:
        value = Text(plain(each["value"]))
        if each["remedy"]:
            value.append(f": {plain(each['remedy'])}", style="yellow")
        table.add_row(Text(each["health"], style=_STYLES[each["health"]]), plain(each["what"]), value)
    return table

"""Files as a table."""

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import kept, optional
from ropewalk.cli.views.table import Table

Json = dict[str, Any]


def files_listing(found: list[Json]) -> RenderableType:
    """Files, one a line."""
    if not found:
        return Text("no files")
    table = Table(kept("HASH"), kept("SIZE"), kept("NAME"), optional("TYPE"))
    for each in found:
        table.add(each["hash"][:12], f"{each['size']:,}", each["name"] or "", each["type"] or "")
    return table

"""API keys as a table."""

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import kept, message, optional
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import lapse, moment

Json = dict[str, Any]


def keys_listing(found: list[Json], now: int) -> RenderableType:
    """Keys, one a line."""
    if not found:
        return Text("no keys")
    table = Table(kept("ID"), kept("ROLE"), kept("STATE"), optional("LAST USED"), message("NAME"))
    for each in found:
        table.add(each["id"], _role(each), _state(each, now), _used(each, now), each["name"])
    return table


def _used(key: Json, now: int) -> str:
    used = moment(key["lastUsedAt"])
    return "never" if used is None else f"{lapse(now - used)} ago"


def _role(key: Json) -> str:
    return f"{'root ' if key['root'] else ''}{key['role']}"


def _state(key: Json, now: int) -> Text:
    if key["revokedAt"] is not None:
        return Text("revoked", style="dim")
    ends = moment(key["expiresAt"])
    is_over = ends is not None and ends <= now
    return Text("expired", style="dim") if is_over else Text("valid", style="green")

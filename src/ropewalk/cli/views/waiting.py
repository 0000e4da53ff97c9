"""What waits, as text: executions in a table, approvals with the command that answers them."""

from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import ident, kept
from ropewalk.cli.views.prose import Advice
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import clock, lapse, moment, one_line, plain, state

Json = dict[str, Any]
FEW = 5


def waiting_listing(found: list[Json]) -> RenderableType:
    """Executions that wait, one a line."""
    if not found:
        return Text("no executions wait")
    table = Table(ident("ID"), kept("WORKFLOW"), kept("STATE"), kept("WAITS FOR"))
    for each in found:
        workflow = f"{each['workflow']} v{each['version']}"
        table.add(each["id"], workflow, state(each["state"]), each["waitingFor"])
    return table


def approvals_listing(found: list[Json], hint: Callable[..., str], now: int) -> RenderableType:
    """What waits for a person: what is asked, where and since when, who may answer, and how."""
    if not found:
        return Text("nothing waits for a person")
    return Group(*(part for each in found for part in _approval(each, hint, now)))


def _approval(each: Json, hint: Callable[..., str], now: int) -> list[RenderableType]:
    place = each["node"] if each["item"] is None else f"{each['node']}[{each['item']}]"
    since, until = moment(each["since"]), each["expiresAt"]
    waits = "" if since is None else f", waits for {lapse(now - since)}"
    waits += "" if until is None else f", until {clock(until)}"
    item = () if each["item"] is None else ("--item", str(each["item"]))
    typed = hint("approve", each["executionId"], each["node"], *item) if each["mayAnswer"] else "(not yours to answer)"
    return [
        Text(f"• {one_line(each['title'], 300)}", style="bold"),
        Advice(f"{each['workflow']}: {place}{waits}", bullet="  "),
        Advice(f"may answer: {_who(each['answerers'])}", bullet="  "),
        Advice("answer it", typed, bullet="  ") if each["mayAnswer"] else Advice(typed, bullet="  "),
    ]


def _who(answerers: Json) -> str:
    roles, subjects = ", ".join(answerers["roles"]), answerers["subjects"]
    if not subjects:
        return roles
    more = f" and {len(subjects) - FEW} more" if len(subjects) > FEW else ""
    return f"{roles}: {plain(', '.join(subjects[:FEW]))}{more}"

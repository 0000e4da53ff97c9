"""Triggers as tables."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import ident, kept, message, when
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import clock, one_line, plain

Json = dict[str, Any]


def triggers_listing(found: list[Json]) -> RenderableType:
    """Triggers, one a line."""
    if not found:
        return Text("no triggers: workflows are started by calls alone")
    table = Table(ident("TRIGGER"), kept("WORKFLOW"), kept("NAME"), kept("STATE"), when("NEXT"), message("FIRES"))
    for each in found:
        state = Text("on", style="green") if each["enabled"] else Text("off", style="yellow")
        following = "–" if each["nextAt"] is None else clock(each["nextAt"])
        table.add(each["id"], plain(each["workflow"]), plain(each["name"]), state, following, plain(each["words"]))
    return table


def trigger_text(found: Json) -> RenderableType:
    """One trigger, a fact a line."""
    version = "the published one" if found["version"] is None else f"v{found['version']}"
    facts = {
        "id": found["id"],
        "workflow": f"{found['workflow']} ({version})",
        "fires": found["words"],
        "state": "on" if found["enabled"] else "off",
        "part of": "the definition" if found["declared"] else f"nothing: made by {found['createdBy']}",
        "next": found["nextAt"] and clock(found["nextAt"]),
        "path": found["path"],
        "last": found["lastExecution"],
    }
    lines = [Text(f"{name:9} {plain(one_line(str(value)))}") for name, value in facts.items() if value]
    return Group(Text(plain(found["name"]), style="bold"), *lines)


def fires_listing(found: list[Json]) -> RenderableType:
    """What became of a trigger, the latest first."""
    if not found:
        return Text("it has not fired yet")
    table = Table(when("WHEN"), ident("EXECUTION"), kept("SKIPPED"), message("DETAIL"))
    for each in found:
        reason = Text(each["reason"] or "", style="yellow")
        table.add(clock(each["at"]), each["executionId"] or "–", reason, plain(one_line(each["detail"] or "")))
    return table


def times_text(found: Json) -> RenderableType:
    """A schedule in words, and its next due times."""
    return Group(Text(plain(found["words"]), style="bold"), *[Text(clock(each)) for each in found["times"]])


def reasons_text(found: Json) -> RenderableType:
    """Why a trigger starts nothing, or when it will."""
    return Group(Text(plain(found["name"]), style="bold"), *[Text(f"  {plain(each)}") for each in found["reasons"]])

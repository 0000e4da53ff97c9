"""Executions as tables."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import ident, kept, message, optional, when
from ropewalk.cli.views.failures import of_nodes, tracebacks
from ropewalk.cli.views.prose import unbroken
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import LONGEST, clock, json_text, lapse, moment, one_line, plain, state, text
from ropewalk.cli.views.timeline import timeline

Json = dict[str, Any]


def listing(found: list[Json], now: int) -> RenderableType:
    """Executions, one a line."""
    if not found:
        return Text("no executions")
    table = Table(ident("ID"), kept("WORKFLOW"), kept("STATE"), when("ACCEPTED"), optional("TOOK"), message("ERROR"))
    for each in found:
        table.add(
            each["id"],
            f"{each['workflow']} v{each['version']}",
            state(each["state"]),
            clock(each["acceptedAt"]),
            _took(each, now),
            text(one_line(each["error"] or "", LONGEST), "red"),
        )
    return table


def _took(execution: Json, now: int) -> str:
    began, ended = moment(execution["startedAt"]), moment(execution["finishedAt"])
    return "" if began is None else lapse((now if ended is None else ended) - began)


def details(execution: Json, snapshot: Json, now: int) -> RenderableType:
    """One execution: how it went, what it was given, what it gave, and the tokens its nodes counted."""
    parts: list[RenderableType] = [timeline(snapshot, now)]
    for name in ("input", "output"):
        if execution[name] is not None:
            parts += [Text(f"\n{name}", style="dim"), unbroken(plain(json_text(execution[name])))]
    tokens = execution["metrics"]["tokens"]
    if tokens is not None:
        parts += [Text("\ntokens", style="dim"), Text(f"{tokens:,}")]
    return Group(*parts, *tracebacks(of_nodes(execution)))

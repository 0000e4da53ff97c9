"""Executions as tables."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ropewalk.cli.rendering.failures import of_nodes, tracebacks
from ropewalk.cli.rendering.text import clock, json_text, lapse, moment, one_line, plain, state, text
from ropewalk.cli.rendering.timeline import timeline

Json = dict[str, Any]


def plain_table(*columns: str) -> Table:
    """A table of text without lines."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, no_wrap=True, overflow="ellipsis")
    return table


def listing(found: list[Json], now: int) -> RenderableType:
    """Executions, one a line."""
    if not found:
        return Text("no executions")
    table = plain_table("ID", "WORKFLOW", "STATE", "ACCEPTED", "TOOK", "")
    for each in found:
        table.add_row(
            each["id"],
            text(f"{each['workflow']} v{each['version']}"),
            state(each["state"]),
            clock(each["acceptedAt"]),
            _took(each, now),
            text(one_line(each["error"] or "", 80), "red"),
        )
    return table


def _took(execution: Json, now: int) -> str:
    began, ended = moment(execution["startedAt"]), moment(execution["finishedAt"])
    return "" if began is None else lapse((now if ended is None else ended) - began)


def details(execution: Json, picture: Json, now: int) -> RenderableType:
    """One execution: how it went, what it was given, what it gave, and the tokens it used up if anybody counted."""
    parts: list[RenderableType] = [timeline(picture, now)]
    for name in ("input", "output"):
        if execution[name] is not None:
            parts += [Text(f"\n{name}", style="dim"), Text(plain(json_text(execution[name])))]
    tokens = execution["metrics"]["tokens"]
    if tokens is not None:
        parts += [Text("\ntokens", style="dim"), Text(f"{tokens:,}")]
    return Group(*parts, *tracebacks(of_nodes(execution)))

"""An explanation as text."""

import shlex
from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.rendering.executions import plain_table
from ropewalk.cli.rendering.failures import of_explanation, tracebacks
from ropewalk.cli.rendering.text import one_line, plain, state, text

Json = dict[str, Any]
Hint = Callable[..., str]
LONGEST = 400
"""How much of a reason is shown; it may name several ids."""


def explained(explanation: Json, hint: Hint) -> RenderableType:
    """What keeps an execution, as a person would say it."""
    head = Text.assemble(
        (plain(explanation["workflow"]), "bold"), f"  {explanation['id']}  ", state(explanation["state"])
    )
    if explanation["waitingFor"]:
        head.append(f"  waits for {explanation['waitingFor']}", style="yellow")
    parts: list[RenderableType] = [head]
    parts += [_reason(reason, hint) for reason in explanation["reasons"]]
    if explanation["nodes"]:
        parts.append(_nodes(explanation["nodes"], hint))
    if explanation["nodesLeftOut"]:
        parts.append(Text(f"… {explanation['nodesLeftOut']} more nodes are not done", style="dim"))
    return Group(*parts, *tracebacks(of_explanation(explanation)))


def _reason(reason: Json, hint: Hint) -> Text:
    where = "" if reason["node"] is None else f"{_name(reason)}: "
    line = Text(f"• {plain(where)}{one_line(reason['why'], LONGEST)}")
    if reason["command"]:
        line.append(f"; go on with: {_typed(reason, hint)}")
    elif reason["action"]:
        line.append(f"; what helps: {one_line(reason['action'], LONGEST)}")
    return line


def _name(reason: Json) -> str:
    return str(reason["node"]) if reason["item"] is None else f"{reason['node']}[{reason['item']}]"


def _typed(reason: Json, hint: Hint) -> str:
    return plain(hint(*shlex.split(reason["command"]))) if reason["command"] else ""


def _nodes(nodes: list[Json], hint: Hint) -> RenderableType:
    table = plain_table("NODE", "STATE", "WHY", "DO")
    for node in nodes:
        why = one_line(node["why"], LONGEST)
        table.add_row(text(node["id"]), state(node["state"]), text(why), text(_typed(node, hint), "dim"))
        for item in node["items"]:
            why = one_line(item["why"], LONGEST)
            table.add_row(text(f"  {_name(item)}"), "", text(why), text(_typed(item, hint), "dim"))
    return table

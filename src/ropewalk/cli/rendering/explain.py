"""An explanation as text."""

from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.rendering.executions import plain_table
from ropewalk.cli.rendering.text import plain, state, text

Json = dict[str, Any]


def explained(explanation: Json, hint: Callable[..., str]) -> RenderableType:
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
    return Group(*parts)


def _reason(reason: Json, hint: Callable[..., str]) -> Text:
    line = Text(f"• {plain(reason['why'])}")
    if reason["command"]:
        line.append(f"; go on with: {hint(*reason['command'].split(' '))}")
    return line


def _nodes(nodes: list[Json], hint: Callable[..., str]) -> RenderableType:
    table = plain_table("NODE", "STATE", "WHY", "DO")
    for node in nodes:
        command = hint(*node["command"].split(" ")) if node["command"] else ""
        table.add_row(text(node["id"]), state(node["state"]), text(node["why"]), text(command, "dim"))
    return table

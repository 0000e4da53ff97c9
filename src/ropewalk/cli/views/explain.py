"""An explanation as text."""

import shlex
from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import command, ident, kept, message
from ropewalk.cli.views.failures import of_explanation, tracebacks
from ropewalk.cli.views.prose import Advice
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import LONGEST, one_line, plain, state, text

Json = dict[str, Any]
Hint = Callable[..., str]


def explained(explanation: Json, hint: Hint) -> RenderableType:
    """What keeps an execution, as a person would say it."""
    head = Table(kept(), ident(), kept(), kept())
    waits = f"waits for {explanation['waitingFor']}" if explanation["waitingFor"] else ""
    head.add(text(explanation["workflow"], "bold"), explanation["id"], state(explanation["state"]),
             text(waits, "yellow"))  # fmt: skip
    parts: list[RenderableType] = [head]
    parts += [_reason(reason, hint) for reason in explanation["reasons"]]
    if explanation["nodes"]:
        parts.append(_nodes(explanation, hint))
    if explanation["nodesLeftOut"]:
        parts.append(Text(f"… {explanation['nodesLeftOut']} more nodes are not done", style="dim"))
    return Group(*parts, *tracebacks(of_explanation(explanation)))


def _reason(reason: Json, hint: Hint) -> RenderableType:
    where = "" if reason["node"] is None else f"{_name(reason)}: "
    why = f"{where}{one_line(reason['why'], LONGEST)}"
    if reason["command"]:
        return Advice(f"{why}; go on with", _typed(reason, hint), bullet="• ")
    helps = f"; what helps: {one_line(reason['action'], LONGEST)}" if reason["action"] else ""
    return Advice(f"{why}{helps}", bullet="• ")


def _name(reason: Json) -> str:
    return str(reason["node"]) if reason["item"] is None else f"{reason['node']}[{reason['item']}]"


def _typed(reason: Json, hint: Hint) -> str:
    return plain(hint(*shlex.split(reason["command"]))) if reason["command"] else ""


def _nodes(explanation: Json, hint: Hint) -> RenderableType:
    """What is not done; a command that a reason has already named is not said twice."""
    said = [reason["command"] for reason in explanation["reasons"]]
    table = Table(kept("NODE"), kept("STATE"), message("WHY"), command("DO"))
    for node in explanation["nodes"]:
        rows = [(node["id"], state(node["state"]), node)]
        rows += [(f"  {_name(item)}", Text(), item) for item in node["items"]]
        for name, stands, about in rows:
            do = "" if about["command"] in said else _typed(about, hint)
            table.add(name, stands, one_line(about["why"], LONGEST), text(do, "dim"))
    return table

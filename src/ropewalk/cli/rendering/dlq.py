"""Dead letters as tables."""

from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.rendering.executions import plain_table
from ropewalk.cli.rendering.text import clock, json_text, one_line, plain, state, text

Json = dict[str, Any]


def letters_listing(found: list[Json]) -> RenderableType:
    """Dead letters, one a line."""
    if not found:
        return Text("no dead letters")
    table = plain_table("ID", "NODE", "ATTEMPT", "WHY", "WHEN", "RESOLUTION", "REASON")
    for each in found:
        table.add_row(
            each["id"], text(place(each)), str(each["attempt"]), each["failureType"], clock(each["createdAt"]),
            state(each["resolution"]), text(one_line(each["reason"], 80)),
        )  # fmt: skip
    return table


def place(letter: Json) -> str:
    """The node, or the item of a map, that gave up."""
    return str(letter["node"]) if letter["item"] is None else f"{letter['node']}[{letter['item']}]"


def groups_listing(found: list[Json]) -> RenderableType:
    """What failed alike, one kind a line."""
    if not found:
        return Text("no dead letters")
    table = plain_table("COUNT", "FINGERPRINT", "NODE", "FIRST", "LAST", "REASON")
    for each in found:
        table.add_row(
            str(each["count"]), each["fingerprint"], text(each["node"]), clock(each["firstAt"]), clock(each["lastAt"]),
            text(one_line(each["reason"], 80)),
        )  # fmt: skip
    return table


def letter_details(letter: Json, hint: Callable[..., str]) -> RenderableType:
    """One dead letter, and what can be done about it."""
    head = Text.assemble(
        (letter["id"], "bold"), "  ", state(letter["resolution"]), "\n",
        f"execution   {letter['executionId']}\n",
        f"node        {plain(place(letter))}, attempt {letter['attempt']}, {clock(letter['createdAt'])}\n",
        f"why         {letter['failureType']} ({letter['errorType']})\n",
        "reason      ", (plain(letter["reason"]), "red"),
    )  # fmt: skip
    parts: list[RenderableType] = [head]
    if letter["notes"]:
        parts.append(Text(f"notes       {plain(letter['notes'])}"))
    parts += [Text("\ninputs", style="dim"), Text(plain(json_text(letter["inputs"])))]
    if letter["resolution"] == "PENDING":
        parts.append(_remedies(letter["id"], hint))
    return Group(*parts)


def _remedies(name: str, hint: Callable[..., str]) -> Text:
    return Text(
        f"\ntry again      {hint('dlq', 'requeue', name)}\n"
        f"other inputs   {hint('dlq', 'requeue', name, '--set', 'KEY=JSON')}\n"
        f"supply output  {hint('dlq', 'fix', name, '--output', 'JSON')}\n"
        f"give it up     {hint('dlq', 'discard', name, '--notes', 'WHY')}",
        style="dim",
    )

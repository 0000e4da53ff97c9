"""Dead letters as tables."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.rendering.executions import plain_table
from ropewalk.cli.rendering.failures import tracebacks
from ropewalk.cli.rendering.text import clock, json_text, one_line, plain, state, text
from ropewalk.service.bulk import Outcome, Progress

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
    table = plain_table("COUNT", "FINGERPRINT", "WORKFLOW", "NODE", "WHY", "FIRST", "LAST", "REASON")
    for each in found:
        table.add_row(
            str(each["count"]), each["fingerprint"], text(each["workflow"]), text(each["node"]), each["failureType"],
            clock(each["firstAt"]), clock(each["lastAt"]), text(one_line(each["reason"], 80)),
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
        parts.append(Text(f"notes       {plain(letter['notes'])}".replace("\n", f"\n{' ' * 12}")))
    parts += [Text("\ninputs", style="dim"), Text(plain(json_text(letter["inputs"])))]
    if letter.get("errorDetail"):
        parts += tracebacks([(place(letter), letter["errorDetail"])])
    if letter["resolution"] == "PENDING":
        parts.append(_remedies(letter["id"], hint))
    return Group(*parts)


def progress_line(progress: Progress) -> str:
    """One step of working off many, on one line."""
    if progress.outcome is Outcome.STOPPED:
        return f"stopped: {progress.reason}"
    line = f"{progress.letter}  {_WORDS[progress.outcome]}  (execution {progress.execution})"
    return line if progress.reason is None else f"{line}: {one_line(progress.reason)}"


def tally(counts: Mapping[Outcome, int]) -> str:
    """How it went: `3 requeued, 1 skipped`."""
    told = [f"{counts[outcome]:,} {word}" for outcome, word in _WORDS.items() if counts.get(outcome)]
    return ", ".join(told) or "no dead letters"


_WORDS: Final = {
    Outcome.REQUEUED: "requeued",
    Outcome.DISCARDED: "discarded",
    Outcome.SKIPPED: "skipped",
    Outcome.REFUSED: "refused",
    Outcome.FAILED: "failed again",
}


def _remedies(name: str, hint: Callable[..., str]) -> Text:
    return Text(
        f"\ntry again      {hint('dlq', 'requeue', name)}\n"
        f"other inputs   {hint('dlq', 'requeue', name, '--set', 'KEY=JSON')}\n"
        f"supply output  {hint('dlq', 'fix', name, '--output', 'JSON')}\n"
        f"give it up     {hint('dlq', 'discard', name, '--notes', 'WHY')}",
        style="dim",
    )

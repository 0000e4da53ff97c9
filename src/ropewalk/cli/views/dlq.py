"""Dead letters as tables."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import command, ident, kept, message, optional, prose, when
from ropewalk.cli.views.failures import tracebacks
from ropewalk.cli.views.prose import unbroken
from ropewalk.cli.views.table import Table
from ropewalk.cli.views.text import LONGEST, clock, json_text, one_line, plain, state, text
from ropewalk.service.dead_letter_bulk import Outcome, Progress

Json = dict[str, Any]
SHORT_FINGERPRINT: Final = 8


def letters_listing(found: list[Json]) -> RenderableType:
    """Dead letters, one a line."""
    if not found:
        return Text("no dead letters")
    table = Table(
        ident("ID"), kept("NODE"), kept("RESOLUTION"), optional("WHY"), when("WHEN"),
        optional("ATTEMPT", is_right=True), message("REASON"),
    )  # fmt: skip
    for each in found:
        table.add(
            each["id"], place(each), state(each["resolution"]), each["failureType"], clock(each["createdAt"]),
            str(each["attempt"]), one_line(each["reason"], LONGEST),
        )  # fmt: skip
    return table


def place(letter: Json) -> str:
    """The node, or the item of a map, that gave up."""
    return str(letter["node"]) if letter["item"] is None else f"{letter['node']}[{letter['item']}]"


def groups_listing(found: list[Json]) -> RenderableType:
    """What failed alike, one kind a line."""
    if not found:
        return Text("no dead letters")
    table = Table(
        kept("COUNT", is_right=True), ident("FINGERPRINT", lambda cell: cell[:SHORT_FINGERPRINT]), kept("WORKFLOW"),
        kept("NODE"), optional("WHY"), when("LAST"), when("FIRST"), message("REASON"),
    )  # fmt: skip
    for each in found:
        table.add(
            f"{each['count']:,}", each["fingerprint"], each["workflow"], each["node"], each["failureType"],
            clock(each["lastAt"]), clock(each["firstAt"]), one_line(each["reason"], LONGEST),
        )  # fmt: skip
    return table


def letter_details(letter: Json, hint: Callable[..., str]) -> RenderableType:
    """One dead letter, and what can be done about it."""
    head, about = Table(kept(), kept()), Table(kept(), prose())
    head.add(Text(letter["id"], "bold"), state(letter["resolution"]))
    about.add("execution", letter["executionId"])
    about.add("node", f"{place(letter)}, attempt {letter['attempt']}, {clock(letter['createdAt'])}")
    about.add("why", f"{letter['failureType']} ({letter['errorType']})")
    about.add("reason", text(letter["reason"], "red"))
    if letter["notes"]:
        about.add("notes", text(letter["notes"]))
    parts: list[RenderableType] = [head, about]
    parts += [Text("\ninputs", style="dim"), unbroken(plain(json_text(letter["inputs"])))]
    if letter.get("errorDetail"):
        parts += tracebacks([(place(letter), letter["errorDetail"])])
    if letter["resolution"] == "PENDING":
        parts += [Text(""), _remedies(letter["id"], hint)]
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


def _remedies(name: str, hint: Callable[..., str]) -> Table:
    table = Table(kept(), command())
    for label, words in {
        "try again": ("requeue", name),
        "other inputs": ("requeue", name, "--set", "KEY=JSON"),
        "supply output": ("fix", name, "--output", "JSON"),
        "give it up": ("discard", name, "--notes", "WHY"),
    }.items():
        table.add(text(label, "dim"), text(hint("dlq", *words), "dim"))
    return table

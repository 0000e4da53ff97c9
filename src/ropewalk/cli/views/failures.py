"""What failures have to tell beyond their message: the tracebacks of nodes, as text below everything else."""

from collections.abc import Iterator
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from ropewalk.cli.views.prose import unbroken
from ropewalk.cli.views.text import plain

Json = dict[str, Any]
Told = tuple[str, str]
"""Which node or item it is, and what it tells."""
MOST_SHOWN: Final = 3


def of_nodes(execution: Json) -> list[Told]:
    """What the failed nodes of an execution tell."""
    failed = [node for node in execution["nodes"] if node["error"] is not None and node["state"] == "FAILED"]
    return [(node["id"], node["error"]["detail"]) for node in failed if node["error"]["detail"]]


def of_explanation(explanation: Json) -> list[Told]:
    """What the nodes and items tell that have failed, or are tried again."""
    return [(name, reason["waitsFor"]["detail"]) for name, reason in _reasons(explanation) if _is_told(reason)]


def _reasons(explanation: Json) -> Iterator[tuple[str, Json]]:
    for node in explanation["nodes"]:
        yield node["id"], node
        yield from ((f"{node['id']}[{item['item']}]", item) for item in node["items"])


def _is_told(reason: Json) -> bool:
    return bool(reason["waitsFor"].get("detail"))


def tracebacks(told: list[Told]) -> list[RenderableType]:
    """The first tracebacks in full; a terminal obeys no control character in them."""
    parts: list[RenderableType] = []
    for name, detail in told[:MOST_SHOWN]:
        parts += [Text(f"\n{plain(name)}", style="dim"), unbroken(plain(detail), "red")]
    if len(told) > MOST_SHOWN:
        parts.append(Text(f"\n… {len(told) - MOST_SHOWN} more failed nodes tell theirs with --json", style="dim"))
    return parts

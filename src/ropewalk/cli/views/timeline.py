"""An execution as a timeline: one row a node, when it ran, how often, and what it waits for."""

from functools import partial
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from ropewalk.cli.views.columns import bar as bars
from ropewalk.cli.views.columns import ident, kept, message, optional
from ropewalk.cli.views.table import Cell, Table
from ropewalk.cli.views.text import STYLES, SYMBOLS, clock, lapse, one_line, plain, short, state

Json = dict[str, Any]
DEEPEST: Final = 8
_OVER: Final = ("SUCCESS", "SKIPPED", "CANCELLED", "BLOCKED", "FAILED")


def timeline(snapshot: Json, now: int, *, most: int | None = None) -> RenderableType:
    """The whole execution; at most so many rows, those that matter most."""
    nodes = chosen(snapshot["nodes"], most)
    parts: list[RenderableType] = [headline(snapshot, now), _table(snapshot, nodes, now)]
    if len(nodes) < len(snapshot["nodes"]):
        parts.append(_rest(snapshot["nodes"], nodes))
    if snapshot["state"] == "FAILED" and snapshot["error"]:
        parts.append(Text(one_line(snapshot["error"], 300), style="red"))
    return Group(*parts)


def headline(snapshot: Json, now: int) -> Table:
    """What it is, where it stands, how long it took."""
    began, ended = snapshot["startedAt"], snapshot["finishedAt"]
    took = "" if began is None else lapse((now if ended is None else ended) - began)
    waits = f"waits for {snapshot['waitingFor']}" if snapshot["waitingFor"] else ""
    if ended is None and snapshot.get("outcome"):
        waits = ", ".join(filter(None, (f"closed as {snapshot['outcome']}", waits)))
    line = Table(kept(), ident(), kept(), optional(), kept())
    name = Text.assemble((plain(snapshot["workflow"]), "bold"), f" v{snapshot['version']}")
    line.add(name, Text(snapshot["id"], "dim"), state(snapshot["state"]), took, Text(waits, "yellow"))
    return line


def chosen(nodes: list[Json], most: int | None) -> list[Json]:
    """The nodes to show, in graph order: what is under way or failed first, then what ended last."""
    if most is None or len(nodes) <= most:
        return nodes
    by_interest = sorted(nodes, key=_interest)[: max(0, most)]
    kept = {node["id"] for node in by_interest}
    return [node for node in nodes if node["id"] in kept]


def _interest(node: Json) -> tuple[int, int]:
    if node["state"] in ("RUNNING", "FAILED"):
        return 0, 0
    if node["state"] == "READY":
        return 1, 0
    return (2, -node["finishedAt"]) if node["finishedAt"] else (3, 0)


def _rest(nodes: list[Json], shown: list[Json]) -> Text:
    counts: dict[str, int] = {}
    for node in nodes:
        counts[node["state"]] = counts.get(node["state"], 0) + 1
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    return Text(f"… {len(nodes) - len(shown)} more of {len(nodes)} nodes: {told}", style="dim")


def _table(snapshot: Json, nodes: list[Json], now: int) -> Table:
    table = Table(
        kept(shorter=_without_indent), kept(), optional(is_right=True), optional(is_right=True), bars(), message(),
        gap=1,
    )  # fmt: skip
    end = snapshot["finishedAt"] or now
    begin = snapshot["startedAt"] or snapshot["acceptedAt"]
    for node in nodes:
        table.add(*_row(node, begin, max(end, begin + 1), now))
    return table


def _without_indent(name: Text) -> Text:
    return name[len(name.plain) - len(name.plain.lstrip()) :]


def _row(node: Json, begin: int, end: int, now: int) -> tuple[Cell, ...]:
    style = STYLES.get(node["state"], "")
    indent = "  " * min(node["level"], DEEPEST)
    name = Text.assemble(indent, (SYMBOLS.get(node["state"], " "), style), " ", plain(node["id"]))
    # Only from the second attempt on is there something to say.
    attempts = f"×{node['attempts']}" if node["attempts"] > 1 else ""
    if rounds := node.get("rounds"):
        attempts = f"{rounds} round{'' if rounds == 1 else 's'}"
    drawn = partial(bar, node, begin, end)
    return name, state(node["state"]), attempts, took(node, now), drawn, note(node, now)


def took(node: Json, now: int) -> str:
    """How long the node has taken, from its first start."""
    if node["startedAt"] is None or node["state"] == "READY":
        return ""
    return lapse((node["finishedAt"] or now) - node["startedAt"])


def bar(node: Json, begin: int, end: int, width: int) -> Text:
    """When the node ran, within the time of the execution."""
    if node["startedAt"] is None:
        return Text(" " * width)
    scale = width / max(1, end - begin)
    first = min(width - 1, max(0, int((node["startedAt"] - begin) * scale)))
    last = min(width, max(first + 1, round(((node["finishedAt"] or end) - begin) * scale)))
    return Text(" " * first + "━" * (last - first) + " " * (width - last), style=STYLES.get(node["state"], ""))


def note(node: Json, now: int) -> str:
    """What there is to know about a node besides its state."""
    return "; ".join(part for part in (_progress(node), _waiting(node, now), _trouble(node, now)) if part)


def _progress(node: Json) -> str:
    items = node["items"]
    if items is None:
        return ""
    failed = f", {items['failed']} failed" if items["failed"] else ""
    return f"{items['done']}/{items['total']} items{failed}"


def _waiting(node: Json, now: int) -> str:
    wait = node["wait"]
    return "" if wait is None else waits_for(wait, node["dueAt"], now)


def waits_for(wait: Json, due: int | None, now: int) -> str:
    """What a wait is for, in words."""
    until = "" if due is None else f" (at most {lapse(due - now)} more)"
    match wait["for"]:
        case "timer":
            return f"until {clock(wait['due'])}, {lapse(wait['due'] - now)} more"
        case "approval":
            return f"waits for approval: {one_line(wait['title'], 60)}{until}"
        case "signal":
            return f"waits for signal {one_line(wait['name'], 60)!r}{until}"
        case "event":
            return f"waits for event {one_line(wait['subject'], 60)!r}{until}"
        case "child":
            return f"waits for child {short(wait['child'])} of {one_line(wait['workflow'], 40)}"
        case "nodeType":
            again = lapse(wait["due"] - now)
            return f"waits for a worker that knows the node type {one_line(wait['type'], 60)!r}; asks again in {again}"
        case _:
            return f"held back: {one_line(wait.get('target', wait['for']), 60)}"


def _trouble(node: Json, now: int) -> str:
    message = "" if node["error"] is None else one_line(node["error"], 160)
    if node["phase"] == "BACKOFF" and node["dueAt"] is not None:
        return f"retry in {lapse(node['dueAt'] - now)}: {message}"
    if node["state"] in _OVER:
        return message
    return f"after: {message}" if message else ""

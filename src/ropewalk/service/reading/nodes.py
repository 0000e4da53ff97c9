"""The nodes of an execution as people read them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ropewalk.core.instant import moment
from ropewalk.core.rows import NodeRow, RunRow
from ropewalk.core.state import RunState
from ropewalk.service.reading.recorded import (
    Json,
    Recorded,
    outlined,
)
from ropewalk.store.access import Reader

_GAVE_UP: Final = (RunState.FAILED, RunState.DLQ)


def nodes_of(story: Recorded) -> list[Json]:
    """Every node in document order."""
    return [node_of(row, story) for row in story.projected().nodes]


async def list_nodes(reader: Reader, execution: str, *, start: int = 0, limit: int = 50) -> list[Json]:
    """The nodes of an execution in document order, from one on."""
    story = await outlined(reader, execution)
    made = await story.rows()
    page = made.nodes[start : start + limit]
    items = failed_items(page, made.runs)
    return [node_of(row, story, items) for row in page]


def node_of(row: NodeRow, story: Recorded, items: Mapping[str, RunRow] = MappingProxyType({})) -> Json:
    """One node as its row tells it; `items` is what `failed_items` found."""
    error = row.error
    shown = error and {
        "type": str(error.type),
        "message": error.message,
        "detail": detail_of(row, items),
        "status": error.status,
        "body": error.body,
    }
    return {
        "id": row.node,
        "type": story.plan.types[story.plan.index[row.node]],
        "state": str(row.state),
        "attempts": row.attempts,
        "rounds": row.rounds if story.plan.index[row.node] in story.plan.repeats else None,
        "startedAt": moment(row.started),
        "finishedAt": moment(row.finished),
        "error": shown,
    }


def failed_items(nodes: Sequence[NodeRow], runs: Sequence[RunRow]) -> dict[str, RunRow]:
    """Of each map that failed, the first item that did, and has something to tell: a map itself has not."""
    silent = {row.node for row in nodes if row.error is not None and row.error.detail is None}
    found: dict[str, RunRow] = {}
    for run in runs if silent else ():
        is_told = run.item is not None and run.error is not None and run.error.detail is not None
        if is_told and run.node in silent and run.state in _GAVE_UP:
            found.setdefault(run.node, run)
    return found


def detail_of(row: NodeRow, items: Mapping[str, RunRow]) -> str | None:
    """What a failure has to tell beyond its message: a traceback mostly; of a map, that of its first failed item."""
    if row.error is None:
        return None
    if row.error.detail is not None:
        return row.error.detail
    item = items.get(row.node)
    return None if item is None or item.error is None else f"item {item.item}:\n{item.error.detail}"

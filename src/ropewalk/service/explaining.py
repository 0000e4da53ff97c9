"""The exact reason why a queue item, an execution or a node is not running now.

    {"id", "workflow", "state", "at", "waitingFor",
     "reasons": [{"code", "why", "waitsFor": {…}, "command", "action", "node", "item"}],
     "nodes": [{"id", "state", "code", "why", "waitsFor", "command", "action", "items": [reason]}], "nodesLeftOut"}

`code` is one of `Cause` and `waitsFor` names ids, numbers and times; `command` is what to type after `ropewalk`. All
reasons hold at once: an execution that waits for its key and for a slot says both.
"""

from typing import Final

from msgspec.structs import replace

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import NotFound, Unreadable
from ropewalk.core.execution.work import Work
from ropewalk.core.instant import rfc3339
from ropewalk.core.state import NodeState
from ropewalk.core.waits import ChildWait
from ropewalk.engines.base import Custody
from ropewalk.engines.custody import STORED
from ropewalk.service import payloads
from ropewalk.service.execution_reasons import holds_all, unreadable_reasons, whole_reasons
from ropewalk.service.facts import Alive, Around, Facts, Visibility, gather
from ropewalk.service.node_reasons import is_mending, node_answer
from ropewalk.service.reading import waiting_for
from ropewalk.service.reasons import FEW, Json
from ropewalk.store import executions, queue, workers
from ropewalk.store.access import Reader
from ropewalk.store.workers import Worker

LEASE: Final = 15 * SECOND
TAKEOVER_GRACE: Final = 5 * SECOND
MOST_NODES: Final = 200
EVERYTHING: Final = Visibility()
_DONE: Final = (NodeState.SUCCESS, NodeState.SKIPPED, NodeState.CANCELLED)
_LEAST_TELLING: Final = (NodeState.WAITING, NodeState.BLOCKED)


async def explain(reader: Reader, workspace: str, execution: str, now: int, *, node: str | None = None,
                  alive: Alive | None = None, lease: int = LEASE, visibility: Visibility = EVERYTHING,
                  accepts_only: bool = False, custody: Custody = STORED) -> Json:  # fmt: skip
    """Why an execution of the workspace, or one node of it, does not run now; a queue item's id is its execution's.

    A worker is alive while it renews its lease; on a store of one process `alive` says instead whether that is there,
    and `accepts_only` that it executes nothing. `custody` is that of the engine.
    """
    known = await _around(reader, workspace, now, alive, lease)
    around = replace(known, visibility=visibility, accepts_only=accepts_only, custody=custody)
    try:
        f = await _with_children(await gather(around, execution))
    except Unreadable as error:
        return payloads.shown_explanation(await _unreadable(around, execution, error), may_read=visibility.payloads)
    return payloads.shown_explanation(_answer(f, node), may_read=visibility.payloads)


def _answer(f: Facts, node: str | None) -> Json:
    shown, left_out = _shown(f, node)
    reasons = whole_reasons(f)
    held = holds_all(reasons)
    return {
        "id": f.id,
        "workflow": f.story.plan.definition.name,
        "state": str(f.x.state),
        "at": rfc3339(f.now),
        "waitingFor": waiting_for(f.x),
        "reasons": [reason.json() for reason in reasons],
        "nodes": _with_few_details([node_answer(f, index, held) for index in shown]),
        "nodesLeftOut": left_out,
    }


def _with_few_details(nodes: list[Json]) -> list[Json]:
    """The same with the details of the first errors alone: each may be a long traceback."""
    detailed = [each["waitsFor"] for node in nodes for each in (node, *node["items"]) if each["waitsFor"].get("detail")]
    for waits_for in detailed[FEW:]:
        waits_for["detail"] = None
    return nodes


async def _unreadable(around: Around, execution: str, error: Unreadable) -> Json:
    """What can be said of an execution of which only the tables are left."""
    row = await executions.get(around.reader, around.workspace, execution)
    if row is None:
        raise NotFound(f"there is no execution {execution}")
    names = await executions.workflow_names(around.reader, [row.workflow])
    return {
        "id": execution,
        "workflow": names.get(row.workflow, row.workflow),
        "state": row.state,
        "at": rfc3339(around.now),
        "waitingFor": None,
        "reasons": [each.json() for each in unreadable_reasons(row, await queue.get(around.reader, execution), error)],
        "nodes": [],
        "nodesLeftOut": 0,
    }


async def _around(reader: Reader, workspace: str, now: int, alive: Alive | None, lease: int) -> Around:
    def is_leased(worker: Worker) -> bool:
        return now - worker.heartbeat_at <= lease

    known = await workers.listed(reader, workers.MOST_SHOWN)
    takeover = lease + TAKEOVER_GRACE if alive is None else None
    return Around(reader, workspace, now, known, alive or is_leased, takeover)


async def _with_children(f: Facts) -> Facts:
    """The same, with the states and first reasons of the first children that are waited for, one level deep."""
    if not f.around.visibility.others:
        return f
    waits = [work.wait for work in _waiting(f) if isinstance(work.wait, ChildWait)]
    found = {wait.child: await _child(f.around, wait.child) for wait in waits[:FEW]}
    return replace(f, children={child: _shown_child(f.around.visibility, known) for child, known in found.items()})


def _shown_child(visibility: Visibility, child: Json) -> Json:
    """What is told of a child to a reader who may see the payloads of its parent, and perhaps not its own."""
    if child.get("reason") is None:
        return child
    return {**child, "reason": payloads.shown_reason(child["reason"], may_read=visibility.payloads_of_others)}


def _waiting(f: Facts) -> list[Work]:
    return [] if f.x.is_ended else list(f.x.waiting.values())


async def _child(around: Around, child: str) -> Json:
    try:
        f = await gather(around, child)
    except NotFound:
        return {}  # its start is written down and about to be carried out
    except Unreadable as error:
        said = await _unreadable(around, child, error)
        return {"state": said["state"], "reason": said["reasons"][0]}
    reasons = whole_reasons(f)
    return {"state": str(f.x.state), "reason": reasons[0].json() if reasons else None}


def _shown(f: Facts, node: str | None) -> tuple[list[int], int]:
    """The nodes to explain and how many are left out: the one asked for, else those not done, in graph order."""
    plan = f.story.plan
    if node is not None:
        if node not in plan.index:
            raise NotFound(f"execution {f.id} has no node {node!r}")
        return [plan.index[node]], 0
    unfinished = [index for index in plan.order if f.x.node_state(index) not in _DONE or is_mending(f, index)]
    # Of too many, those that are merely behind others say least.
    chosen = sorted(unfinished, key=lambda index: f.x.node_state(index) in _LEAST_TELLING)[:MOST_NODES]
    kept = dict.fromkeys(chosen)
    return [index for index in unfinished if index in kept], len(unfinished) - len(chosen)

"""What waits for a person: the approvals of executions that are not over."""

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ropewalk.core.closing_nodes import placed_nodes
from ropewalk.core.errors import Unreadable
from ropewalk.core.events import RunWaiting
from ropewalk.core.execution.work import Work
from ropewalk.core.instant import moment
from ropewalk.core.waits import Approval
from ropewalk.nodes.builtin import BUILTIN
from ropewalk.service.reading.executions import waiting_for
from ropewalk.service.reading.recorded import MANY_EVENTS, Json, Recorded, offload, outlined
from ropewalk.store import executions, workflows
from ropewalk.store.access import Reader
from ropewalk.store.executions import NEWEST, Execution, Filter

MOST_READ: Final = 200
"""How many logs one page reads at the most; where they have no approvals, the page is short and goes on."""
ASKING: Final = "approval"
Place = tuple[str, int]
"""Where a page begins: with the executions of this id and older, after so many approvals of the first."""
START: Final[Place] = (NEWEST, 0)


async def waiting_approvals(
    reader: Reader, workspace: str, wanted: Filter = executions.ANY, place: Place = START, limit: int = 50
) -> tuple[list[Json], Place | None]:
    """Approvals that are not answered yet, those of the newest executions first, and where the next page begins."""
    found: list[Json] = []
    versions: dict[tuple[str, int], bool] = {}
    read, (first, skipped) = 0, place
    before = first if first == NEWEST else f"{first}~"
    while rows := await executions.listed(
        reader, workspace, replace(wanted, is_waiting=True), before=before, limit=MOST_READ
    ):
        for row in rows:
            if not await _may_ask(reader, row, versions):
                continue
            if read == MOST_READ:
                return found, (row.id, 0)
            read += 1
            start = skipped if row.id == first else 0
            some = (await _asked(reader, row))[start : start + limit - len(found)]
            found += some
            if len(found) == limit:
                return found, (row.id, start + len(some))
        before = rows[-1].id
    return found, None


async def _may_ask(reader: Reader, row: Execution, versions: dict[tuple[str, int], bool]) -> bool:
    """Whether a node of this version may wait for a person: an approval, or one whose type is not our own."""
    key = (row.workflow, row.version)
    if key not in versions:
        version = await workflows.get_version(reader, *key)
        document: dict[str, Any] = {} if version is None else msgspec.json.decode(version.document)
        types = [node["type"] for _, node in placed_nodes(document)]
        versions[key] = any(each == ASKING or each not in BUILTIN for each in types)
    return versions[key]


async def _asked(reader: Reader, row: Execution) -> list[Json]:
    """The approvals of one execution that wait, in the order of its nodes and items."""
    try:
        story = await outlined(reader, row.id, _is_wait)
        folded = await offload(story.folded, is_large=len(story.events) > MANY_EVENTS)
    except Unreadable:
        return []  # `explain` and `check` tell of it
    since = {(e.node, e.item, e.attempt): e.at for e in story.events if isinstance(e, RunWaiting)}
    waiting = [work for work in folded.waiting.values() if isinstance(work.wait, Approval)]
    ordered = sorted(waiting, key=lambda work: (work.node, -1 if work.item is None else work.item))
    return [_approval(row, story, work, since) for work in ordered]


def _is_wait(event: object) -> bool:
    """Of all values, what a person is asked is the one that is shown."""
    return isinstance(event, RunWaiting)


def _approval(row: Execution, story: Recorded, work: Work, since: dict[tuple[str, int | None, int], int]) -> Json:
    assert isinstance(work.wait, Approval), "no other wait is one"
    node = story.plan.ids[work.node]
    return {
        "executionId": row.id,
        "workflow": story.plan.definition.name,
        "workflowId": row.workflow,
        "node": node,
        "item": work.item,
        "title": work.wait.title,
        "details": work.wait.details,
        "since": moment(since.get((node, work.item, work.attempt))),
        "expiresAt": moment(work.due),
    }


async def with_waits(reader: Reader, found: list[Json]) -> list[Json]:
    """Executions of a list, each with what it waits for in a word."""
    return [{**each, "waitingFor": await _waits_for(reader, each["id"])} for each in found]


async def _waits_for(reader: Reader, execution: str) -> str | None:
    try:
        story = await outlined(reader, execution)
        return waiting_for(await offload(story.folded, is_large=len(story.events) > MANY_EVENTS))
    except Unreadable:
        return None

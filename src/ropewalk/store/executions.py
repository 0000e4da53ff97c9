"""Executions: one row each for life; what they were given and gave is in their logs."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.state import ENDED, ExecutionState, TriggerType
from ropewalk.store.access import Reader, Value, json_list
from ropewalk.store.ids import begins_or_ends

NEWEST: Final = "~"
"""A cursor before every id."""
_NEVER: Final = 2**62


class Execution(Struct, frozen=True):
    """One pass through one version of a workflow."""

    id: str
    workspace: str
    workflow: str
    version: int
    state: str
    trigger: str
    parent: str | None
    parent_node: str | None
    parent_item: int | None
    parent_attempt: int | None
    concurrency_key: str | None
    accepted_at: int
    started_at: int | None
    finished_at: int | None
    error: str | None
    trace_id: str | None


class Filter(Struct, frozen=True):
    """Which executions are wanted; None is any. Times are of acceptance, `until` not included.

    `among` narrows them to these workflows, and nobody looks beyond the id `oldest`, whatever else is wanted. The id
    begins or ends with `id_part`, which has nothing in it but letters, digits and `-`.
    """

    workflow: str | None = None
    state: ExecutionState | None = None
    trigger: TriggerType | None = None
    since: int = 0
    until: int = _NEVER
    among: tuple[str, ...] | None = None
    oldest: str = ""
    id_part: str | None = None


ANY: Final = Filter()


async def get(reader: Reader, workspace: str, execution: str) -> Execution | None:
    """The execution of this id, if it is the workspace's."""
    row = await reader.fetch_one("get_execution", workspace, execution)
    return None if row is None else Execution(*row)


async def load(reader: Reader, execution: str) -> Execution | None:
    """The execution of this id, for whoever executes it."""
    row = await reader.fetch_one("load_execution", execution)
    return None if row is None else Execution(*row)


async def listed(
    reader: Reader, workspace: str, wanted: Filter = ANY, *, before: str = NEWEST, limit: int = 50
) -> list[Execution]:
    """The executions of a workspace, newest first; the last one's id is the cursor to go on."""
    if wanted.among is None:
        return await _listed(reader, workspace, wanted, before, limit)
    # One look per workflow by its own index: few are ever shared, and history is long.
    chosen = [each for each in wanted.among if wanted.workflow in (None, each)]
    narrowed = [replace(wanted, workflow=each) for each in chosen]
    found = [row for each in narrowed for row in await _listed(reader, workspace, each, before, limit)]
    return sorted(found, key=lambda row: row.id, reverse=True)[:limit]


async def _listed(reader: Reader, workspace: str, wanted: Filter, before: str, limit: int) -> list[Execution]:
    arguments: tuple[Value, ...] = (
        workspace, before, wanted.workflow, wanted.state, wanted.trigger, wanted.since, wanted.until, wanted.oldest,
        *begins_or_ends(wanted.id_part), limit,
    )  # fmt: skip
    return [Execution(*row) for row in await reader.fetch(_statement(wanted), *arguments)]


def _statement(wanted: Filter) -> str:
    """The statement whose index leaves out most."""
    if wanted.id_part is not None:
        return "list_named_executions"
    if wanted.state is not None and wanted.state.is_reopenable:
        return "list_failed_executions"
    if wanted.state is not None and wanted.state not in ENDED:
        return "list_live_executions"
    return "list_executions" if wanted.workflow is None else "list_workflow_executions"


async def workflow_names(reader: Reader, workflows: Iterable[str]) -> dict[str, str]:
    """What these workflows are called, by id."""
    return dict(await reader.fetch("workflow_names", json_list(sorted({*workflows}))))

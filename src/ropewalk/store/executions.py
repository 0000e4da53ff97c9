"""Executions: one row each for life; what they were given and gave is in their logs."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.core.state import ENDED, ExecutionState, TriggerType
from ropewalk.store.access import Reader, Row, Value, json_list
from ropewalk.store.ids import begins_or_ends

NEWEST: Final = "~"
"""A cursor before every id."""
_NEVER: Final = 2**62
MOST_COUNTED: Final = 10_000
"""A longer list is counted no further: its reader learns that there are more."""


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

    `among` narrows them to these workflows, and no list goes beyond the id `oldest`, with any other filter. `search`
    is a text in the id or the name of the workflow; for readers of payloads in the error or concurrency key too.
    `is_waiting`: not over, and with a node that waits. The id begins or ends with `id_part`, which has nothing in it
    but letters, digits and `-`.
    """

    workflow: str | None = None
    state: ExecutionState | None = None
    trigger: TriggerType | None = None
    since: int = 0
    until: int = _NEVER
    among: tuple[str, ...] | None = None
    oldest: str = ""
    search: str | None = None
    reads_payloads: bool = True
    is_waiting: bool = False
    id_part: str | None = None


ANY: Final = Filter()


class _Statements(Struct, frozen=True):
    """The statements that ask the same, each of the rows that another index leads to."""

    of_workspace: str
    of_workflow: str
    failed: str
    live: str
    waiting: str

    def about(self, wanted: Filter) -> str:
        """The one whose index leaves out most."""
        if wanted.is_waiting:
            return self.waiting
        if wanted.state is not None and wanted.state.is_reopenable:
            return self.failed
        if wanted.state is not None and wanted.state not in ENDED:
            return self.live
        return self.of_workspace if wanted.workflow is None else self.of_workflow


_NEWEST_FIRST: Final = _Statements(
    "list_executions", "list_workflow_executions", "list_failed_executions", "list_live_executions",
    "list_waiting_executions",
)  # fmt: skip
_OLDEST_FIRST: Final = _Statements(
    "first_executions", "first_workflow_executions", "first_failed_executions", "first_live_executions",
    "first_waiting_executions",
)  # fmt: skip
_COUNTED: Final = _Statements(
    "count_executions", "count_workflow_executions", "count_failed_executions", "count_live_executions",
    "count_waiting_executions",
)  # fmt: skip


async def get(reader: Reader, workspace: str, execution: str) -> Execution | None:
    """The execution of this id, if it is the workspace's."""
    row = await reader.fetch_one("get_execution", workspace, execution)
    return None if row is None else Execution(*row)


async def load(reader: Reader, execution: str) -> Execution | None:
    """The execution of this id, for the worker that executes it."""
    row = await reader.fetch_one("load_execution", execution)
    return None if row is None else Execution(*row)


async def listed(
    reader: Reader, workspace: str, wanted: Filter = ANY, *, before: str = NEWEST, limit: int = 50
) -> list[Execution]:
    """The executions of a workspace, newest first; the last one's id is the cursor to go on."""
    rows = await _each(reader, _NEWEST_FIRST, workspace, wanted, before, limit)
    found = [Execution(*row) for some in rows for row in some]
    return found if len(rows) == 1 else sorted(found, key=lambda row: row.id, reverse=True)[:limit]


async def first(
    reader: Reader, workspace: str, wanted: Filter = ANY, *, after: str, before: str = NEWEST, limit: int = 50
) -> list[Execution]:
    """The executions of a workspace after an id, oldest first."""
    # No id lies between another one and the same with this sign at its end.
    rows = await _each(
        reader,
        _OLDEST_FIRST,
        workspace,
        replace(wanted, oldest=max(wanted.oldest, after and f"{after}~")),
        before,
        limit,
    )
    found = [Execution(*row) for some in rows for row in some]
    return found if len(rows) == 1 else sorted(found, key=lambda row: row.id)[:limit]


async def counted(
    reader: Reader, workspace: str, wanted: Filter = ANY, *, before: str = NEWEST, limit: int = MOST_COUNTED
) -> int:
    """How many there are, counted no further than the limit."""
    rows = await _each(reader, _COUNTED, workspace, wanted, before, limit)
    return min(limit, sum(int(row[0]) for some in rows for row in some))


async def _each(
    reader: Reader, statements: _Statements, workspace: str, wanted: Filter, before: str, limit: int
) -> list[list[Row]]:
    """What a statement answers; of a list that is narrowed to some workflows, for each of them."""
    if wanted.among is None:
        return [await _asked(reader, statements, workspace, wanted, before, limit)]
    # One look per workflow by its own index: few are ever shared, and history is long.
    chosen = [each for each in wanted.among if wanted.workflow in (None, each)]
    narrowed = [replace(wanted, workflow=each) for each in chosen]
    return [await _asked(reader, statements, workspace, each, before, limit) for each in narrowed]


async def _asked(
    reader: Reader, statements: _Statements, workspace: str, wanted: Filter, before: str, limit: int
) -> list[Row]:
    arguments: tuple[Value, ...] = (
        workspace, before, wanted.workflow, wanted.state, wanted.trigger, wanted.since, wanted.until, wanted.oldest,
        limit, _pattern(wanted.search), int(wanted.reads_payloads), *(begins_or_ends(wanted.id_part) or (None, None)),
    )  # fmt: skip
    return await reader.fetch(statements.about(wanted), *arguments)


def _pattern(search: str | None) -> str | None:
    """The pattern with which `like` finds a text, also one with the signs that `like` itself uses."""
    if search is None:
        return None
    plain = search.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{plain}%"


async def workflow_names(reader: Reader, workflows: Iterable[str]) -> dict[str, str]:
    """What these workflows are called, by id."""
    return dict(await reader.fetch("workflow_names", json_list(sorted({*workflows}))))

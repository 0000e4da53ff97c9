"""What a command prints when the execution it waited for has ended: the outcome, and what to do next."""

from typing import Any, Final

from ropewalk.cli.backend.project import Project
from ropewalk.cli.backend.queries import Queries, Search, queries_on
from ropewalk.cli.backend.session import Executor, executor_of
from ropewalk.cli.exit_codes import Code, code_for
from ropewalk.cli.views.console import console, print_json
from ropewalk.cli.views.progress import View
from ropewalk.cli.views.text import json_text, one_line, plain
from ropewalk.core.closing_nodes import UNDOES
from ropewalk.core.state import ExecutionState

MOST_COUNTED: Final = 1000
Step = tuple[str, str]
"""What there is to say, and the command that helps (empty if none does)."""


async def show_outcome(project: Project, name: str, view: View, owner: Executor | None, original: str | None) -> Code:
    """Show what came of an execution and what to do next; `owner` executes it, None if this process did."""
    async with queries_on(project) as queries:
        return await _conclude(project, queries, name, view, owner or await executor_of(project, queries), original)


async def _conclude(project: Project, queries: Queries, name: str, view: View, owner: Executor | None,
                    original: str | None) -> Code:  # fmt: skip
    execution = await queries.execution(name)
    state = ExecutionState(execution["state"])
    if original is not None:
        for line in _compared(await queries.execution(original), execution):
            view.say(line)
    if project.is_json:
        print_json(execution)
    elif state is ExecutionState.SUCCESS:
        print(plain(json_text(execution["output"])))
    elif state.is_reopenable:
        _show_tracebacks(execution)
    for step in [*await _next_steps(project, queries, execution, owner), *await _others(project, queries, name, owner)]:
        view.say(*step)
    if not state.is_ended:
        return Code.INTERRUPTED
    return code_for(state)


def _show_tracebacks(execution: dict[str, Any]) -> None:
    """Where in their code the nodes have failed; on stderr, as everything about how it went."""
    from ropewalk.cli.views.failures import of_nodes, tracebacks  # here, since most executions succeed

    for part in tracebacks(of_nodes(execution)):
        console(is_error=True).print(part)


def _compared(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """How an execution that does another again compares with it; nothing as long as one of them goes on."""
    original, states = before["id"], (ExecutionState(before["state"]), ExecutionState(after["state"]))
    if not all(state.is_ended for state in states):
        return []
    if states[0] is not states[1]:
        return [f"{states[1]}, where {original} was {states[0]}"]
    if states[0] is ExecutionState.SUCCESS:
        return [f"{'the same output as' if after['sameOutput'] else 'another output than'} {original}"]
    there, here = _failures(before), _failures(after)
    if there == here:
        return [f"{states[1]}, as {original} was, and in the same way"]
    only_there = "; ".join(f"{node}: {error[1]}" for node, error in there.items() if here.get(node) != error)
    return [f"{states[1]}, as {original} was, but in another way; only there: {one_line(only_there or 'nothing', 300)}"]


def _failures(execution: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """What went wrong, by node: of those that fail side by side it is chance which one the execution names."""
    errors = {node["id"]: node["error"] for node in execution["nodes"]}
    return {name: (error["type"], error["message"]) for name, error in errors.items() if error is not None}


async def _next_steps(project: Project, queries: Queries, execution: dict[str, Any],
                      owner: Executor | None) -> list[Step]:  # fmt: skip
    name = execution["id"]
    match execution["state"]:
        case "FAILED" | "TIMEOUT" if _has_undone(execution):
            return [("what it did is undone; do it all again with", project.hint("replay", name))]
        case "FAILED":
            return _failure_steps(project, name, await queries.pending_letters(name, MOST_COUNTED))
        case "TIMEOUT":
            return [("TIMEOUT; try again with", project.hint("retry", name))]
        case "PAUSED":
            return [("PAUSED, durably; go on with", project.hint("resume", name))]
        case "PENDING" | "RUNNING" if owner is not None and owner.is_there:
            return [(f"{owner.words(project)}; stop it with", project.hint("pause", name))]
        case "PENDING" | "RUNNING" if owner is not None:
            return [(owner.words(project), "")]
        case "PENDING" | "RUNNING":
            return [("unfinished; go on with", project.hint("resume", name))]
        case _:
            return []


def _has_undone(execution: dict[str, Any]) -> bool:
    """Whether nodes were undone: then it is over for good."""
    undoing = (node for node in execution["nodes"] if node["id"].endswith(UNDOES))
    return any(node["state"] in ("SUCCESS", "FAILED", "CANCELLED") for node in undoing)


def _failure_steps(project: Project, execution: str, pending: list[str]) -> list[Step]:
    again = ("try again", project.hint("retry", execution))
    if not pending:
        return [again]
    letter = pending[-1]
    return [
        (f"{len(pending)} dead letter{'s' if len(pending) > 1 else ''}", project.hint("dlq", "show", letter)),
        ("with other inputs", project.hint("dlq", "requeue", letter, "--set", "KEY=JSON")),
        again,
    ]


async def _others(project: Project, queries: Queries, name: str, owner: Executor | None) -> list[Step]:
    """Other executions that this process had taken up and leaves unfinished; no other process executes on the store."""
    if owner is not None:
        return []
    left = [each for each in await unfinished(queries) if each != name]
    if not left:
        return []
    count = f"{len(left)}{' or more' if len(left) >= MOST_COUNTED else ''}"
    return [(f"{count} other executions here are unfinished; take them up with", project.hint("resume"))]


async def unfinished(queries: Queries) -> list[str]:
    """What is not over and could go on, oldest first."""
    found: list[str] = []
    for state in (ExecutionState.PENDING, ExecutionState.RUNNING):
        found += [each["id"] for each in await queries.executions(Search(state=state, limit=MOST_COUNTED))]
    return sorted(found)

"""Small workflows and executions for tests, and the words to tell their stories with."""

from typing import Any

from ropewalk.core.commands import Command, RunNode
from ropewalk.core.definition import Definition
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import Event, ExecutionAccepted
from ropewalk.core.execution import Execution
from ropewalk.core.plan import Plan, compile_plan
from ropewalk.core.signals import Expanded, Failed, Signal, Start, Succeeded, Suspended
from ropewalk.core.state import ExecutionState, NodeState
from ropewalk.core.waits import Wait

NOON = 1_763_208_000 * SECOND
BOOM = RunError(ErrorType.TRANSIENT, "boom")
WRONG = RunError(ErrorType.PERMANENT, "wrong")
SLOW = RunError(ErrorType.TIMEOUT, "slow")


def workflow(nodes: str | list[dict[str, Any]], *edges: str, **fields: Any) -> Plan:
    """`workflow("a b c", "a->b", "b->c:true", onFailure="stop")`; nodes as dicts where they need more."""
    listed = [{"id": each} for each in nodes.split()] if isinstance(nodes, str) else nodes
    document = {
        "ropewalk": 1,
        "name": "test",
        "nodes": [{"type": "noop", **node} for node in listed],
        "edges": [edge(each) for each in edges],
        **fields,
    }
    return compile_plan(Definition(document))


def edge(text: str) -> dict[str, str]:
    ends, _, port = text.partition(":")
    source, _, target = ends.partition("->")
    return {"from": source, "to": target, **({"on": port} if port else {})}


def accepted(plan: Plan, **fields: Any) -> Execution:
    execution = Execution(plan)
    execution.apply([ExecutionAccepted(NOON, "e1", "default", "test", 1, "hash", **fields)])
    return execution


def after(plan: Plan, *signals: Signal, at: int = NOON) -> Execution:
    """An execution that was started and then told these."""
    execution = accepted(plan)
    for signal in (Start(), *signals):
        execution.handle(signal, at)
    execution.take_commands()
    return execution


def started(plan: Plan) -> list[str]:
    """The nodes that start first."""
    execution = accepted(plan)
    execution.handle(Start(), NOON)
    return runs(execution)


def tell(execution: Execution, *signals: Signal, at: int = NOON) -> list[Event]:
    return [event for signal in signals for event in execution.handle(signal, at)]


def runs(execution: Execution) -> list[str]:
    """What the execution newly asks to run: `a`, `m[0]`, from the second attempt on `a#2`."""
    return [run_name(each) for each in execution.take_commands() if isinstance(each, RunNode)]


def run_name(run: RunNode) -> str:
    item = "" if run.item is None else f"[{run.item}]"
    return f"{run.node}{item}" + (f"#{run.attempt}" if run.attempt > 1 else "")


def commands(execution: Execution, kind: type[Command]) -> list[Command]:
    return [each for each in execution.take_commands() if isinstance(each, kind)]


def names(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def states(execution: Execution) -> dict[str, NodeState]:
    return {node: execution.node_state(index) for index, node in enumerate(execution.plan.ids)}


def ok(node: str, output: Any = None, *ports: str, attempt: int = 1, item: int | None = None) -> Succeeded:
    return Succeeded(node, attempt, output, ports, item)


def bad(node: str, error: RunError = BOOM, attempt: int = 1, item: int | None = None) -> Failed:
    return Failed(node, attempt, error, item)


def once(node: str, **fields: Any) -> dict[str, Any]:
    """A node that is tried only once."""
    return {"id": node, "retry": {"maxAttempts": 1}, **fields}


def each(node: str, **fields: Any) -> dict[str, Any]:
    """A map, whose items are tried only once."""
    return {"id": node, "forEach": "{{ input }}", "retry": {"maxAttempts": 1}, **fields}


def mapped(plan: Plan, count: int) -> Execution:
    """An execution whose first node is a map that has been evaluated."""
    return after(plan, Expanded(plan.ids[0], 1, count))


def waiting(plan: Plan, wait: Wait, at: int = NOON) -> Execution:
    """An execution whose node `a` waits for this."""
    return after(plan, Suspended("a", 1, wait), at=at)


def refolded(execution: Execution, log: list[Event]) -> Execution:
    copy = Execution(execution.plan)
    copy.apply(log)
    return copy


SUCCESS, FAILED, CANCELLED = ExecutionState.SUCCESS, ExecutionState.FAILED, ExecutionState.CANCELLED

"""What a rerun from a node takes over from an execution that ended."""

from typing import Any

from ropewalk.core.errors import InvalidTransition, NotFound
from ropewalk.core.events import Blob, NodesCarriedOver
from ropewalk.core.execution.evolving import ARRIVED
from ropewalk.core.execution.progress import Progress
from ropewalk.core.plan import Plan
from ropewalk.core.state import NodeState

CARRIED = (NodeState.SUCCESS, NodeState.SKIPPED)


def carry_over(source: Progress, node: str, plan: Plan, now: int) -> NodesCarriedOver:
    """The results a rerun of `plan` from `node` starts with.

    A result stands if its node is neither `node` nor behind it, has the same configuration and the same edges
    into it, and every result it was made from stands too.
    """
    if not source.state.is_ended or source.accepted is None:
        raise InvalidTransition(f"cannot rerun: the execution is {source.state}; wait for its end")
    if node not in plan.index:
        raise NotFound(f"the workflow has no node {node!r}")
    carried: dict[int, None] = {}
    for index in plan.order[: plan.ordinary]:
        name = plan.ids[index]
        stands = all(each in carried for each in plan.predecessors(index))
        if name != node and stands and _is_same(source, plan, name):
            carried[index] = None
    return _event(source, [plan.ids[index] for index in carried], plan, now)


def _is_same(source: Progress, plan: Plan, name: str) -> bool:
    old = source.plan.index.get(name)
    if old is None or source.nodes[old] not in CARRIED or _is_undone(source, old):
        return False
    if source.plan is plan:
        return True
    new = plan.index[name]
    return source.plan.config_hash(old) == plan.config_hash(new) and _edges(source.plan, old) == _edges(plan, new)


def _is_undone(source: Progress, node: int) -> bool:
    """Whether what the node did was undone when its execution was closed."""
    undoing = source.plan.compensations.get(node)
    return undoing is not None and source.nodes[undoing] is NodeState.SUCCESS


def _edges(plan: Plan, node: int) -> list[tuple[str, str | None]]:
    """The edges into a node, as the document writes them."""
    return sorted(
        (
            (plan.ids[source], port)
            for source in plan.predecessors(node)
            for target, port in zip(plan.targets[source], plan.ports[source], strict=True)
            if target == node
        ),
        key=str,
    )


def _event(source: Progress, names: list[str], plan: Plan, now: int) -> NodesCarriedOver:
    assert source.accepted is not None
    index = source.plan.index
    succeeded = [name for name in names if source.nodes[index[name]] is NodeState.SUCCESS]
    outputs = {name: _taken(source.outputs[index[name]]) for name in succeeded}
    return NodesCarriedOver(
        now,
        source.accepted.execution,
        outputs,
        {name: ports for name in succeeded if (ports := _ports(source, plan, name))},
        tuple(name for name in names if source.nodes[index[name]] is NodeState.SKIPPED),
        {name: places for name, output in outputs.items() if (places := _blobs_in(output)) is not None},
        {name: source.rounds.get(index[name], 0) + 1 for name in succeeded if index[name] in source.plan.repeats},
    )


def _taken(output: Any) -> Any:
    """A list of its own: that of a map is completed when its failures are mended."""
    return output.copy() if isinstance(output, list) else output


def _ports(source: Progress, plan: Plan, name: str) -> tuple[str, ...]:
    """The ports taken; a wait that was answered has its own recorded only where an edge named it, then or now."""
    taken = source.ports.get(source.plan.index[name], ())
    return taken or (ARRIVED if ARRIVED[0] in plan.port_names[plan.index[name]] else ())


def _blobs_in(output: Any) -> tuple[int, ...] | None:
    """Where a result is too large for the log: () for the whole of it, else the places in a list; None if nowhere."""
    if isinstance(output, list):
        return tuple(place for place, each in enumerate(output) if isinstance(each, Blob)) or None
    return () if isinstance(output, Blob) else None

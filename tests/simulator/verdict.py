"""The judgement over what a world has recorded: the checker's, and what only this world can know."""

from collections.abc import Iterator

from ropewalk.checker import History, check, check_growth, check_together
from ropewalk.core.events import Event, ExecutionStarted, SignalReceived
from ropewalk.core.execution import Execution
from ropewalk.core.state import NodeState
from tests.simulator.families import broken_families
from tests.simulator.laws import broken_laws
from tests.simulator.outside import is_output
from tests.simulator.snapshot import differences, snapshot
from tests.simulator.store import WORKSPACE, Row
from tests.simulator.worker import Held, fold
from tests.simulator.world import World


def judge(world: World, earlier: dict[str, list[Event]], *, is_quiescent: bool) -> list[str]:
    """Everything that is wrong with the logs of a world."""
    rows = list(world.store.rows.values())
    histories = [_history(world, row, is_quiescent=is_quiescent) for row in rows]
    violations = [str(each) for history in histories for each in check(history)]
    violations += map(str, check_together(histories, {WORKSPACE: world.store.slots}))
    for row in rows:
        if row.id in earlier:
            now = History(row.plan, row.log, is_quiescent=is_quiescent)
            violations += map(str, check_growth(History(row.plan, earlier[row.id], is_quiescent=False), now))
        violations += _laws(row, world)
    return [*violations, *broken_families(rows)]


def _history(world: World, row: Row, *, is_quiescent: bool) -> History:
    effects = world.outside.effects.get(row.id, [])
    return History(row.plan, row.log, seqs=row.seqs, effects=effects, is_quiescent=is_quiescent)


def _laws(row: Row, world: World) -> Iterator[str]:
    x = fold(row)
    yield from _folds_together(row, x, world)
    yield from _items_are_in_order(row, x)
    yield from _children_wait_with_their_parents(row)
    yield from (f"{row} {broken}" for broken in broken_laws(row.plan, row.log))
    world.sometimes["skip propagation into a join"] += sum(_is_join_of_skipped(x, node) for node in range(len(x.plan)))


def memory_against_log(world: World) -> list[str]:
    """Where what owners have in memory is not what the logs say."""
    helds = [held for worker in world.workers for held in worker.held.values() if _is_current(held)]
    return [
        f"I-36 {held.row}: memory and log differ in {each}"
        for held in helds
        for each in differences(snapshot(held.execution), snapshot(fold(held.row)))
    ]


def _is_join_of_skipped(x: Execution, node: int) -> bool:
    """Whether a node ran although one of the nodes before it was skipped."""
    is_join = x.plan.indegree[node] > 1 and x.nodes[node] in (NodeState.SUCCESS, NodeState.FAILED)
    return is_join and any(x.nodes[each] is NodeState.SKIPPED for each in x.plan.predecessors(node))


def _is_current(held: Held) -> bool:
    """Whether the holder is the owner, with nothing decided that is not yet written."""
    return held.fence == held.row.fence and held.execution.seq == len(held.row.log)


def _folds_together(row: Row, x: Execution, world: World) -> Iterator[str]:
    """A log folded in two parts, wherever it is cut, is the log folded at once."""
    cut = world.chance.randrange(len(row.log))
    parts = Execution(row.plan)
    parts.apply(row.log[:cut])
    parts.apply(row.log[cut:])
    if parts.outstanding() != x.outstanding():
        yield f"I-37 {row}: cut after {cut}, other commands are outstanding"
    yield from (f"I-37 {row}: cut after {cut}, {each}" for each in differences(snapshot(parts), snapshot(x)))


def _children_wait_with_their_parents(row: Row) -> Iterator[str]:
    """A child that is accepted while its parent is paused is paused before it starts."""
    first = next((type(event) for event in row.log[1:] if not isinstance(event, SignalReceived)), None)
    if row.is_born_paused and first is ExecutionStarted:
        yield f"{row} started although its parent was paused"


def _items_are_in_order(row: Row, x: Execution) -> Iterator[str]:
    """The output of a map is the list of its items' outputs, each in its place."""
    for index, map_ in x.maps.items():
        for item, output in enumerate(map_.outputs):
            if is_output(output) and not output.startswith(f"{x.plan.ids[index]}[{item}]"):
                yield f"{row} {x.plan.ids[index]}[{item}] has the output {output!r}"

"""What must hold when nothing is on the agenda any more, and how the waits that are left get their answers."""

from collections.abc import Iterator

from ropewalk.core.execution import Execution
from ropewalk.core.signals import Due, Resume
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import ChildWait
from tests.simulator.store import Entry, Row, Slot
from tests.simulator.worker import fold
from tests.simulator.world import World


def is_everything_over(world: World) -> bool:
    return all(row.end is not None for row in world.store.rows.values())


def stuck(world: World) -> list[str]:
    """Why executions stand still that should not (I-29): each must be over, or wait for someone outside."""
    rows = [row for row in world.store.rows.values() if row.end is None]
    folded = {row.id: fold(row) for row in rows}
    ended = [row for row in world.store.rows.values() if row.end is not None]
    return [
        *(f"I-29 {row}: {reason}" for row in rows for reason in _reasons(world, row, folded)),
        *(f"I-29 {row}: is over, and {child} goes on without it" for row in ended for child in _left(row, folded)),
    ]


def _reasons(world: World, row: Row, folded: dict[str, Execution]) -> Iterator[str]:
    x = folded[row.id]
    if row.inbox:
        yield f"no worker reads its inbox: {list(row.inbox)}"
    if overdue := x.handle(Due(), world.now):
        yield f"was to wake by itself: {overdue}"
    if x.running:
        yield f"{x.running} attempts are carried out by no worker"
    if row.slot is Slot.HELD:
        yield "keeps a slot while it only waits"
    if x.needs_slot and row.slot is not Slot.QUEUED:
        yield "needs a slot and does not ask for one"
    if x.deadline is not None and x.deadline <= world.now:
        yield "is past its deadline"
    waits = [work.wait.child for work in x.waiting.values() if isinstance(work.wait, ChildWait)]
    for child in waits:
        if child not in world.store.rows:
            yield f"waits for {child}, which was never started"
        elif child in folded and (wrong := _disobeys(x, folded[child])) is not None:
            yield f"{wrong}: {child}"


def _disobeys(x: Execution, child: Execution) -> str | None:
    """How a child that is not over does other than its parent has said, which it must have heard by now."""
    if child.ending is not None or child.closing is not None:
        return None
    if x.ending is not None:
        return "is ending, its child goes on"
    if x.state is ExecutionState.PAUSED:
        return None if child.state is ExecutionState.PAUSED else "is paused, its child goes on"
    return "goes on, its child stays paused" if child.is_paused_by_parent else None


def _left(row: Row, folded: dict[str, Execution]) -> Iterator[str]:
    """The children that an execution which is over has called off, and that go on."""
    return (child for child in fold(row).called_off if child in folded and _goes_on(folded[child]))


def _goes_on(child: Execution) -> bool:
    return child.ending is None and child.closing is None


def answer_waits(world: World) -> int:
    """Resume what is paused and answer what is waited for; how many answers were given."""
    return sum(_answer(world, row, fold(row)) for row in world.store.rows.values() if row.end is None)


def _answer(world: World, row: Row, x: Execution) -> int:
    if x.state is ExecutionState.PAUSED:
        world.store.post(row, Entry(Resume("ann")))
        return 1
    given = 0
    for work in x.waiting.values():
        signal = world.outside.answer_to(work.wait, x.plan.ids[work.node], work.attempt, work.item)
        if signal is not None:
            world.store.post(row, Entry(signal))
            given += 1
    return given

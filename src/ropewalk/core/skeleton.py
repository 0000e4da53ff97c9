"""An execution without the version it follows: what its log alone tells, which is enough to end it.

Of a plan that is lost only the nodes that have come up are known. Each of them may start at any time, and any number of
items at once: every log can be folded. Nothing may be decided on it but the end.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ropewalk.core.definition import Definition
from ropewalk.core.events import Event, ExecutionAccepted, NodesCarriedOver, StopRequested
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.work import MAX_ITEMS, Phase, Work
from ropewalk.core.plan import Plan, compile_plan
from ropewalk.core.signals import ChildEnded, Lost, Signal
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import ChildWait

UNKNOWN: Final = "unknown"
"""The type of a node of which nothing but the name is known."""


def skeleton(accepted: ExecutionAccepted, events: Sequence[Event]) -> Plan:
    """A plan of the nodes that a log names, without an edge between them."""
    names = dict.fromkeys(name for event in events for name in _named(event))
    about = {"type": UNKNOWN, "concurrency": MAX_ITEMS, "failureTolerance": MAX_ITEMS, "onItemFailure": "continue"}
    nodes: list[dict[str, Any]] = [{"id": name, **about} for name in names]
    return compile_plan(Definition({"ropewalk": 1, "name": accepted.workflow, "nodes": nodes}))


def _named(event: Event) -> tuple[str, ...]:
    if isinstance(event, NodesCarriedOver):
        return (*event.outputs, *event.skipped)
    if isinstance(event, StopRequested):
        return ()  # it has failed before, and was named then
    node: str | None = getattr(event, "node", None)
    return getattr(event, "nodes", ()) if node is None else (node,)


def last_words(x: Progress) -> Iterator[Signal]:
    """What to tell an execution that is ending, so that it is over at once: nothing that was under way goes on."""
    for work in list(x.active_works()):
        if work.phase is Phase.RUNNING:
            yield Lost(x.plan.ids[work.node], work.attempt, work.item)
        elif work.phase is Phase.WAITING and isinstance(work.wait, ChildWait):
            yield _called_off(x, work)


def _called_off(x: Progress, work: Work) -> ChildEnded:
    return ChildEnded(x.plan.ids[work.node], work.attempt, ExecutionState.CANCELLED, None, None, work.item)

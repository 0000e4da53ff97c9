"""Which runs have killed the process of their function: a run that does so twice is set aside as a dead letter.

The first death may be bad luck, a machine short of memory say. The second is laid to the run: its failure is
permanent even if retries are left, so that it goes to the dead letters and takes no third process with it. Deaths
are remembered in the store, so that the second counts on whichever worker it happens.
"""

from typing import TYPE_CHECKING, Final

from ropewalk.core.canonical import content_hash
from ropewalk.core.duration import DAY
from ropewalk.nodes.failure import NodeFailure

if TYPE_CHECKING:
    from ropewalk.nodes.context import NodeContext
    from ropewalk.nodes.processes import ProcessDied

SPACE: Final = "ropewalk.deaths"
REMEMBERED: Final = 30 * DAY
MOST_REMEMBERED: Final = 10_000


class Deaths:
    """What a worker without a store remembers."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}

    def is_first(self, run: str, attempt: int) -> bool:
        """Whether this attempt is the first of the run that died."""
        first = self._first.setdefault(run, attempt)
        if len(self._first) > MOST_REMEMBERED:
            del self._first[next(iter(self._first))]
        return first == attempt


async def attributed(died: "ProcessDied", context: "NodeContext") -> NodeFailure:
    """The failure that a run reports whose process died."""
    run = content_hash([context.execution, context.node, context.item])
    if await _is_first(run, context):
        return NodeFailure.transient(died.why)
    return NodeFailure.permanent(f"quarantined, since its process died twice; the last time, {died.why}")


async def _is_first(run: str, context: "NodeContext") -> bool:
    kept = context.facilities.kept_values
    if kept is None:
        return context.facilities.deaths.is_first(run, context.attempt)
    work = f"{run}:{context.attempt}"
    [is_first] = await kept.claim(context.workspace, SPACE, [run], REMEMBERED, work)
    return is_first

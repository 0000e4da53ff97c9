"""The filter of a wait for an event: what it reads besides the event is kept with the wait.

A filter is evaluated when an event is published, by a worker that need not have the execution in memory. So the values
it refers to are taken along, as they are when the wait begins: never as text in its source, which a value could change.
"""

from typing import Final

import msgspec

from ropewalk.core.definition.authoring import MADE_OF_TEXT
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.view import scope
from ropewalk.core.execution.work import Work
from ropewalk.core.expression import ExpressionError, captured, compile_expression, has_expression
from ropewalk.core.waits import EventWait

MOST_BYTES: Final = 16 * 1024


def with_scope(x: Progress, work: Work, wait: EventWait) -> EventWait:
    """The wait with the values its filter reads; ExpressionError if there is no such filter, or they are too many."""
    if wait.filter is None:
        return wait
    written = x.plan.definition.nodes[work.node].get("with", {}).get("filter")
    if isinstance(written, str) and has_expression(written):
        # Such a definition is refused at save; an earlier version took it.
        raise ExpressionError(MADE_OF_TEXT, 0)
    references = [path for path in compile_expression(wait.filter).references if path[0] != "item"]
    values = captured(scope(x, None, work.item, work.as_of), references) if references else None
    if (size := len(msgspec.json.encode(values))) > MOST_BYTES:
        allowed = f"at most {MOST_BYTES:,} bytes are kept with a wait"
        raise ExpressionError(f"reads values of {size:,} bytes, {allowed}; compare with a part of them", 0)
    return msgspec.structs.replace(wait, scope=values)

"""Forgeries about the failures of a map's items: which are tried, which are dead letters, and what is mended."""

from typing import Any

from msgspec.structs import replace

from ropewalk.core.events import ItemFailed, ItemSucceeded, NodeSucceeded, Parent
from ropewalk.core.signals import ChildEnded, ChildReopened, Expanded, Fix, Requeue, Start, Suspended
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import ChildWait
from tests.checker.forgeries import Forgery, flow
from tests.checker.stories import acceptance, change, drop, story, under, with_events
from tests.core.executions import bad, each, ok, once

KEPT = {"failureTolerance": 1, "deadLetters": "always"}
READ = {"id": "b", "with": {"seen": "{{ nodes.m.output }}", "failed": "{{ nodes.m.errors }}"}}
ERROR = {"type": "TRANSIENT", "message": "boom", "attempts": 1, "status": None, "index": 0}
GIVEN = {"seen": [None, 1], "failed": [ERROR]}


def mapped(**fields: Any) -> Any:
    return flow([each("m", concurrency=1, **fields)])


CONTINUED = story(
    mapped(onItemFailure="continue"), Start(), Expanded("m", 1, 2), bad("m", item=0), ok("m", item=1),
)  # fmt: skip
STOPPED = story(mapped(), Start(), Expanded("m", 1, 2), bad("m", item=0))
TOLERATED = story(mapped(failureTolerance=1), Start(), Expanded("m", 1, 2), bad("m", item=0), ok("m", item=1))
MENDED = story(
    mapped(**KEPT), Start(), Expanded("m", 1, 2), bad("m", item=0), ok("m", item=1), Requeue("m", "ann", 0), Start(),
    ok("m", item=0, attempt=2),
)  # fmt: skip
FAILED_AGAIN = story(
    mapped(**KEPT), Start(), Expanded("m", 1, 2), bad("m", item=0), ok("m", item=1), Requeue("m", "ann", 0), Start(),
    bad("m", item=0, attempt=2),
)  # fmt: skip
SEEN = story(
    flow([each("m", **KEPT), READ], "m->b"), Start(), Expanded("m", 1, 2), bad("m", item=0), ok("m", 1, item=1),
    Fix("m", "ann", 0, item=0), replace(ok("b"), inputs=GIVEN),
)  # fmt: skip
ALL = story(
    flow([each("m", **KEPT), {"id": "n", "forEach": "{{ nodes.m.output }}", "with": {"it": "{{ item }}"}}], "m->n"),
    Start(), Expanded("m", 1, 1), bad("m", item=0), Expanded("n", 1, 1), Fix("m", "ann", 0, item=0),
    replace(ok("n", item=0), inputs={"it": None}),
)  # fmt: skip
CHILD = story(
    mapped(**KEPT), Start(), Expanded("m", 1, 1), Suspended("m", 1, ChildWait("c", "w"), 0),
    ChildEnded("m", 1, ExecutionState.FAILED, error="no", item=0), ChildReopened("m", 1, "ann", 0), Start(),
    ChildEnded("m", 1, ExecutionState.SUCCESS, "mended", item=0),
)  # fmt: skip
BESIDE_AN_EDGE = story(
    flow([each("m", **KEPT), {"id": "b"}], "m->b:error"), Start(), Expanded("m", 1, 2), bad("m", item=0),
    ok("m", item=1),
)  # fmt: skip
TWO = story(
    flow([each("m", **KEPT), once("b")], "m->b"), Start(), Expanded("m", 1, 1), bad("m", item=0),
    Requeue("m", "ann", 0), bad("b"), ok("m", item=0, attempt=2),
)  # fmt: skip

MAPS_HONEST = {
    "continued": CONTINUED, "tolerated": TOLERATED, "mended": MENDED, "failed again": FAILED_AGAIN, "seen": SEEN,
    "all": ALL, "child": CHILD, "beside an edge": BESIDE_AN_EDGE, "two": TWO,
}  # fmt: skip

MAP_FORGERIES = [
    Forgery("I-04", "reopened for its parent's back", MENDED,
            with_events(MENDED, (acceptance(MENDED.plan, parent=Parent("p", "n", 1)), *MENDED.events[1:]))),
    Forgery("I-09", "failed before all is mended", TWO, drop(TWO, ItemSucceeded)),
    Forgery("I-10", "a map that continues leaves an item", STOPPED, under(STOPPED, mapped(onItemFailure="continue"))),
    Forgery("I-10", "succeeded before all is mended", MENDED, drop(MENDED, ItemSucceeded, 1)),
    Forgery("I-12", "given what was mended later", SEEN,
            change(SEEN, NodeSucceeded, 1, inputs={"seen": [0, 1], "failed": []})),
    Forgery("I-12", "failures forgotten that were mended later", SEEN,
            change(SEEN, NodeSucceeded, 1, inputs={**GIVEN, "failed": []})),
    Forgery("I-12", "an item changed by what was mended later", ALL,
            change(ALL, ItemSucceeded, 0, inputs={"it": 0})),
    Forgery("I-18", "child of what was tolerated for good", CHILD, under(CHILD, mapped(failureTolerance=1))),
    Forgery("I-24", "tolerated failure without its letter", TOLERATED, under(TOLERATED, mapped(**KEPT))),
    Forgery("I-24", "failed again without a letter", FAILED_AGAIN,
            change(FAILED_AGAIN, ItemFailed, 1, gave_up=None)),
    Forgery("I-26", "items start after the failure", CONTINUED, under(CONTINUED, mapped())),
]  # fmt: skip

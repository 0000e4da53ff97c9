"""Histories about errors by kind, and lies about them."""

from msgspec.structs import replace

from ropewalk.checker import History
from ropewalk.core.definition import Definition
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import NodeFailed, RunFailed
from ropewalk.core.plan import Plan, compile_plan
from ropewalk.core.signals import ChildEnded, Due, Expanded, Start, Suspended
from ropewalk.core.state import ExecutionState, GaveUp
from ropewalk.core.waits import ChildWait
from tests.checker.forgeries import Forgery
from tests.checker.stories import change, story, under
from tests.core.executions import BOOM, WRONG, bad, each, ok, once

GONE = RunError(ErrorType.PERMANENT, "gone", status=404)
AGAIN = {"maxAttempts": 3, "delay": 0, "jitter": 0}
IS_GONE, IS_BROKEN = "{{ error.status == 404 }}", "{{ error.status + 1 == 9 }}"


def flow(*nodes: dict[str, object], whens: tuple[str | None, ...] = ()) -> Plan:
    """Nodes, and error edges from the first to the others that ask this."""
    listed = [{"type": "noop", **node} for node in nodes]
    edges = [
        {"from": listed[0]["id"], "to": node["id"], "on": "error", **({} if when is None else {"when": when})}
        for node, when in zip(listed[1:], whens, strict=True)
    ]
    return compile_plan(Definition({"name": "test", "nodes": listed, "edges": edges}))


B, C = {"id": "b"}, {"id": "c"}
WAYS = flow(once("a"), B, C, whens=(IS_GONE, None))
ONE_WAY = flow(once("a"), B, whens=(IS_GONE,))
FIRST = story(WAYS, Start(), bad("a", GONE), ok("b"))
REST = story(WAYS, Start(), bad("a", WRONG), ok("c"))
NONE = story(ONE_WAY, Start(), bad("a", WRONG))
FAULTY = story(flow(once("a"), B, C, whens=(IS_BROKEN, None)), Start(), bad("a", WRONG), ok("c"))
NAMED = flow({"id": "a", "retry": {**AGAIN, "on": ["status:404"]}})
RETRIED = story(NAMED, Start(), bad("a", GONE), Due(), ok("a", attempt=2))
ASKED = story(flow({"id": "a", "retry": {**AGAIN, "when": "{{ attempt < 2 }}"}}), Start(), bad("a", GONE), Due(),
              bad("a", BOOM, 2))  # fmt: skip
MAP_UNTAKEN = story(flow(each("m"), B, whens=(IS_GONE,)), Start(), Expanded("m", 1, 2), bad("m", item=0),
                    bad("m", item=1), input=[1, 2])  # fmt: skip
MAP_TAKEN = story(flow(each("m"), B, whens=(IS_GONE,)), Start(), Expanded("m", 1, 2), bad("m", GONE, item=0),
                  bad("m", item=1), ok("b"), input=[1, 2])  # fmt: skip
CHILD = story(
    flow({"id": "a", "retry": {**AGAIN, "when": "{{ error.child == 'FAILED' }}"}}), Start(),
    Suspended("a", 1, ChildWait("c1", "w")), ChildEnded("a", 1, ExecutionState.FAILED), Start(), Due(),
    Suspended("a", 2, ChildWait("c2", "w")), ChildEnded("a", 2, ExecutionState.TIMEOUT),
)  # fmt: skip

KINDS_HONEST: dict[str, History] = {
    "first way": FIRST, "rest": REST, "no way": NONE, "faulty": FAULTY, "named": RETRIED, "asked": ASKED,
    "map untaken": MAP_UNTAKEN, "map taken": MAP_TAKEN, "child by kind": CHILD,
}  # fmt: skip


KIND_FORGERIES = [
    Forgery("I-43", "another way", FIRST,
            under(FIRST, flow(once("a"), B, C, whens=("{{ error.status > 9000 }}", None)))),
    Forgery("I-43", "a fault that is kept back", FAULTY,
            under(change(FAULTY, NodeFailed, faults=()), flow(once("a"), B, C, whens=("{{ true }}", None)))),
    Forgery("I-26", "an error that is not named", RETRIED,
            change(RETRIED, RunFailed, error=replace(GONE, status=403))),
    Forgery("I-24", "given up though it is named", ASKED,
            under(ASKED, flow({"id": "a", "retry": {**AGAIN, "when": "{{ attempt < 3 }}"}}))),
    Forgery("I-24", "a letter of a failure that went its way", FIRST,
            change(FIRST, NodeFailed, gave_up=GaveUp.PERMANENT_ERROR)),
]  # fmt: skip

"""Writes a story's signals and log into tests/core/histories, where it is replayed for ever.

Add a story here when a new kind of event appears; a file that exists is never written again.
"""

import json
from pathlib import Path
from typing import Any

import msgspec

from ropewalk.core import log
from ropewalk.core.commands import CancelChild, Finish
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import ExecutionAccepted
from ropewalk.core.execution import Execution
from ropewalk.core.plan import load_plan
from ropewalk.core.signals import (
    Cancel,
    ChildEnded,
    Decide,
    Due,
    Expanded,
    Failed,
    Fix,
    Lost,
    Pause,
    Released,
    Requeue,
    Resume,
    Retry,
    Returned,
    Signal,
    Start,
    Succeeded,
    Suspended,
    Tell,
)
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import Approval, BreakerWait, ChildWait, SignalWait, Timer

FOLDER = Path(__file__).parent.parent / "tests" / "core" / "histories"
NOON = 1_763_208_000 * SECOND
BOOM = RunError(ErrorType.TRANSIENT, "boom")
WRONG = RunError(ErrorType.PERMANENT, "wrong")
Story = tuple[dict[str, Any], list[tuple[Signal, int]]]


def workflow(nodes: list[dict[str, Any]], edges: list[tuple[str, ...]], **fields: Any) -> dict[str, Any]:
    keys = ("from", "to", "on")
    return {
        "ropewalk": 1,
        "name": "story",
        "nodes": [{"type": "noop", **node} for node in nodes],
        "edges": [dict(zip(keys, edge, strict=False)) for edge in edges],
        **fields,
    }


TOLD = RunError(ErrorType.PERMANENT, "no", status=404)
ERROR_EDGE: Story = (
    workflow([{"id": "a"}, {"id": "alert"}], [("a", "alert", "error")],
             output={"type": "{{ nodes.a.error.type }}", "status": "{{ nodes.a.error.status }}"}),
    [(Start(), 0), (Failed("a", 1, TOLD), 1), (Succeeded("alert", 1), 2)],
)  # fmt: skip
RULES_OF: dict[str, int] = {
    "error_edge_under_rules_1": 1,
    "error_edge_under_rules_2": 2,
    "execution_named_under_rules_3": 3,
    "errors_by_kind_under_rules_4": 4,
    "rounds_under_rules_4": 4,
}
"""The rules under which a story was accepted; 0 where none are said."""
STORIES: dict[str, Story] = {
    "error_edge_under_rules_1": ERROR_EDGE,
    "error_edge_under_rules_2": ERROR_EDGE,
    "execution_named_under_rules_3": (
        workflow([{"id": "a"}], [], output="{{ execution }}"),
        [(Start(), 0), (Succeeded("a", 1), 1)],
    ),
    "errors_by_kind_under_rules_4": (
        {
            **workflow([{"id": "a", "retry": {"on": ["status:404"], "when": "{{ attempt < 2 }}", "delay": 0}},
                        {"id": "b"}, {"id": "c"}], [], output="{{ nodes.a.error.child }}"),
            "edges": [
                {"from": "a", "to": "b", "on": "error", "when": "{{ error.status + 1 == 501 }}"},
                {"from": "a", "to": "c", "on": "error", "when": "{{ error.type == 'TRANSIENT' }}"},
            ],
        },
        [(Start(), 0), (Failed("a", 1, TOLD), 1), (Due(), 2), (Failed("a", 2, BOOM), 3), (Succeeded("c", 1), 4)],
    ),
    "rounds_under_rules_4": (
        workflow([{"id": "a", "repeat": {"until": "{{ last == 'c' }}", "delay": "1m"}, "with": {"it": "{{ last }}"}},
                  {"id": "b"}], [("a", "b", "exhausted")], output="{{ nodes.a.rounds }}"),
        [(Start(), 0), (Succeeded("a", 1, "a"), 1), (Due(), 61), (Start(), 62), (Lost("a", 2), 63),
         (Succeeded("a", 3, "b", inputs={"it": "a"}), 64), (Pause("ann"), 65), (Resume("ann"), 66), (Due(), 130),
         (Start(), 131), (Succeeded("a", 4, "c", tokens=7), 132)],
    ),
    "branch_retry_and_approval": (
        workflow(
            [{"id": "order"}, {"id": "big"}, {"id": "ask"}, {"id": "pay"}, {"id": "alert"}],
            [("order", "big"), ("big", "ask", "true"), ("big", "pay", "false"), ("ask", "pay", "approved"),
             ("pay", "alert", "error")],
            output="{{ nodes.pay.output }}",
            timeout="10m",
        ),
        [
            (Start(), 0),
            (Failed("order", 1, BOOM, inputs={"url": "x"}, jitter=0.5), 1),
            (Due(), 3),
            (Succeeded("order", 2, {"total": 120}), 4),
            (Succeeded("big", 1, None, ("true",)), 5),
            (Suspended("ask", 1, Approval("Refund?")), 6),
            (Decide("ask", True, "ann"), 60),
            (Start(), 61),
            (Lost("pay", 1), 62),
            (Succeeded("pay", 2, "paid"), 63),
        ],
    ),
    "map_dead_letter_requeued": (
        workflow([{"id": "m", "forEach": "{{ input }}", "concurrency": 2, "retry": {"maxAttempts": 1}}, {"id": "end"}],
                 [("m", "end")]),
        [
            (Start(), 0),
            (Expanded("m", 1, 4), 1),
            (Succeeded("m", 1, "a", item=0), 2),
            (Failed("m", 1, WRONG, item=1, inputs={"to": "nobody"}), 3),
            (Returned("m", 1, item=2), 4),
            (Succeeded("m", 1, "c", item=2), 5),
            (Requeue("m", "ann", 1, {"to": "ann"}), 60),
            (Start(), 61),
            (Succeeded("m", 2, "b", item=1), 62),
            (Succeeded("m", 1, "d", item=3), 63),
            (Succeeded("end", 1), 64),
        ],
    ),
    "map_continued_and_mended": (
        workflow([{"id": "m", "forEach": "{{ input }}", "concurrency": 1, "retry": {"maxAttempts": 1},
                   "failureTolerance": 1, "onItemFailure": "continue", "deadLetters": "always"}, {"id": "end"}],
                 [("m", "end")]),
        [
            (Start(), 0),
            (Expanded("m", 1, 3), 1),
            (Failed("m", 1, WRONG, item=0), 2),
            (Failed("m", 1, WRONG, item=1), 3),
            (Succeeded("m", 1, "c", item=2), 4),
            (Fix("m", "ann", "a", item=0), 60),
            (Start(), 61),
            (Succeeded("end", 1), 62),
            (Requeue("m", "ann", 1), 120),
            (Start(), 121),
            (Failed("m", 2, WRONG, item=1), 122),
            (Requeue("m", "ann", 1), 180),
            (Start(), 181),
            (Succeeded("m", 3, "b", item=1), 182),
        ],
    ),
    "stopped_fixed_and_paused": (
        workflow([{"id": "a", "retry": {"maxAttempts": 1}}, {"id": "b"}, {"id": "c"}, {"id": "d"}],
                 [("a", "c"), ("b", "d", "never")], onFailure="stop"),
        [
            (Start(), 0),
            (Failed("a", 1, BOOM), 1),
            (Succeeded("b", 1), 2),
            (Fix("a", "ann", {"x": 1}), 60),
            (Pause("ann", "lunch"), 61),
            (Resume("ann"), 90),
            (Start(), 91),
            (Suspended("c", 1, Timer(NOON + 200 * SECOND)), 92),
            (Due(), 200),
        ],
    ),
    "child_signal_and_cancel": (
        workflow([{"id": "child"}, {"id": "told"}, {"id": "last"}], [("child", "last"), ("told", "last")]),
        [
            (Start(), 0),
            (Suspended("child", 1, ChildWait("c1", "other", {"x": 1})), 1),
            (Tell("go", 7), 2),
            (Suspended("told", 1, SignalWait("go")), 3),
            (ChildEnded("child", 1, ExecutionState.FAILED, error="boom"), 4),
            (Retry("ann"), 60),
            (Start(), 61),
            (Cancel("ann", "enough"), 62),
            (Due(), 73),
        ],
    ),
    "held_and_released": (
        workflow([{"id": "call"}, {"id": "again"}, {"id": "last"}], [("call", "last"), ("again", "last")]),
        [
            (Start(), 0),
            (Suspended("call", 1, BreakerWait("http shop", NOON + 600 * SECOND)), 1),
            (Suspended("again", 1, BreakerWait("http bank", NOON + 30 * SECOND)), 2),
            (Due(), 30),
            (Start(), 31),
            (Succeeded("again", 1), 32),
            (Released("call", 1), 60),
            (Start(), 61),
            (Succeeded("call", 1), 62),
            (Succeeded("last", 1), 63),
        ],
    ),
}  # fmt: skip


def record(definition: dict[str, Any], signals: list[tuple[Signal, int]], rules: int) -> dict[str, Any]:
    """What the machine of today makes of a story."""
    execution = Execution(load_plan(json.dumps(definition).encode()))
    first = ExecutionAccepted(NOON, "e1", "default", "story", 1, "hash", input=["a", "b", "c", "d"], rules=rules)
    execution.apply([first])
    entries = [log.encode(1, [first])]
    for signal, seconds in signals:
        seq = execution.seq + 1
        events = execution.handle(signal, NOON + seconds * SECOND)
        if events:
            entries.append(log.encode(seq, events))
    return {
        "definition": definition,
        "signals": [{"signal": msgspec.to_builtins(each), "now": NOON + at * SECOND} for each, at in signals],
        "log": [json.loads(entry) for entry in entries],
        "state": execution.state,
        "nodes": {node: execution.node_state(index) for index, node in enumerate(execution.plan.ids)},
        # What its family is told once more was not written down in the first histories.
        "outstanding": [
            msgspec.to_builtins(command)
            for command in execution.outstanding()
            if not isinstance(command, Finish | CancelChild)
        ],
    }


def main() -> None:
    for name, (definition, signals) in STORIES.items():
        path = FOLDER / f"{name}.json"
        if not path.exists():
            path.write_text(json.dumps(record(definition, signals, RULES_OF.get(name, 0)), indent=1) + "\n")
            print(f"recorded {path.name}")


if __name__ == "__main__":
    main()

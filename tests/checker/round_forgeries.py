"""Histories of nodes that are repeated, and lies about them."""

from typing import Any

from msgspec.structs import replace

from ropewalk.checker import History
from ropewalk.core.definition import Definition
from ropewalk.core.duration import SECOND
from ropewalk.core.events import NodeSucceeded, RoundEnded, RunStarted
from ropewalk.core.plan import Plan, compile_plan
from ropewalk.core.signals import Due, Retry, Start
from tests.checker.forgeries import Forgery
from tests.checker.stories import change, drop, repeat, story, under
from tests.core.executions import NOON, WRONG, bad, ok

TWICE = {"until": "{{ index == 1 }}", "delay": "5s"}


def flow(rounds: dict[str, Any] | None, *others: str, **fields: Any) -> Plan:
    """A node `a` that is repeated so, and nodes that follow it when that was in vain."""
    first = {"id": "a", "type": "noop", **({} if rounds is None else {"repeat": rounds}), **fields}
    nodes = [first, *({"id": each, "type": "noop"} for each in others)]
    edges = [{"from": "a", "to": each, "on": "exhausted"} for each in others]
    return compile_plan(Definition({"name": "test", "nodes": nodes, "edges": edges}))


READING = {"with": {"it": "{{ last }}", "round": "{{ index }}"}}
ROUNDS = story(
    flow(TWICE, **READING), Start(), replace(ok("a", "x"), inputs={"it": None, "round": 0}), 5 * SECOND, Due(),
    replace(ok("a", "y", attempt=2), inputs={"it": "x", "round": 1}),
)  # fmt: skip
PLAIN = story(flow({"until": "{{ last == 'y' }}"}), Start(), ok("a", "x"), ok("a", "y", attempt=2))
IN_VAIN = story(flow({"until": "{{ false }}", "max": 2}), Start(), ok("a"), ok("a", attempt=2))
EXHAUSTED = story(flow({"while": "{{ true }}", "max": 2}, "b"), Start(), ok("a"), ok("a", attempt=2), ok("b"))
RETRIED = story(
    flow(TWICE, retry={"maxAttempts": 1}), Start(), ok("a"), 5 * SECOND, Due(), bad("a", WRONG, 2), Retry("ann"),
    Start(), ok("a", attempt=3),
)  # fmt: skip

ROUNDS_HONEST: dict[str, History] = {
    "rounds": ROUNDS, "plain": PLAIN, "in vain": IN_VAIN, "exhausted": EXHAUSTED, "retried round": RETRIED,
}  # fmt: skip

ROUND_FORGERIES = [
    Forgery("I-12", "given what another round gave", ROUNDS,
            change(ROUNDS, NodeSucceeded, inputs={"it": None, "round": 1})),
    Forgery("I-17", "a round that ends twice", PLAIN, repeat(PLAIN, RoundEnded)),
    Forgery("I-13", "a round that never began", ROUNDS, drop(ROUNDS, RunStarted)),
    Forgery("I-44", "a round after the last", ROUNDS, under(ROUNDS, flow({**TWICE, "until": "{{ true }}"}, **READING))),
    Forgery("I-44", "a round too few", ROUNDS, under(ROUNDS, flow({**TWICE, "until": "{{ index == 2 }}"}, **READING))),
    Forgery("I-44", "a round too many", ROUNDS, under(ROUNDS, flow({**TWICE, "max": 1}, **READING))),
    Forgery("I-44", "rounds of a node that is not repeated", PLAIN, under(PLAIN, flow(None))),
    Forgery("I-44", "a round before its time", ROUNDS, change(ROUNDS, RoundEnded, next_at=NOON + 9 * SECOND)),
    Forgery("I-44", "rounds without their delay", ROUNDS, change(ROUNDS, RoundEnded, next_at=NOON)),
    Forgery("I-44", "exhausted too early", EXHAUSTED, under(EXHAUSTED, flow({"while": "{{ true }}", "max": 3}, "b"))),
]  # fmt: skip

"""What is drawn: pure functions from JSON."""

import shlex
from collections.abc import Iterable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from ropewalk.cli.views.events import sentence
from ropewalk.cli.views.explain import explained
from ropewalk.cli.views.snapshot import Snapshot
from ropewalk.cli.views.text import lapse, one_line, plain
from ropewalk.cli.views.timeline import bar, chosen, note, timeline
from ropewalk.core import log
from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import Event, ExecutionAccepted
from ropewalk.core.execution import Execution
from ropewalk.core.plan import compile_plan
from ropewalk.core.signals import Expanded, Failed, Pause, Signal, Start, Succeeded, Suspended
from ropewalk.core.waits import Approval, ChildWait, SignalWait, Timer
from tests.core.node_types import NODE_TYPES

NOON = 1_800_000_000_000_000
SECOND = 1_000_000
BOOM = RunError(ErrorType.TRANSIENT, "boom")


def story(document: dict[str, Any], *signals: Signal) -> tuple[Snapshot, list[Event]]:
    """The picture of an execution that was told these, a second apart."""
    plan = compile_plan(parse_definition({"ropewalk": 1, "name": "w", **document}, NODE_TYPES))
    events: list[Event] = [ExecutionAccepted(NOON, "e1", "default", "w", 1, "")]
    machine = Execution(plan)
    machine.apply(events)
    for place, signal in enumerate(signals):
        events += machine.handle(signal, NOON + place * SECOND)
    snapshot = Snapshot(plan)
    snapshot.add(events)
    return snapshot, events


def drawn(snapshot: dict[str, Any], now: int = NOON, **options: Any) -> str:
    to = Console(file=StringIO(), width=200, markup=False)
    to.print(timeline(snapshot, now, **options))
    assert isinstance(to.file, StringIO)
    return to.file.getvalue()


def nodes(*ids: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"id": name, "type": "noop", **fields} for name in ids]


@pytest.mark.parametrize(
    ("length", "words"),
    [(0, "0ms"), (-5, "0ms"), (340_000, "340ms"), (1_240_000, "1.2s"), (185 * SECOND, "3m05s"),
     (7_800 * SECOND, "2h10m"), (100 * 3600 * SECOND, "4d04h"), (None, "")],
)  # fmt: skip
def test_a_length_of_time_is_said_shortly(length: int | None, words: str):
    assert lapse(length) == words


@pytest.mark.parametrize(("text", "shown"), [("a\x1b[31mb", "a\\x1b[31mb"), ("a\rb", "a\\x0db"), ("é\n→", "é\n→")])
def test_nothing_a_terminal_would_obey_is_shown(text: str, shown: str):
    assert plain(text) == shown


def test_a_long_text_is_cut_to_one_line():
    assert one_line("one\n two" + "o" * 100, 10) == "one twooo…"


def test_a_node_between_attempts_counts_down():
    snapshot, _ = story({"nodes": nodes("a")}, Start(), Failed("a", 1, BOOM))

    (node,) = snapshot.json()["nodes"]

    assert note(node, NOON + SECOND) == "retry in 1.0s: boom"


def test_an_execution_that_is_closed_says_with_which_outcome():
    once = {"retry": {"maxAttempts": 1}}
    document = {"nodes": nodes("a", **once), "finally": nodes("last")}
    snapshot, events = story(document, Start(), Failed("a", 1, BOOM))

    headline = drawn(snapshot.json()).splitlines()[0]

    assert "RUNNING" in headline
    assert "closed as FAILED" in headline
    assert [sentence(log.envelope("e1", 1, event)) for event in events][-2] == "closed with the outcome FAILED"


def test_a_map_shows_how_many_items_are_done_and_how_many_failed():
    map_node = {"id": "m", "type": "noop", "forEach": [1, 2, 3], "failureTolerance": 1, "retry": {"maxAttempts": 1}}
    snapshot, _ = story(
        {"nodes": [map_node]}, Start(), Expanded("m", 1, 3), Succeeded("m", 1, item=0), Failed("m", 1, BOOM, item=1)
    )

    (node,) = snapshot.json()["nodes"]

    assert note(node, NOON) == "1/3 items, 1 failed"


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (Timer(NOON + 5 * SECOND), "5.0s more"),
        (Approval("Really?"), "waits for approval: Really?"),
        (SignalWait("paid"), "waits for signal 'paid'"),
        (ChildWait("0123456789abcdef", "other"), "waits for child 89abcdef of other"),
    ],
)
def test_a_waiting_node_says_what_for(wait: Any, words: str):
    snapshot, events = story({"nodes": nodes("a")}, Start(), Suspended("a", 1, wait))

    (node,) = snapshot.json()["nodes"]

    assert words in note(node, NOON)
    assert words.split(",")[0] in " ".join(filter(None, told(events))) or isinstance(wait, Timer)


def told(events: Iterable[Event]) -> list[str | None]:
    return [sentence(log.envelope("e1", seq, event)) for seq, event in enumerate(events, 1)]


def test_bookkeeping_is_not_told():
    _, events = story({"nodes": nodes("a")}, Start(), Suspended("a", 1, Approval("?")))

    assert told(events)[-1] is None


@pytest.mark.parametrize(
    ("start", "end", "expected"), [(0, 100, "━━━━━━━━━━"), (50, 100, "     ━━━━━"), (99, 100, " " * 9 + "━")]
)
def test_a_bar_stands_where_the_node_ran(start: int, end: int, expected: str):
    node = {"startedAt": start, "finishedAt": end, "state": "SUCCESS"}

    assert bar(node, 0, 100, 10).plain == expected


def test_a_node_that_took_no_time_has_a_bar_too():
    node = {"startedAt": 100, "finishedAt": 100, "state": "SUCCESS"}

    assert bar(node, 0, 100, 10).plain.count("━") == 1


def test_of_many_nodes_those_that_matter_are_shown_in_graph_order():
    many = [
        {"id": f"n{number}", "state": "RUNNING" if number in (3, 900) else "WAITING", "finishedAt": None}
        for number in range(1000)
    ]

    assert [node["id"] for node in chosen(many, 3)] == ["n0", "n3", "n900"]


def test_the_rest_of_many_nodes_is_counted():
    snapshot, _ = story({"nodes": nodes(*(f"n{number}" for number in range(100)))}, Start(), Succeeded("n7", 1))

    assert "… 95 more of 100 nodes: 99 RUNNING, 1 SUCCESS" in drawn(snapshot.json(), most=5).replace(
        "1 SUCCESS, 99 RUNNING", "99 RUNNING, 1 SUCCESS"
    )


def test_a_user_cannot_draw_with_the_names_and_messages_it_chooses():
    bad = RunError(ErrorType.PERMANENT, "[red]\x1b[2J[/red]")
    snapshot, _ = story({"nodes": nodes("a")}, Start(), Failed("a", 1, bad))

    text = drawn(snapshot.json())

    assert "[red]\\x1b[2J[/red]" in text


def test_a_picture_is_the_same_whether_drawn_at_once_or_step_by_step():
    chain = {"nodes": nodes("a", "b", "c"), "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]}
    snapshot, events = story(chain, Start(), Failed("a", 1, BOOM), Pause("me"))
    slowly = Snapshot(snapshot.plan)
    for event in events:
        slowly.add((event,))
        slowly.json()

    assert slowly.json() == snapshot.json()


# Explanations


def reason(code: str = "TURN", why: str = "because", **more: Any) -> dict[str, Any]:
    return {"code": code, "why": why, "waitsFor": {}, "command": None, "action": None, "node": None, "item": None,
            **more}  # fmt: skip


def explanation(*reasons: dict[str, Any], **more: Any) -> str:
    """How such an explanation looks to a person who types `ropewalk`."""
    answer = {"id": "e1", "workflow": "w", "state": "RUNNING", "waitingFor": None, "reasons": reasons, "nodes": [],
              "nodesLeftOut": 0, **more}  # fmt: skip
    to = Console(file=StringIO(), width=200, markup=False)
    to.print(explained(answer, lambda *words: shlex.join(["ropewalk", *words])))
    assert isinstance(to.file, StringIO)
    return to.file.getvalue()


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (reason(), "• because"),
        (reason(command="resume e1"), "• because; go on with: ropewalk resume e1"),
        (reason(command="signal e1 'go on'", action="or wait"), "• because; go on with: ropewalk signal e1 'go on'"),
        (reason(action="start a worker"), "• because; what helps: start a worker"),
        (reason(node="a"), "• a: because"),
        (reason(node="m", item=3), "• m[3]: because"),
        (reason(why="a\x1b[2Jb"), "• a\\x1b[2Jb"),
    ],
)
def test_a_reason_is_a_line_with_what_to_do(given: dict[str, Any], line: str):
    assert line in [each.rstrip() for each in explanation(given).splitlines()]


def test_every_reason_of_an_execution_is_a_line():
    lines = explanation(reason(why="one"), reason(why="two"), waitingFor="capacity").splitlines()

    assert [line.rstrip() for line in lines] == ["w  e1  RUNNING  waits for capacity", "• one", "• two"]


def test_nodes_are_a_table_with_the_items_that_wait_below_theirs():
    item = reason("APPROVAL", "waits for approval", node="m", item=0, command="approve e1 m --item 0")
    node = {"id": "m", "state": "RUNNING", **reason("ITEMS", "0 of 1 items done"), "items": [item]}

    rows = [line.split() for line in explanation(nodes=[node], nodesLeftOut=7).splitlines()[1:]]

    assert rows == [
        ["NODE", "STATE", "WHY", "DO"],
        ["m", "RUNNING", "0", "of", "1", "items", "done"],
        ["m[0]", "waits", "for", "approval", "ropewalk", "approve", "e1", "m", "--item", "0"],
        ["…", "7", "more", "nodes", "are", "not", "done"],
    ]

"""What people look at, made of fixed facts: one function a view, all of the same little shop."""

import shlex
from collections.abc import Callable
from io import StringIO
from typing import Any, Final

from rich.console import Console, RenderableType

from ropewalk.cli.views.dlq import groups_listing, letter_details, letters_listing
from ropewalk.cli.views.executions import details, listing
from ropewalk.cli.views.explain import explained
from ropewalk.cli.views.prose import Advice
from ropewalk.cli.views.snapshot import Snapshot
from ropewalk.cli.views.timeline import timeline
from ropewalk.cli.views.waiting import approvals_listing
from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import Event, ExecutionAccepted
from ropewalk.core.execution import Execution
from ropewalk.core.plan import compile_plan
from ropewalk.core.signals import Failed, Signal, Start, Succeeded, Suspended
from ropewalk.core.waits import Approval
from tests.core.node_types import NODE_TYPES

NOON: Final = 1_800_000_000_000_000
SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
ORDER: Final = "01a1ecb4-9387-747e-8046-57be466c6cba"
REFUND: Final = "01a1ecb4-7863-72af-aa86-68725d213fbf"
LETTER: Final = "01a1ecb4-85e6-7928-b32d-52674838b259"
OTHER_LETTER: Final = "01a1ecb4-78b7-7609-8069-f43b4f13b1b6"
REFUSED: Final = "ValueError: the card 4242-4242 was refused by the bank: insufficient funds (code 51), ask for another"
TRACEBACK: Final = f"""\
Traceback (most recent call last):
  File "/srv/shop/orders.py", line 31, in charge_customer
    receipt = bank.charge(card, amount_of(order), currency=order["currency"], reference=order["id"], timeout=10)
  File "/srv/shop/bank.py", line 12, in charge
    raise ValueError(f"the card {{card}} was refused by the bank: {{answer.reason}}")
{REFUSED}"""
AWAY: Final = "ConnectionError: cannot reach https://warehouse.example/api/v2/stock?item=rope: connection refused"

_SHOP: Final[dict[str, Any]] = {
    "name": "order",
    "nodes": [
        {"id": name, "type": "noop", "retry": {"jitter": 0}}
        for name in ("wanted", "price", "stock", "enough", "more", "ship", "decline")
    ],
    "edges": [
        {"from": begin, "to": end}
        for begin, ends in {
            "wanted": ("price", "stock"),
            "price": ("enough",),
            "stock": ("enough",),
            "enough": ("more",),
            "more": ("ship", "decline"),
        }.items()
        for end in ends
    ],
}


def hint(*words: str) -> str:
    return shlex.join(["ropewalk", *words])


def _snapshot(execution: str, *signals: tuple[Signal, int]) -> dict[str, Any]:
    """The shop's workflow after these signals, each at its time (ms after noon)."""
    plan = compile_plan(parse_definition({"ropewalk": 1, **_SHOP}, NODE_TYPES))
    events: list[Event] = [ExecutionAccepted(NOON, execution, "default", "order", 1, "")]
    machine = Execution(plan)
    machine.apply(events)
    for signal, after in signals:
        events += machine.handle(signal, NOON + after * 1000)
    snapshot = Snapshot(plan)
    snapshot.add(events)
    return snapshot.json()


_BEGUN: Final = (
    (Start(), 2), (Succeeded("wanted", 1), 14), (Succeeded("price", 1), 40),
    (Failed("stock", 1, RunError(ErrorType.TRANSIENT, AWAY)), 60),
)  # fmt: skip
_SHORT: Final = RunError(ErrorType.PERMANENT, REFUSED)


def run_under_way() -> list[RenderableType]:
    return [timeline(_snapshot(ORDER, *_BEGUN), NOON + 612_000)]


def run_failed() -> list[RenderableType]:
    stopped = _snapshot(ORDER, *_BEGUN[:-1], (Failed("stock", 1, _SHORT), 60))
    return [
        timeline(stopped, NOON + SECOND),
        Advice("1 dead letter", hint("dlq", "show", LETTER)),
        Advice("with other inputs", hint("dlq", "requeue", LETTER, "--set", "KEY=JSON")),
        Advice("try again", hint("retry", ORDER)),
    ]


def executions_ls() -> list[RenderableType]:
    def row(name: str, workflow: str, state: str, began: int, took: int, error: str | None = None) -> dict[str, Any]:
        at = "2027-01-15T08:%02d:00Z"
        return {"id": name, "workflow": workflow, "version": 1, "state": state, "acceptedAt": at % began,
                "startedAt": at % began, "finishedAt": None if state == "RUNNING" else at % (began + took),
                "error": error}  # fmt: skip

    found = [
        row(ORDER, "order", "RUNNING", 0, 0),
        row(REFUND, "refund-of-an-order", "FAILED", 2, 3, f"charge_customer: {REFUSED}"),
        row("01a1ecb4-cee4-7570-bbb0-a3487943a1be", "order", "SUCCESS", 5, 1),
        row("01a1ecb4-8b5b-7397-ba02-a8df40c58f00", "nightly-report", "CANCELLED", 7, 20),
    ]
    return [listing(found, NOON + 90 * SECOND)]


def executions_show() -> list[RenderableType]:
    waiting = _snapshot(
        ORDER, *_BEGUN[:-1], (Succeeded("stock", 1), 60), (Succeeded("enough", 1), 80),
        (Suspended("more", 1, Approval("Only 2 coils of rope left, Ann wants 30 by Friday. Make more?")), 90),
    )  # fmt: skip
    return [details(_shown([]), waiting, NOON + 3 * MINUTE)]


def executions_show_failed() -> list[RenderableType]:
    stopped = _snapshot(ORDER, *_BEGUN[:-1], (Failed("stock", 1, _SHORT), 60))
    nodes = [
        {"id": "price", "state": "SUCCESS", "error": None},
        {"id": "stock", "state": "FAILED", "error": {"message": REFUSED, "detail": TRACEBACK}},
    ]
    return [details(_shown(nodes), stopped, NOON + SECOND)]


def _shown(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """What `executions show` reads of an execution beside its snapshot."""
    given = {"item": "rope", "quantity": 30}
    return {"input": given, "output": None, "metrics": {"tokens": None}, "nodes": nodes}


def explain() -> list[RenderableType]:
    def said(why: str, node: str | None = None, item: int | None = None, command: str | None = None) -> dict[str, Any]:
        return {"code": "X", "why": why, "waitsFor": {}, "command": command, "action": None, "node": node, "item": item}

    manager = ("waits for approval: Refund 250 to Ann?, until 2027-01-17T08:00:00Z at the latest", "ask_the_manager")
    approve = f"approve {ORDER} ask_the_manager"
    one = said("waits for approval: Item 1?", "each", 0, f"approve {ORDER} each --item 0")
    nodes = [
        {"id": "ask_the_manager", "state": "RUNNING", "items": [], **said(*manager, command=approve)},
        {"id": "each", "state": "RUNNING", "items": [one], **said("0 of 1 items done, 0 failed, 1 under way", "each")},
        {"id": "pay", "state": "WAITING", "items": [], **said("behind ask_the_manager", "pay")},
    ]
    explanation = {"id": ORDER, "workflow": "refund-of-an-order", "state": "RUNNING", "waitingFor": "approval",
                   "reasons": [said(*manager, command=approve)], "nodes": nodes, "nodesLeftOut": 0}  # fmt: skip
    return [explained(explanation, hint)]


def _letter(name: str, node: str, reason: str, attempt: int) -> dict[str, Any]:
    return {"id": name, "executionId": REFUND, "node": node, "item": None, "attempt": attempt, "reason": reason,
            "failureType": "MAX_RETRIES", "errorType": "TRANSIENT", "createdAt": "2027-01-15T08:02:03Z",
            "resolution": "PENDING", "notes": None, "inputs": {"card": "4242-4242"}}  # fmt: skip


def dlq_ls() -> list[RenderableType]:
    found = [_letter(LETTER, "charge_customer", REFUSED, 3), _letter(OTHER_LETTER, "warehouse", AWAY, 2)]
    return [letters_listing(found)]


def dlq_groups() -> list[RenderableType]:
    def group(count: int, fingerprint: str, node: str, reason: str) -> dict[str, Any]:
        return {"count": count, "fingerprint": fingerprint, "workflow": "refund-of-an-order", "node": node,
                "failureType": "MAX_RETRIES", "firstAt": "2027-01-15T08:02:03Z", "lastAt": "2027-01-15T08:42:03Z",
                "reason": reason}  # fmt: skip

    return [
        groups_listing([
            group(1204, "149252e5ddda749c", "warehouse", AWAY),
            group(3, "3700b545efd651e0", "charge_customer", REFUSED),
        ])
    ]  # fmt: skip


def dlq_show() -> list[RenderableType]:
    letter = {**_letter(LETTER, "charge_customer", REFUSED, 3), "notes": "ann: asked the bank\nbob: they said no"}
    return [letter_details(letter, hint)]


def approvals() -> list[RenderableType]:
    def row(title: str, node: str, item: int | None, until: str | None, subjects: tuple[str, ...],
            *, is_yours: bool = True) -> dict[str, Any]:  # fmt: skip
        return {"executionId": ORDER, "workflow": "refund-of-an-order", "node": node, "item": item, "title": title,
                "since": "2027-01-15T08:00:00Z", "expiresAt": until, "mayAnswer": is_yours,
                "answerers": {"roles": ["operator", "editor", "admin"], "subjects": list(subjects)}}  # fmt: skip

    found = [
        row("Refund 250 to Ann?", "ask_the_manager", None, "2027-01-17T08:00:00Z", ()),
        row("Only 2 coils of rope left, Ann wants 30 by Friday. Make more?", "each", 7, None, ("ann", "bob")),
        row(
            "Close the books of 2026?", "close", None, None, tuple(f"user-{each}" for each in range(8)), is_yours=False
        ),
    ]
    return [approvals_listing(found, hint, NOON + 90 * MINUTE)]


SCENES: Final[dict[str, Callable[[], list[RenderableType]]]] = {
    each.__name__: each
    for each in (
        run_under_way,
        run_failed,
        executions_ls,
        executions_show,
        executions_show_failed,
        explain,
        dlq_groups,
        dlq_ls,
        dlq_show,
        approvals,
    )
}


def captured(scene: str, width: int) -> str:
    """What a terminal of so many columns shows, without colours; longer lines are the terminal's to fold."""
    to = Console(file=StringIO(), width=width, markup=False, emoji=False, highlight=False)
    for part in SCENES[scene]():
        to.print(part, crop=False)
    assert isinstance(to.file, StringIO)
    return "\n".join(line.rstrip() for line in to.file.getvalue().splitlines()) + "\n"

"""The inbox: signals in order, each told once, found by the worker that has the execution in hand."""

import msgspec
import pytest

from ropewalk.core.commands import StartChild
from ropewalk.core.waits import ChildWait
from ropewalk.store import inbox
from ropewalk.store.access import Store
from ropewalk.store.rows import NewSignal
from tests.store.samples import NOON, execution, live_row


async def test_signals_are_read_in_order_and_removed_once(store: Store):
    await store.write([("insert_inbox", [NewSignal(name, "e1", f'"{name}"', NOON) for name in ("s2", "s1", "s3")])])

    async with store.transaction() as tx:
        answers = [await inbox.remove(tx, "s1") for _ in range(2)]

    assert answers == [True, False]
    assert [found.signal for found in await inbox.of_execution(store, "e1")] == ['"s2"', '"s3"']


async def test_a_worker_finds_the_signals_of_its_executions_and_of_those_without_an_owner(store: Store):
    lives = [live_row("e1", owner="local"), live_row("e2"), live_row("e3", owner="other")]
    signals = [NewSignal(f"s{n}", f"e{n % 3 + 1}", "{}", NOON) for n in range(9)]
    await store.write([("insert_live", lives), ("insert_inbox", signals)])

    found = await inbox.messages_for(store, "local", limit=5)

    assert [letter.id for letter in found] == ["s0", "s1", "s3", "s4", "s6"]


@pytest.mark.parametrize(
    ("child", "is_forgotten"), [("e1", False), ("e2", False), ("e3", True)], ids=["there", "coming", "never"]
)
async def test_a_letter_to_a_child_is_kept_while_the_child_is_there_or_to_come(
    store: Store, child: str, is_forgotten: bool
):
    starting = msgspec.json.encode(StartChild("call", 1, ChildWait("e2", "w"))).decode()
    await store.write([
        ("insert_execution", [execution("e1")]),
        ("insert_inbox", [NewSignal("s1", "e0", starting, NOON), NewSignal("s2", child, "{}", NOON)]),
    ])  # fmt: skip

    async with store.transaction() as tx:
        forgotten = await inbox.forget_unless_coming(tx, "s2", child)

    assert forgotten is is_forgotten
    assert await inbox.waits(store, "s2") is not is_forgotten

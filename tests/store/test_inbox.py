"""The inbox: signals in order, each told once, found by whoever has the execution in hand."""

from ropewalk.store import inbox
from ropewalk.store.access import Store
from ropewalk.store.rows import NewSignal
from tests.store.samples import NOON, live_row


async def test_signals_are_read_in_order_and_removed_once(store: Store):
    await store.write([("insert_inbox", [NewSignal(name, "e1", f'"{name}"', NOON) for name in ("s2", "s1", "s3")])])

    async with store.transaction() as tx:
        answers = [await inbox.remove(tx, "s1") for _ in range(2)]

    assert answers == [True, False]
    assert [found.signal for found in await inbox.of_execution(store, "e1")] == ['"s2"', '"s3"']
    assert await inbox.count(store, "e1") == 2


async def test_a_worker_finds_the_signals_of_its_executions_and_of_those_that_are_nobodys(store: Store):
    lives = [live_row("e1", owner="local"), live_row("e2"), live_row("e3", owner="other")]
    signals = [NewSignal(f"s{n}", f"e{n % 3 + 1}", "{}", NOON) for n in range(9)]
    await store.write([("insert_live", lives), ("insert_inbox", signals)])

    found = await inbox.letters_for(store, "local", limit=5)

    assert [letter.id for letter in found] == ["s0", "s1", "s3", "s4", "s6"]

"""A process killed while it writes leaves whole transactions only, and everything it was told is durable."""

import itertools

import pytest

from ropewalk.store.sqlite import SqliteStore
from tests.store.conftest import Start
from tests.store.samples import ask
from tests.store.test_ownership import line

ROUNDS = 5


@pytest.mark.parametrize("rows", [3, 300])
async def test_a_kill_leaves_whole_transactions_and_loses_none(path: str, start: Start, rows: int):
    told: list[str] = []
    for round_ in range(ROUNDS):
        writer = start("write", path, str(rows))
        told += [line(writer) for _ in range(5 + 7 * round_)]
        writer.kill()
        assert writer.stdout
        # What it still said before it died counts as well.
        told += [name.strip() for name in itertools.islice(writer.stdout, 100_000) if name.endswith("\n")]
        writer.wait()

    store = await SqliteStore.open(path)
    kept = ask(path, "select execution, count(*), max(seq) from log group by execution")

    assert {(count, last) for _, count, last in kept} == {(rows, rows)}
    assert set(told) <= {execution for execution, _, _ in kept}
    assert store.epoch == ROUNDS + 1
    await store.close()

"""The judgement every engine's tests end with finds what is wrong with a store."""

from pathlib import Path

import pytest

from tests.engines.judging import judge
from tests.engines.worlds import ONCE, World, act, flow
from tests.store.samples import tell

FORGERIES = {
    "a lost run": ("delete from run where node = 'a'", "I-36"),
    "an entry twice": ("insert into log select execution, seq + 100, entry from log where seq > 1", "I-01"),
    "something untold": ("insert into inbox (id, execution, signal, sent_at) select 'x', id, '{}', 0 from execution",
                         "yet to be told"),
    "a lost execution": ("delete from execution", "it has rows and does not exist"),
}  # fmt: skip


@pytest.mark.parametrize(("forgery", "complaint"), FORGERIES.values(), ids=list(FORGERIES))
async def test_a_forged_store_is_found_out(tmp_path: Path, forgery: str, complaint: str):
    world = World(str(tmp_path / "ropewalk.db"))
    await world.open()
    await world.run(flow(act("a"), act("b", fails=9, retry=ONCE), edges="a->b"))
    await world.close()
    assert await judge(world.db, world.outside.effects) == []

    tell(world.db, forgery)

    assert any(complaint in each for each in await judge(world.db, world.outside.effects))


async def test_an_effect_nobody_recorded_is_found_out(tmp_path: Path):
    world = World(str(tmp_path / "ropewalk.db"))
    await world.open()
    await world.run(flow(act("a")))
    await world.close()

    complaints = await judge(world.db, world.outside.effects * 2)

    assert [each.partition(" ")[0] for each in complaints] == ["I-32", "I-33"]

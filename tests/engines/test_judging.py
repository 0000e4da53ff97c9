"""The judgement every engine's tests end with finds what is wrong with a store."""

from pathlib import Path

import pytest

from tests.engines.judging import judge
from tests.engines.worlds import ONCE, World, act, flow
from tests.store.samples import tell

FORGERIES = {
    "another state": ("update execution set state = 'SUCCESS'", "execution.state"),
    "another end": ("update execution set finished_at = finished_at + 1", "execution.finished_at"),
    "a lost run": ("delete from run where node = 'a'", "run a"),
    "a run too many": ("insert into run (id, execution, node, attempt, state) select 'x', id, 'a', 9, 'SUCCESS' "
                       "from execution", "not in the log"),
    "another outcome": ("update run set state = 'FAILED' where node = 'a'", "run a[None] 1.state"),
    "a lost dead letter": ("delete from dead_letter", "dead letter of b"),
    "a resolution nobody made": ("update dead_letter set resolution = 'FIXED'", "dead letter of b.resolution"),
    "one that should be dead": ("insert into live select id, workspace, null, 0, 1, null, 0, 0, null, 5 "
                                "from execution", "among the living"),
    "a lost entry": ("delete from log where seq = (select max(seq) from log)", "execution.state"),
    "an entry twice": ("insert into log select execution, seq + 100, entry from log where seq > 1", "I-01"),
    "something untold": ("insert into inbox select 'x', id, '{}', 0 from execution", "still to be told"),
    "a lost execution": ("delete from execution", "has a log and no row"),
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

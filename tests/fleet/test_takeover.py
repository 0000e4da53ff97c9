"""Whoever takes over from the dead takes over all there is."""

import asyncio
import signal
from typing import Any

import asyncpg

from tests.fleet.fleet import Fleet, until
from tests.fleet.workflows import workflow

GATED = workflow("gated", [{"id": "one", "type": "fleet.gated"}])
COUNT = 3


async def under_way(crew: Fleet) -> list[str]:
    """Executions in the middle of something, in the order in which they came."""
    version = await crew.client.save(GATED)
    ids = [await crew.client.start(version) for _ in range(COUNT)]

    async def are_under_way() -> bool:
        return len(crew.place.effects.read()) == COUNT

    await until(are_under_way, "all are under way")
    return ids


async def take_over(crew: Fleet) -> None:
    """The client, which has to be told to, takes over from whoever is dead."""
    engine = crew.client.engine

    async def has_taken_over() -> bool:
        await engine.takeover.look()
        return bool(engine.memory.lives)

    await until(has_taken_over, "the dead one is believed dead")


async def test_one_that_is_gone_before_its_turn_keeps_no_other_waiting(crew: Fleet):
    [victim], heir = await crew.join(1), crew.client.store.worker
    first, second, third = await under_way(crew)
    victim.signal(signal.SIGKILL)
    keeper: Any = await asyncpg.connect(crew.url)
    try:
        # Nobody can read a log: all are taken over, and none is taken up yet.
        await keeper.execute("begin; lock table log in access exclusive mode")
        taking = asyncio.create_task(take_over(crew))
        await until(lambda: crew.owned_by([heir]), "they are in other hands")
        await crew.ask("update live set owner = null where execution = $1", second)
        await keeper.execute("rollback")
        await taking
    finally:
        await keeper.close()
    crew.place.turn_on("gate")

    assert await crew.states([first, third]) == ["SUCCESS"] * 2

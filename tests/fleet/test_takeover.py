"""A member that takes over from the dead takes over all there is."""

import asyncio
import signal
from typing import Any

import asyncpg
import pytest

from ropewalk.engines.native import takeover
from ropewalk.service.verbs import NewStart
from ropewalk.store.postgres import PostgresStore
from tests.fleet.fleet import Fleet
from tests.fleet.workflows import workflow
from tests.polling import until

GATED = workflow("gated", [{"id": "one", "type": "fleet.gated"}])


async def under_way(crew: Fleet, count: int, kinds: int = 1) -> list[str]:
    """Executions in the middle of something, of so many workflows in turn, in the order in which they came."""
    versions = [await crew.client.save({**GATED, "name": f"gated {kind}"}) for kind in range(kinds)]
    before = len(crew.place.effects.read())
    ids = await crew.client.start_batch([NewStart(versions[number % kinds]) for number in range(count)])

    async def are_under_way() -> bool:
        return len(crew.place.effects.read()) == before + count

    await until(are_under_way, "all are under way")
    return ids


async def take_over(crew: Fleet) -> None:
    """The client, which has to be told to, takes over from the dead members."""
    engine = crew.client.engine

    async def has_taken_over() -> bool:
        await engine.takeover.look()
        return bool(engine.memory.lives)

    await until(has_taken_over, "the dead one is believed dead")


async def test_one_that_is_gone_before_its_turn_keeps_no_other_waiting(crew: Fleet):
    [victim], heir = await crew.join(1), crew.client.store.worker
    first, second, third = await under_way(crew, 3)
    victim.signal(signal.SIGKILL)
    keeper: Any = await asyncpg.connect(crew.url)
    try:
        # No member can read a log: all are taken over, and none is taken up yet.
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


async def test_one_whose_log_makes_no_sense_keeps_no_other_waiting(crew: Fleet):
    [victim] = await crew.join(1)
    first, second, third = await under_way(crew, 3)
    victim.signal(signal.SIGKILL)
    await crew.ask("delete from log where execution = $1 and seq = 1", second)
    await take_over(crew)
    crew.place.turn_on("gate")

    assert await crew.states([first, third]) == ["SUCCESS"] * 2
    assert await crew.ask("select owner, has_slot from live") == [(None, 0)]


async def test_what_a_newer_ropewalk_has_written_is_kept_for_one(crew: Fleet):
    [victim], heir = await crew.join(1), crew.client.store.worker
    first, second, third = await under_way(crew, 3)
    victim.signal(signal.SIGKILL)
    await write_as(crew, second, "2", "3")
    await take_over(crew)
    crew.place.turn_on("gate")

    assert await crew.states([first, third]) == ["SUCCESS"] * 2
    assert await crew.ask("select execution, owner, has_slot from live") == [(second, heir, 1)]
    await write_as(crew, second, "3", "2")
    assert await crew.states([second]) == ["SUCCESS"]


async def write_as(crew: Fleet, execution: str, before: str, after: str) -> None:
    """The log of the execution is of another version."""
    told = f"""convert_to(replace(convert_from(entry, 'utf8'), '"v":{before}', '"v":{after}'), 'utf8')"""
    await crew.ask(f"update log set entry = {told} where execution = $1", execution)


@pytest.mark.parametrize("kinds", [1, 15])
async def test_what_the_dead_left_is_read_together_however_much_it_is(
    crew: Fleet, kinds: int, monkeypatch: pytest.MonkeyPatch
):
    [victim] = await crew.join(1)
    ids = await under_way(crew, 30, kinds)
    victim.signal(signal.SIGKILL)
    await until(lambda: dead(crew), "the dead one is believed dead")
    crew.client.engine.versions.forget()
    asked = questions_of(crew, monkeypatch)
    await crew.client.engine.takeover.look()
    crew.place.turn_on("gate")

    # Who is dead and who is gone, the offers, which of them workers die of, what the tables say, the waits, the logs,
    # the versions.
    assert len(asked) <= 11
    assert await crew.states(ids) == ["SUCCESS"] * 30


async def test_whom_a_dead_one_keeps_waiting_takes_over_from_the_others(crew: Fleet):
    [held] = await crew.join(1, executions=2)
    kept = await under_way(crew, 2)
    [other] = await crew.join(1)
    free = await under_way(crew, 2)
    for victim in (held, other):
        victim.signal(signal.SIGKILL)
    keeper: Any = await asyncpg.connect(crew.url)
    try:
        await keeper.execute("begin")
        # As one does that is stopped while it writes.
        await keeper.execute("select 1 from worker where id = $1 for key share", held.names[0])
        await until(lambda: dead_ones(crew, 2), "both are believed dead")
        await crew.client.engine.takeover.look()
        first = list(crew.client.engine.memory.lives)
        await keeper.execute("rollback")
    finally:
        await keeper.close()
    await crew.client.engine.takeover.look()
    crew.place.turn_on("gate")

    assert sorted(first) == sorted(free)
    assert await crew.states([*kept, *free]) == ["SUCCESS"] * 4


async def test_a_worker_without_room_takes_a_few_at_a_time(crew: Fleet):
    [victim], engine = await crew.join(1), crew.client.engine
    engine.takeover._most = 1
    ids = await under_way(crew, takeover.LEAST + 5)
    victim.signal(signal.SIGKILL)
    await until(lambda: dead_ones(crew, 1), "the dead one is believed dead")
    await engine.takeover.look()
    first = len(engine.memory.lives)
    await engine.takeover.look()
    crew.place.turn_on("gate")

    assert first == takeover.LEAST
    assert await crew.states(ids) == ["SUCCESS"] * len(ids)


async def test_one_that_is_gone_and_left_nothing_is_let_be(crew: Fleet, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(takeover, "GRACE", 0)
    [victim], store = await crew.join(1), crew.client.store
    victim.signal(signal.SIGKILL)
    await until(store.departed, "it is known to be gone")
    await crew.client.engine.takeover.look()

    assert await crew.ask("select epoch from worker where id = $1", victim.names[0]) == [(1,)]


async def dead_ones(crew: Fleet, count: int) -> bool:
    return len(await dead(crew)) == count


async def dead(crew: Fleet) -> dict[str, int]:
    return await crew.client.engine.takeover._dead()


def questions_of(crew: Fleet, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the client asks of the database from now on, but for its transactions."""
    store, asked = crew.client.store, list[str]()
    assert isinstance(store, PostgresStore)
    ask = store._reader.ask

    async def noted(text: str, *arguments: Any) -> list[Any]:
        asked.append(text)
        return await ask(text, *arguments)

    monkeypatch.setattr(store._reader, "ask", noted)
    return asked

"""The tables follow the log: a projection of events that they know already changes nothing."""

from collections import defaultdict
from typing import Any

from ropewalk.core import log
from ropewalk.core.events import Event, NodeFailed, RunWaiting
from ropewalk.engines.native.live import Fold, Live, Written
from ropewalk.engines.native.projecting import RowsByStatement, put_rows
from ropewalk.engines.native.record import recorded
from ropewalk.service import reading
from ropewalk.store import log as stored_log
from ropewalk.store.address import is_shared
from tests import postgres
from tests.engines.judging import ask
from tests.engines.worlds import ONCE, World, act, at_most, flow, node

TABLES = ("execution", "live", "queue", "run", "dead_letter", "log", "event_wait", "inbox", "blob_reference")
STORY = flow(
    act("a", 1), node("m", "act", forEach=[1, 2, 3], value="{{ item }}"), act("b", fails=9, retry=ONCE),
    node("w", "wait", event="order.paid"), edges="a->m m->b",
)  # fmt: skip


async def tables(world: World) -> dict[str, list[Any]]:
    """Every row that the log of an execution makes."""
    found: dict[str, list[Any]] = {}
    for name in TABLES:
        question = f"select * from {name}"
        rows = await postgres.ask(world.db, question) if is_shared(world.db) else ask(world.db, question)
        found[name] = sorted(map(repr, rows))
    return found


async def live_from(world: World, execution: str, events: list[Event], known: int) -> Live:
    """An execution folded from its log by an engine that has projected so many events, as far as it heard."""
    entries = (await stored_log.whole(world.service.store, [execution]))[execution]
    accepted = log.acceptance(events)
    fold = Fold(await world.service.engine.versions.followed(accepted), accepted)
    fold.add(events[:known], 0)
    live = fold.done((await recorded(world.service.store, [execution]))[execution].written)
    live.written.seal = log.seal_of(entries[-1])
    return live


async def project(world: World, live: Live) -> RowsByStatement:
    batch: RowsByStatement = defaultdict(list)
    put_rows(live, None, batch)
    if batch:
        store = world.service.store
        await store.write(store.prepared(sorted(batch.items())))
    return batch


async def test_a_projection_of_the_same_events_changes_nothing(place: World):
    execution = await place.start(STORY)
    await at_most(20, place.until(execution, NodeFailed))
    await at_most(20, place.until(execution, RunWaiting, "w"))
    await place.close()
    await place.open(claims=False)
    events = (await reading.recorded(place.service.store, execution)).events
    before = await tables(place)

    live = await live_from(place, execution, events, len(events))
    live.events = events
    again = await project(place, live)

    assert again == {}
    assert await tables(place) == before


async def test_of_events_that_are_known_in_part_the_others_are_projected(place: World):
    ended = await at_most(20, place.run(flow(act("a", 1), act("b", fails=9, retry=ONCE), edges="a->b")))
    events = (await reading.recorded(place.service.store, ended.execution)).events
    accepted = log.acceptance(events)
    live = Live(await place.service.engine.versions.followed(accepted), accepted)
    live.execution.apply(events)
    live.ledger.add(events[:3])
    live.ledger.take()
    live.events, live.written = events, Written(seq=3)

    batch: RowsByStatement = defaultdict(list)
    put_rows(live, None, batch)

    ((execution, first, entry),) = batch["insert_log"]
    assert (execution, first) == (ended.execution, 4)
    assert log.decode(entry) == (4, events[3:])
    assert len(batch["upsert_dead_letter"]) == 1
    assert live.written.seq == len(events)

"""What is old goes: whole, in bounded steps, by one worker at a time, and never what someone may still need."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ropewalk.core.duration import DAY, HOUR
from ropewalk.core.errors import InvalidInput, NotFound
from ropewalk.core.events import RunWaiting
from ropewalk.core.state import ExecutionState
from ropewalk.service import retention
from ropewalk.service.auditing import Audit
from ropewalk.service.retention import START, Policy, Retention, Swept, run_forever, survey, sweep
from ropewalk.store import audit, executions, idempotency, workflows
from ropewalk.store.access import Store
from ropewalk.store.rows import CachedResult, IdempotencyEntry
from tests import postgres
from tests.engines.judging import ask, every_execution
from tests.engines.worlds import ONCE, World, act, flow, node

MONTH = 30 * DAY
LARGE = "x" * 100_000
ASK = node("ask", "approval", title="Really?")
BROKEN = flow(act("a", fails=99, retry=ONCE), name="broken")


async def swept(world: World, after: int = MONTH + DAY, **policy: Any) -> Swept:
    """The first step of a round so much later."""
    store = world.service.store
    return await sweep(store, store.now() + after, Policy(**policy))


async def swept_up(world: World, after: int = MONTH + DAY) -> list[int]:
    """How many executions go in each round, until none does."""
    rounds = []
    while removed := (await swept(world, after)).executions:
        rounds.append(removed)
    return rounds


async def test_what_ended_long_ago_goes_and_leaves_nothing_but_the_audit_log(world: World):
    document = flow(act("a", fails=1), node("b", "noop", forEach=[1, 2]), edges="a->b")
    ended = await world.run(document)
    rows = await audit.listed(world.service.store, "default")

    early, late = await swept(world, MONTH - DAY), await swept(world)

    assert (early.executions, late.executions) == (0, 1)
    for table in ("execution", "log", "run", "live", "queue"):
        assert ask(world.db, f"select * from {table}") == []
    assert await audit.listed(world.service.store, "default") == rows
    assert await workflows.get_by_name(world.service.store, "default", "test") is not None
    with pytest.raises(NotFound):
        await world.service.retry(ended.execution)


async def test_what_is_not_over_stays_however_old_it_is(world: World):
    asking = await world.start(flow(ASK))
    await world.until(asking, RunWaiting)

    assert (await swept(world, 1000 * DAY)).executions == 0
    assert await world.service.cancel(asking)


async def test_an_execution_stays_while_one_of_its_letters_waits_for_a_person_and_a_month_longer(world: World):
    ended = await world.run(BROKEN)
    (letter,) = await world.letters(ended.execution)
    waiting = await swept(world, 1000 * DAY)
    await world.service.discard(letter["id"])

    resolved, later = await swept(world, MONTH - DAY), await swept(world)

    assert [each.executions for each in (waiting, resolved, later)] == [0, 0, 1]
    assert ask(world.db, "select * from dead_letter") == []


async def test_a_letter_of_any_age_can_be_requeued(world: World):
    child = flow(act("a", fails=1, retry=ONCE), name="child")
    await world.save(child)
    parent = await world.run(flow(node("call", "subworkflow", workflow="child")))
    (below,) = await world.children(parent.execution)
    (letter,) = await world.letters(below)

    assert await swept_up(world, 1000 * DAY) == []

    await world.service.requeue(letter["id"])
    assert (await world.ended(parent.execution)).state is ExecutionState.SUCCESS


async def test_a_child_stays_while_its_parent_is_not_over_and_goes_before_it(world: World):
    await world.save(flow(act("a"), name="child"))
    parent = await world.start(flow(node("call", "subworkflow", workflow="child"), ASK, edges="call->ask"))
    await world.until(parent, RunWaiting, "ask")
    live = await swept_up(world)
    await world.service.decide(parent, "ask", approved=True)
    await world.ended(parent)

    rounds = await swept_up(world)

    assert (live, rounds) == ([], [1, 1])
    assert every_execution(world.db) == []


async def test_a_retry_keeps_what_it_is_about_to_reopen(world: World):
    ended = await world.run(flow(act("a", fails=1, retry=ONCE)))

    await world.service.retry(ended.execution)

    ((held, until),) = ask(world.db, "select execution, until from retention_hold")
    assert (held, until > world.service.store.now() + HOUR // 2) == (ended.execution, True)
    assert (await world.ended(held)).state is ExecutionState.SUCCESS


async def test_a_step_removes_no_more_than_it_may_and_the_next_goes_on_there(world: World):
    for number in range(5):
        await world.run(flow(act("a")), number)
    store = world.service.store
    later = store.now() + MONTH + DAY

    steps, position = [], START
    while position.execution is not None:
        step = await sweep(store, later, position=position, limit=2)
        steps.append(step.executions)
        position = step.position

    assert steps == [2, 2, 1]


# Blobs


def files(world: World) -> list[str]:
    return sorted(path.name for path in Path(f"{world.db}.blobs").glob("*/*"))


def age_files(world: World) -> None:
    """As if they had not been used for days."""
    for path in Path(f"{world.db}.blobs").glob("*/*"):
        os.utime(path, (path.stat().st_mtime - 3 * 86400,) * 2)


async def test_a_large_result_goes_a_day_after_the_last_execution_that_names_it(world: World):
    document = flow(act("a", "{{ input }}"), act("b"), edges="a->b")
    first = await world.run(document, LARGE)
    again = await world.ended(await world.service.rerun(first.execution, "b"))
    assert len(files(world)) == 2  # what `a` was given, and what it made of it
    age_files(world)
    store = world.service.store
    async with store.transaction() as tx:
        await tx.execute("remove_execution", first.execution)
        await tx.execute("remove_log", first.execution)
        await tx.execute("remove_runs", first.execution)
        await tx.execute("release_blobs", 0, first.execution)

    named = await swept(world, MONTH - DAY)
    let_go = await swept(world)
    a_day_later = await swept(world, MONTH + 3 * DAY)

    assert again.state is ExecutionState.SUCCESS
    # What the first was given goes with the first; what it made is named by the second.
    assert [(each.executions, each.blobs) for each in (named, let_go, a_day_later)] == [(0, 1), (1, 0), (0, 1)]
    assert files(world) == []
    assert ask(world.db, "select * from blob") == []


async def test_a_large_result_that_is_made_again_while_it_is_removed_stays(world: World):
    document = flow(act("a", "{{ input }}"))
    await world.run(document, LARGE)
    age_files(world)
    await swept(world)
    again = await world.run(document, LARGE)

    late = await swept(world, MONTH - DAY)

    assert late.blobs == 0
    assert (await world.details(again.execution))["output"] == {"a": LARGE}


async def test_a_large_result_that_cannot_be_removed_holds_up_nothing_else(
    world: World, caplog: pytest.LogCaptureFixture
):
    await world.run(flow(act("a", "{{ input }}")), LARGE)
    age_files(world)
    await swept(world)
    for number, shelf in enumerate(sorted(Path(f"{world.db}.blobs").iterdir())):
        shelf.rename(shelf.with_name(f"elsewhere{number}"))
        shelf.symlink_to(f"elsewhere{number}")
    await old_executions(world, 3)

    later = [await swept(world, MONTH + 3 * DAY, step=2) for _ in range(2)]

    assert [(each.executions, each.blobs, each.position.is_end) for each in later] == [(3, 0, True), (0, 0, True)]
    assert "large values cannot be removed for now" in caplog.text


async def test_large_results_go_from_a_shared_store_too(shared_world: World):
    ended = await shared_world.run(flow(act("a", "{{ input }}"), act("b", "{{ nodes.a.output }}"), edges="a->b"), LARGE)
    count = "select (select count(*) from blob), (select count(*) from blob_content)"

    named, let_go = await swept(shared_world, MONTH - DAY), await swept(shared_world)
    before = await postgres.ask(shared_world.db, count)
    a_day_later = await swept(shared_world, MONTH + 3 * DAY)

    assert ended.blob is not None
    assert [(each.executions, each.blobs) for each in (named, let_go, a_day_later)] == [(0, 0), (1, 0), (0, 3)]
    assert (before, await postgres.ask(shared_world.db, count)) == ([(3, 3)], [(0, 0)])


# Everything else that gets old


async def test_keys_results_letters_and_on_request_the_audit_log_are_forgotten(world: World):
    store = world.service.store
    now = store.now()
    paused = await world.start(flow(act("a", fails=1, retry=ONCE), ASK))
    await world.until(paused, RunWaiting)
    await world.requeue(paused)
    async with store.transaction() as tx:
        await idempotency.remember(tx, IdempotencyEntry("default", "start", "k", "h", "{}", now))
        await tx.execute("upsert_cached_result", *CachedResult("default", "k", "1", None, None, now + HOUR))

    young = await swept(world, HOUR // 2)
    old = await swept(world)
    audited = await swept(world, audit=DAY)

    assert (young.total, old.letters, old.keys, old.results, old.audit) == (0, 1, 1, 1, 0)
    assert (audited.audit, await audit.listed(store, "default")) == (2, [])
    assert [each.violations async for each in Audit(store).executions()] == [[]]
    # Gone before the store is judged: its log has a letter that is kept no more.
    await world.service.cancel(paused)
    await world.ended(paused)
    assert await swept_up(world) == [1]


async def test_a_survey_tells_what_would_go_and_nothing_goes(world: World):
    store = world.service.store
    for number in range(3):
        await world.run(flow(act("a")), number)
    later = store.now() + MONTH + DAY

    told = await survey(store, later)

    assert (told.executions, len(every_execution(world.db))) == (3, 3)
    assert (await sweep(store, later)).executions == 3


async def test_a_person_who_sweeps_is_audited_once_and_only_if_something_went(world: World):
    store = world.service.store
    await world.run(flow(act("a")))
    await sweep(store, store.now(), on_behalf=("default", "ann"))
    await sweep(store, store.now() + MONTH + DAY, on_behalf=("default", "bob"))

    rows = await audit.listed(store, "default")

    assert [(row.verb, row.actor, row.detail) for row in rows if row.verb == "sweep"] == [
        ("sweep", "bob", "1 executions")
    ]


@pytest.mark.parametrize("policy", [{"executions": HOUR - 1}, {"letters": 0}, {"audit": 1}])
def test_nothing_is_kept_for_less_than_reopening_may_take(policy: dict[str, int]):
    with pytest.raises(InvalidInput, match="1h at least"):
        Policy(**policy)


# The loop


@asynccontextmanager
async def looping(store: Store, policy: Policy) -> AsyncIterator["asyncio.Queue[Swept]"]:
    """The loop, and what it tells."""
    told: asyncio.Queue[Swept] = asyncio.Queue()
    task = asyncio.ensure_future(run_forever(store, policy, told.put_nowait))
    try:
        yield told
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def old_executions(world: World, count: int) -> None:
    """Executions that ended long ago, with nothing left of them but their rows."""
    ids = [f"00000000-000{number}-7000-8000-000000000000" for number in range(count)]
    rows = [(each, "default", "w", 1, "PENDING", "MANUAL", *[None] * 5, 1, 1, None) for each in ids]
    ended = [("SUCCESS", 1, 2, None, each) for each in ids]
    await world.service.store.write([("insert_execution", rows), ("set_execution", ended)])


async def test_the_loop_goes_on_until_nothing_old_is_left_then_rests(world: World):
    await old_executions(world, 3)
    keeper = Retention(world.service.store, Policy(pause=1, rest=99))

    steps = []
    for _ in range(3):
        step = await keeper.step()
        steps.append((step and step.executions, keeper.pause))

    assert steps == [(3, 1), (0, 99), (0, 99)]
    await keeper.leave()


async def test_the_loop_removes_by_itself_and_gives_its_turn_back_when_it_ends(world: World):
    await old_executions(world, 2)
    store = world.service.store

    async with looping(store, Policy()) as told:
        first = await told.get()
        other = await Retention(store, holder="another").step()

    assert (first.executions, other) == (2, None)
    assert await Retention(store, holder="another").step() is not None


async def test_the_loop_outlives_a_store_that_is_away(world: World):
    keeper = Retention(world.service.store, Policy(rest=99))
    await world.close()

    assert (await keeper.step(), keeper.pause) == (None, 99)
    await keeper.leave()
    await world.open()
    assert await executions.listed(world.service.store, "default") == []


async def test_the_loop_goes_on_after_a_fault(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    async def faulty(*_: object, **__: object) -> Swept:
        monkeypatch.undo()
        raise ZeroDivisionError

    await old_executions(world, 2)
    monkeypatch.setattr(retention, "sweep", faulty)

    async with looping(world.service.store, Policy(rest=1)) as told, asyncio.timeout(20):
        first = await told.get()

    assert first.executions == 2
    assert [each.getMessage() for each in caplog.records] == ["removing what is old failed; it is tried again"]

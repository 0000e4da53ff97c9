"""Whatever happens to the store: nothing accepted is lost, every result is recorded once, and errors say what to do."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ropewalk.core.errors import RopewalkError, Unavailable
from ropewalk.core.events import NodeSucceeded, RunWaiting, SlotReleased
from ropewalk.core.state import ExecutionState
from ropewalk.engines.base import Ended
from ropewalk.store import queue
from ropewalk.store.errors import (
    IncompatibleStore,
    NotADatabase,
    StoreFull,
    StoreInUse,
    StoreUnavailable,
)
from tests.engines.judging import ask, every_execution
from tests.engines.worlds import ONCE, World, act, at_most, flow, node
from tests.polling import until
from tests.store.samples import tell

PATIENT = {"maxAttempts": 9, "delay": "1ms", "jitter": 0}
CHILD = flow(act("inner", "{{ input }}", retry=PATIENT), name="child", output="{{ nodes.inner.output }}")
LARGE = act("large", "x" * 70_000, retry=PATIENT)
WORKLOAD = (
    (flow(act("a", 1, retry=PATIENT), act("b", "{{ nodes.a.output + 1 }}", fails=1, retry=PATIENT), edges="a->b",
          concurrencyKey="only one"), {"b": 2}),
    (flow(act("each", "{{ item }}", forEach=[1, 2, 3], concurrency=2, retry=PATIENT), name="map",
          concurrencyKey="only one"), {"each": [1, 2, 3]}),
    (flow(node("call", "subworkflow", workflow="child", input=7, retry=PATIENT), act("after", "{{ nodes.call.output }}",
          retry=PATIENT), edges="call->after", name="parent"), {"after": 7}),
    (flow(node("d", "delay", retry=PATIENT, **{"for": "5ms"}), LARGE, edges="d->large", name="waits",
          output="{{ length(nodes.large.output) }}"), 70_000),
)  # fmt: skip
Call = Callable[..., Awaitable[Any]]


class Trouble:
    """Makes one call of a store fail, before or after it did what it was asked to."""

    def __init__(self, world: World, method: str, nth: int, *, is_done: bool, error: RopewalkError) -> None:
        self.left = nth
        self.error = error
        self.is_done = is_done
        self._call: Call = getattr(world.service.store, method)
        setattr(world.service.store, method, self._troubled)

    async def _troubled(self, *arguments: Any) -> Any:
        self.left -= 1
        if self.left:
            return await self._call(*arguments)
        if self.is_done:
            await self._call(*arguments)
        raise self.error


async def started(world: World) -> dict[str, Any]:
    """Starts the workload; what was accepted, and the output it must have."""
    wanted: dict[str, Any] = {}
    await world.save(CHILD)
    for document, output in WORKLOAD:
        version = await world.save(document)
        try:
            wanted[await world.service.start(version)] = output
        except Unavailable:
            continue
    return wanted


async def everything_ended(world: World, wanted: dict[str, Any]) -> None:
    """Every accepted execution has its output, and whatever else the store knows of has ended as well."""
    for execution, output in wanted.items():
        ended = await ended_at_last(world, execution)
        assert (ended.state, ended.output) == (ExecutionState.SUCCESS, output)
    for execution in every_execution(world.db):
        assert (await ended_at_last(world, execution)).state is ExecutionState.SUCCESS


async def ended_at_last(world: World, execution: str) -> Ended:
    """Whoever asks when the store has its trouble is told so, and asks again."""
    try:
        return await world.ended(execution)
    except Unavailable:
        return await world.ended(execution)


@pytest.mark.parametrize("nth", range(1, 25))
@pytest.mark.parametrize(
    ("method", "is_done"),
    [("write", False), ("write", True), ("fetch", False), ("fetch_one", False)],
    ids=["write", "lost answer", "fetch", "fetch one"],
)
async def test_one_call_that_fails_loses_nothing_that_was_accepted(world: World, method: str, is_done: bool, nth: int):
    Trouble(world, method, nth, is_done=is_done, error=StoreUnavailable("not now"))

    wanted = await at_most(20, started(world))
    await at_most(20, everything_ended(world, wanted))

    assert len(wanted) >= len(WORKLOAD) - 1


@pytest.mark.parametrize("nth", range(1, 4))
async def test_a_result_whose_commit_failed_is_recorded_by_the_same_attempt(world: World, nth: int):
    steps = [node(name, "gate", value=size * "x", retry=ONCE) for name, size in (("a", 1), ("b", 1), ("c", 70_000))]
    execution = await world.start(flow(*steps, edges="a->b b->c"))
    await world.outside.gate().arrived()
    Trouble(world, "write", nth, is_done=False, error=StoreUnavailable("not now"))
    world.outside.gate().open()

    assert (await at_most(20, ended_at_last(world, execution))).state is ExecutionState.SUCCESS
    assert [world.outside.saw(execution, name) for name in "abc"] == [1, 1, 1]
    assert (await world.details(execution))["output"] == {"c": "x" * 70_000}


@pytest.mark.parametrize("is_done", [False, True], ids=["not written", "lost answer"])
async def test_what_was_under_way_when_a_commit_failed_uses_up_no_attempt(world: World, is_done: bool):
    first, other = node("a", "gate", gate="a", retry=ONCE), node("other", "gate", retry=ONCE)
    execution = await world.start(flow(first, act("b", retry=ONCE), other, edges="a->b"))
    await at_most(20, asyncio.gather(world.outside.gate("a").arrived(), world.outside.gate().arrived()))
    Trouble(world, "write", 1, is_done=is_done, error=StoreUnavailable("not now"))
    world.outside.gate("a").open()
    world.outside.gate().open()

    assert (await at_most(20, ended_at_last(world, execution))).state is ExecutionState.SUCCESS
    assert await world.letters(execution) == []
    assert {run["attempt"] for run in await world.runs(execution)} == {1}


async def test_a_full_disk_refuses_starts_and_lets_go_on_when_there_is_room_again(world: World):
    execution = await world.start(flow(node("a", "gate", value=1, retry=PATIENT), act("b"), edges="a->b"))
    await world.outside.gate().arrived()
    connection = world.service.store._connection
    pages = connection.execute("pragma page_count").fetchone()[0]
    connection.execute(f"pragma max_page_count = {pages}")
    version = await world.save(flow(act("a", "{{ input }}"), name="more"))

    with pytest.raises(StoreFull, match="make some"):
        await world.service.start(version, "x" * 60_000)
    connection.execute("pragma max_page_count = 1000000")
    world.outside.gate().open()

    assert (await at_most(20, world.ended(execution))).state is ExecutionState.SUCCESS
    assert (await world.run(flow(act("a"), name="good"))).state is ExecutionState.SUCCESS
    assert len(every_execution(world.db)) == 2


@pytest.mark.parametrize("value", ["x" * 100_000, ["x" * 40_000, "y" * 40_000]])
async def test_no_room_for_a_large_result_is_a_failed_attempt_that_is_tried_again(world: World, value: Any):
    put = world.service.store.blobs.put_here
    left = [2]

    def full(data: bytes) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            raise StoreFull("no room for blobs")
        return put(data)

    world.service.store.blobs.put_here = full  # type: ignore[method-assign]  # the disk itself cannot be filled here
    ended = await at_most(20, world.run(flow(act("a", value, retry=PATIENT), output="{{ nodes.a.output }}")))

    assert ended.state is ExecutionState.SUCCESS
    assert (await world.details(ended.execution))["output"] == value


async def test_no_room_for_the_output_of_the_execution_is_made_good_later(world: World):
    put = world.service.store.blobs.put_here
    left = [2]

    def full(data: bytes) -> Any:
        left[0] -= 1
        if left[0] >= 0:
            raise StoreFull("no room for blobs")
        return put(data)

    world.service.store.blobs.put_here = full  # type: ignore[method-assign]  # as above
    last = node("b", "gate", value="y" * 50_000, retry=PATIENT)
    execution = await world.start(flow(act("a", "x" * 50_000, retry=PATIENT), last))
    await world.until(execution, NodeSucceeded, "a")
    world.outside.gate().open()

    ended = await at_most(20, world.ended(execution))

    assert (ended.state, ended.output) == (ExecutionState.SUCCESS, None)
    assert (await world.details(execution))["output"] == {"a": "x" * 50_000, "b": "y" * 50_000}


async def test_an_output_too_large_for_any_place_fails_the_execution_and_says_so(world: World):
    world.service.store.blobs.largest = 80_000

    ended = await at_most(20, world.run(flow(act("a", "x" * 50_000), act("b", "y" * 50_000))))

    assert ended.state is ExecutionState.FAILED
    assert "output: " in (ended.error or "")
    assert await world.states(ended.execution) == "SUCCESS SUCCESS"


async def test_a_child_tells_its_end_though_a_large_value_of_its_parent_was_gone_for_a_while(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    await world.save(flow(node("inner", "gate", value=7), name="child"))
    call = node("call", "subworkflow", workflow="child")
    wanted = "{{ [length(nodes.large.output), nodes.call.output.inner] }}"
    parent = await world.start(flow(LARGE, call, edges="large->call", output=wanted))
    await world.outside.gate().arrived()
    await world.until(parent, SlotReleased)
    (blobs,) = tmp_path.glob("*.blobs")
    hidden = blobs.rename(tmp_path / "elsewhere")
    world.service.engine.memory.values.forget()
    world.outside.gate().open()
    async with asyncio.timeout(20):
        while "restore it from a backup" not in caplog.text:
            await asyncio.sleep(0)
    hidden.rename(blobs)

    assert (await at_most(20, world.ended(parent))).output == [70_000, 7]


async def test_nothing_is_taken_up_by_one_that_has_stopped(world: World):
    await world.start(flow(node("a", "gate", retry=PATIENT)))
    await world.outside.gate().arrived()
    await world.crash()

    assert [task.get_coro().__qualname__ for task in asyncio.all_tasks() if "Setbacks" in repr(task)] == []
    await world.open()


async def test_a_verb_that_could_not_be_written_is_refused_and_did_nothing(world: World):
    execution = await world.start(flow(node("ask", "approval", title="?"), act("b"), edges="ask->b"))
    await world.until(execution, RunWaiting)
    Trouble(world, "write", 1, is_done=False, error=StoreUnavailable("not now"))

    with pytest.raises(Unavailable):
        await world.service.decide(execution, "ask", approved=True)

    assert await world.states(execution) == "RUNNING WAITING"
    await world.service.decide(execution, "ask", approved=False)
    assert (await at_most(20, world.ended(execution))).output == {"b": None}


async def test_a_verb_on_an_execution_whose_commit_fails_is_refused_as_well(world: World):
    execution = await world.start(flow(node("a", "gate", retry=PATIENT), act("b"), edges="a->b"))
    await world.outside.gate().arrived()
    failing = asyncio.Event()

    async def slowly(batch: Any) -> None:
        failing.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        raise StoreUnavailable("not now")

    write = world.service.store.write
    world.service.store.write = slowly  # type: ignore[method-assign]  # a commit that takes its time to fail
    first = asyncio.ensure_future(world.service.signal(execution, "anything"))
    await failing.wait()
    world.service.store.write = write  # type: ignore[method-assign]  # as above
    second = asyncio.ensure_future(world.service.pause(execution))

    told = await asyncio.gather(first, second, return_exceptions=True)

    assert [type(each) for each in told] == [StoreUnavailable, Unavailable]
    assert (await world.details(execution))["state"] == "RUNNING"
    world.outside.gate().open()
    assert (await at_most(20, world.ended(execution))).state is ExecutionState.SUCCESS


async def test_a_key_taken_for_a_start_that_failed_is_free_again(world: World):
    document = flow(act("a", 1), concurrencyKey="k")
    version = await world.save(document)
    Trouble(world, "write", 1, is_done=False, error=StoreUnavailable("not now"))

    with pytest.raises(Unavailable):
        await world.service.start(version)

    assert (await at_most(20, world.run(document))).output == {"a": 1}


async def test_hands_promised_to_what_was_not_written_are_free_again(world: World):
    document = flow(*(act(f"n{place}", retry=PATIENT) for place in range(5)))
    version = await world.save(document)
    Trouble(world, "write", 1, is_done=False, error=StoreUnavailable("not now"))

    with pytest.raises(Unavailable):
        await world.service.start(version)

    assert (world.service.engine.hands.promised, world.service.engine.hands.busy) == (0, 0)


async def test_slots_stay_exact_when_commits_fail(world: World):
    await world.restart(default_slots=1)
    version = await world.save(flow(act("a", retry=PATIENT), act("b", retry=PATIENT), edges="a->b"))
    accepted = []
    for nth in range(1, 8):
        Trouble(world, "write", nth, is_done=False, error=StoreUnavailable("not now"))
        for _ in range(2):
            try:
                accepted.append(await world.service.start(version))
            except Unavailable:
                continue

    ends = [(await at_most(20, world.ended(execution))).state for execution in accepted]

    assert ends == [ExecutionState.SUCCESS] * len(accepted)
    assert len(accepted) >= 7


# What cannot be opened


async def test_a_second_engine_on_the_same_file_is_turned_away_and_told_who_has_it(world: World):
    second = World(world.db)

    with pytest.raises(StoreInUse, match=f"process {os.getpid()}"):
        await second.open()

    assert (await world.run(flow(act("a", 1)))).output == {"a": 1}


async def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path):
    db = str(tmp_path / "ropewalk.db")
    world = World(db)
    await world.open()
    await world.close()
    tell(db, "insert into migration values (9999, 'from the future', 'x', 0)")

    with pytest.raises(IncompatibleStore):
        await world.open()

    assert ask(db, "select max(number) from migration") == [(9999,)]


@pytest.mark.parametrize("content", [b"#!/bin/sh\necho no\n", b"\x00" * 4096])
async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)

    with pytest.raises(NotADatabase):
        await World(str(path)).open()

    assert path.read_bytes() == content


@pytest.mark.parametrize("place", ["/proc/ropewalk.db", "no/such/directory/x.db"])
async def test_a_place_that_cannot_be_written_is_named_with_the_remedy(tmp_path: Path, place: str):
    with pytest.raises(StoreUnavailable, match="must exist, and directory and file must be writable"):
        await World(str(tmp_path / place)).open()


@pytest.mark.parametrize("attempts", [1, 2])
async def test_what_cannot_be_dispatched_is_tried_as_often_as_was_set(tmp_path: Path, attempts: int):
    world = World(str(tmp_path / "ropewalk.db"))  # not judged: its log is spoilt on purpose
    await world.open(default_slots=1, dispatch_attempts=attempts)
    await world.start(flow(node("a", "gate")))
    await world.outside.gate().arrived()
    unreadable = await world.start(flow(node("b", "gate")))
    tell(world.db, "update log set entry = '{' where execution = ?", unreadable)
    world.outside.gate().open()

    async def given_up() -> queue.QueueEntry | None:
        entry = await queue.get(world.service.store, unreadable)
        return entry if entry is not None and entry.state == "FAILED" else None

    try:
        assert (await until(given_up, "its dispatch is given up", 20)).attempts == attempts
    finally:
        await world.close()


async def test_what_a_newer_ropewalk_has_written_is_left_to_one_and_keeps_nobody_waiting(tmp_path: Path):
    world = World(str(tmp_path / "ropewalk.db"))
    await world.open(default_slots=1, dispatch_attempts=1)
    first = await world.start(flow(node("a", "gate")))
    await world.outside.gate().arrived()
    newer, other = await world.start(flow(act("b", 2))), await world.start(flow(act("c", 3)))
    write_as(world, newer, "2", "3")
    world.outside.gate().open()
    ended = [(await at_most(20, world.ended(each))).state for each in (first, other)]
    left = await queue.get(world.service.store, newer)
    write_as(world, newer, "3", "2")

    assert ended == [ExecutionState.SUCCESS] * 2
    assert left is not None
    assert (left.state, left.attempts) == ("PENDING", 0)
    assert (await at_most(20, world.ended(newer))).output == {"b": 2}
    await world.close()


def write_as(world: World, execution: str, before: str, after: str) -> None:
    """The log of the execution is of another version."""
    told = f"""cast(replace(cast(entry as text), '"v":{before}', '"v":{after}') as blob)"""
    tell(world.db, f"update log set entry = {told} where execution = ?", execution)

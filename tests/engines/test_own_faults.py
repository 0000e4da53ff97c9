"""A fault of our own is told with its traceback, and concerns nobody but the execution it happened to."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ropewalk.core.commands import Command
from ropewalk.core.errors import Unavailable
from ropewalk.core.events import Event
from ropewalk.core.execution import settling
from ropewalk.core.execution.work import Work
from ropewalk.core.rows.ledger import FirstRun, RunLedger
from ropewalk.core.signals import Due, Signal
from ropewalk.core.state import ExecutionState
from ropewalk.engines.native import claims, deciding, waking
from ropewalk.engines.native.hands import Hands
from ropewalk.engines.native.live import Live
from tests.engines.judging import every_execution
from tests.engines.worlds import World, act, at_most, flow, node

PATIENT = {"maxAttempts": 9, "delay": "1ms", "jitter": 0}


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said together with the traceback of our fault."""
    return [each.getMessage() for each in caplog.records if each.exc_info and each.exc_info[0] is ZeroDivisionError]


async def test_claiming_goes_on_after_a_fault(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(claims, "SAFETY_NET", 0.01)
    await world.restart(default_slots=1)
    first = await world.start(flow(node("a", "gate")))
    claiming, left = world.service.engine.claims, [3]
    claim = claiming.claim

    async def faulty() -> Any:
        if left[0]:
            left[0] -= 1
            raise ZeroDivisionError
        return await claim()

    claiming.claim = faulty  # type: ignore[method-assign]  # no input is known to cause a fault
    second = await world.start(flow(act("b"), name="other"))
    world.outside.gate().open()

    assert [(await at_most(20, world.ended(each))).state for each in (first, second)] == [ExecutionState.SUCCESS] * 2
    assert tracebacks(caplog) == ["claiming failed; it is tried again in 0.01 s"] * 3


class FaultyRows:
    """Fails when the runs of one execution have been booked, the nth of those that are."""

    def __init__(self, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = nth
        self.victim = ""
        self._add = RunLedger.add
        monkeypatch.setattr(RunLedger, "add", lambda ledger, events: self.add(ledger, events))

    def add(self, ledger: RunLedger, events: Sequence[Event]) -> list[FirstRun] | None:
        made = self._add(ledger, events)
        self.left -= 1
        if not self.left:
            self.victim = ledger._accepted.execution
            raise ZeroDivisionError
        return made


async def test_a_start_whose_rows_cannot_be_made_is_refused_alone(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    version = await world.save(flow(act("a", 1, retry=PATIENT)))
    faulty = FaultyRows(2, monkeypatch)

    first, second, third = await asyncio.gather(
        *(world.service.start(version) for _ in range(3)), return_exceptions=True
    )

    assert isinstance(second, Unavailable)
    assert [(await at_most(20, world.ended(str(each)))).output for each in (first, third)] == [{"a": 1}] * 2
    assert every_execution(world.db) == sorted([str(first), str(third)])
    assert tracebacks(caplog) == [f"execution {faulty.victim}: its rows cannot be made"]


async def test_an_execution_whose_rows_cannot_be_made_goes_on_from_its_log(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    version = await world.save(flow(node("a", "gate", value=1, retry=PATIENT), act("b"), edges="a->b"))
    started = [await world.service.start(version) for _ in range(3)]
    await world.outside.gate().arrived(3)
    faulty = FaultyRows(2, monkeypatch)

    world.outside.gate().open()

    assert [(await at_most(20, world.ended(each))).state for each in started] == [ExecutionState.SUCCESS] * 3
    assert tracebacks(caplog) == [f"execution {faulty.victim}: its rows cannot be made"]


@pytest.mark.parametrize("nth", [1, 2, 3])
async def test_an_execution_whose_commit_cannot_be_carried_out_goes_on_from_its_log(
    world: World, nth: int, caplog: pytest.LogCaptureFixture
):
    version = await world.save(flow(*(act(name, 1, retry=PATIENT) for name in "abc")))
    hands = world.service.engine.hands
    start, left = hands.start, [nth]

    def faulty(live: Live, work: Work, now: int) -> None:
        start(live, work, now)
        left[0] -= 1
        if not left[0]:
            raise ZeroDivisionError

    hands.start = faulty  # type: ignore[method-assign]  # no input is known to cause a fault
    started = await asyncio.gather(*(world.service.start(version) for _ in range(3)))

    assert [(await at_most(20, world.ended(each))).output for each in started] == [{"a": 1, "b": 1, "c": 1}] * 3
    assert tracebacks(caplog) == [f"execution {started[0]}: what its commit asks for cannot be carried out"]
    assert (hands.promised, hands.busy) == (0, 0)


class FaultyWhenDue:
    """Fails whenever one execution is told that something is due, until it is mended."""

    def __init__(self, world: World) -> None:
        self.victim = ""
        self.faults = 0
        self._deciding = world.service.engine.deciding
        self._signal = self._deciding.signal
        self._deciding.signal = self  # type: ignore[method-assign]  # no input is known to cause a fault

    def __call__(self, live: Live, signal: Signal) -> list[Event]:
        if live.id == self.victim and isinstance(signal, Due):
            self.faults += 1
            raise ZeroDivisionError
        return self._signal(live, signal)

    def mend(self) -> None:
        self._deciding.signal = self._signal  # type: ignore[method-assign]  # as above


@pytest.mark.parametrize("park_after", [settling.PARK_AFTER, 0], ids=["in memory", "parked"])
async def test_a_fault_when_one_is_due_keeps_no_other_asleep(
    world: World, park_after: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(settling, "PARK_AFTER", park_after)
    monkeypatch.setattr(waking, "POSTPONED", 1)
    faulty = FaultyWhenDue(world)
    delays = flow(node("d", "delay", **{"for": "50ms"}), act("b"), edges="d->b")
    version = await world.save(delays)
    faulty.victim = await world.service.start(version)
    others = [await world.service.start(version) for _ in range(3)]

    assert [(await at_most(20, world.ended(each))).state for each in others] == [ExecutionState.SUCCESS] * 3
    assert faulty.faults == len(tracebacks(caplog)) > 0
    faulty.mend()
    assert (await at_most(20, world.ended(faulty.victim))).state is ExecutionState.SUCCESS


async def test_a_fault_when_one_begins_keeps_no_other_from_beginning(world: World, caplog: pytest.LogCaptureFixture):
    await world.restart(claims=False)
    faulty = FaultyWhenDue(world)
    version = await world.save(flow(act("a", 1)))
    faulty.victim = await world.service.start(version)
    other = await world.service.start(version)
    await world.service.engine.claims.claim()

    assert (await at_most(20, world.ended(other))).output == {"a": 1}
    assert tracebacks(caplog)[0] == f"execution {faulty.victim} cannot begin"
    faulty.mend()
    assert (await at_most(20, world.ended(faulty.victim))).output == {"a": 1}


async def test_a_fault_when_there_is_room_again_stops_no_commit(world: World):
    await world.restart(hands=1)
    first = await world.start(flow(node("a", "gate")))
    await world.outside.gate().arrived()
    version = await world.save(flow(act("a", 1), name="more"))
    faulty = FaultyWhenDue(world)
    faulty.victim = await world.service.start(version)
    other = await world.service.start(version)
    world.outside.gate().open()

    assert (await at_most(20, world.ended(first))).state is ExecutionState.SUCCESS
    assert (await at_most(20, world.ended(other))).output == {"a": 1}
    faulty.mend()
    assert (await at_most(20, world.ended(faulty.victim))).output == {"a": 1}


def fails_once(owner: object, name: str) -> None:
    """The next call of this method is a fault; no input is known to cause one."""
    method, left = getattr(owner, name), [1]

    def faulty(*arguments: Any) -> Any:
        if left:
            left.pop()
            raise ZeroDivisionError
        return method(*arguments)

    setattr(owner, name, faulty)


async def test_what_could_not_be_told_for_a_fault_is_told_again(world: World, caplog: pytest.LogCaptureFixture):
    await world.save(flow(act("inner", 7), name="child"))
    fails_once(world.service.engine.telling, "hand_over")

    ended = await at_most(20, world.run(flow(node("call", "subworkflow", workflow="child"))))

    assert ended.output == {"call": {"inner": 7}}
    assert tracebacks(caplog) == [f"execution {ended.execution} cannot be told something; it is tried again"]


async def test_what_could_not_be_taken_up_for_a_fault_is_taken_up_later(world: World, caplog: pytest.LogCaptureFixture):
    execution = await world.start(flow(node("a", "gate", value=1)))
    await world.outside.gate().arrived()
    fails_once(world.service.engine.watching, "catch_up")
    fails_once(world.service.store, "write")
    world.outside.gate().open()

    assert (await at_most(20, world.ended(execution))).state is ExecutionState.SUCCESS
    assert tracebacks(caplog) == [f"taking up execution {execution} failed; it is tried again"]


async def test_work_beside_everything_else_that_fails_is_told_of(world: World, caplog: pytest.LogCaptureFixture):
    async def faulty() -> None:
        raise ZeroDivisionError

    world.service.engine.background.spawn(faulty())
    for _ in range(3):
        await asyncio.sleep(0)

    assert [told.rpartition(".")[2] for told in tracebacks(caplog)] == ["faulty failed"]


async def test_hands_promised_to_an_execution_that_cannot_be_written_down_are_free_again(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    await world.save(flow(act("inner", 1), name="child"))
    write_down, left = deciding.write_down, [1]

    def faulty(live: Live, commands: Sequence[Command]) -> None:
        if left:
            left.pop()
            raise ZeroDivisionError
        write_down(live, commands)

    gates = [node(name, "gate", gate="both", retry=PATIENT) for name in "ab"]
    calls = node("s", "subworkflow", workflow="child")
    document = flow(*gates, calls, act("c", 1, retry=PATIENT), edges="a->s b->c")
    execution = await world.start(document)
    await at_most(20, world.outside.gate("both").arrived(2))
    monkeypatch.setattr(deciding, "write_down", faulty)
    world.outside.gate("both").open()

    assert (await at_most(20, world.ended(execution))).state is ExecutionState.SUCCESS
    assert (hands_of(world).promised, hands_of(world).busy, left) == (0, 0, [])


def hands_of(world: World) -> Hands:
    return world.service.engine.hands

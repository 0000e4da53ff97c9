"""Whatever a node does, it is a failed node: classified, recorded, and the engine lives on."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.events import NodeSucceeded
from ropewalk.core.state import ExecutionState
from ropewalk.core.waits import Approval, Timer
from ropewalk.nodes.base import Inputs, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.function import node as function_node
from tests.engines.worlds import ONCE, Json, World, act, at_most, flow, judged_world, node

MIB = 1024 * 1024
GOOD = flow(act("a", "fine"), name="good")
MARK: ContextVar[str] = ContextVar("mark", default="none")


class Hostile(NodeType):
    """Does whatever the test wants."""

    name = "hostile"

    class Parameters(Inputs):
        value: Any = None

    def __init__(self) -> None:
        self.deed: Callable[[Any], Any] = lambda given: given

    async def run(self, parameters: Parameters, context: NodeContext) -> Any:
        done = self.deed(parameters.value)
        return await done if asyncio.iscoroutine(done) else done


@pytest.fixture
def hostile() -> Hostile:
    return Hostile()


@pytest.fixture
async def world(tmp_path: Path, hostile: Hostile) -> AsyncIterator[World]:
    async with judged_world(str(tmp_path / "ropewalk.db"), hostile) as world:
        yield world


async def tried(world: World, document: Json) -> Json:
    """The last run of a workflow with a hostile node, after which another execution succeeds as ever."""
    ended = await at_most(20, world.run(document))
    assert (await at_most(20, world.run(GOOD))).output == {"a": "fine"}
    return (await world.runs(ended.execution, "bad"))[-1]


def cycle() -> Output:
    endless: list[Any] = []
    endless.append({"again": endless})
    return Output(endless)


def deep() -> Output:
    value: Any = 1
    for _ in range(5000):
        value = [value]
    return Output(value)


BAD_RESULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "NaN": (lambda: Output({"a": [1.0, float("nan")]}), "output.a[1]: NaN is not JSON"),
    "infinity": (lambda: Output(float("-inf")), "Infinity is not JSON"),
    "bytes": (lambda: Output({"a": b"x"}), "bytes is not JSON"),
    "a set": (lambda: Output({1, 2}), "a set has no order"),
    "a cycle": (cycle, "refers back to itself"),
    "depth": (deep, "nested more than"),
    "an object": (lambda: Output(object()), "object is not JSON"),
    "half a character": (lambda: Output("\ud800"), "lone surrogate"),
    "a huge integer": (lambda: Output(2**70), "beyond ±2⁵³"),
    "65 MiB": (lambda: Output("x" * (65 * MIB)), "larger than 64 MiB"),
    "no output": (lambda: {"plain": 1}, "must return an Output or a wait, not dict"),
    "nothing": (lambda: None, "must return an Output or a wait, not NoneType"),
    "a port that is text": (lambda: Output(1, "left"), "ports"),
    "ports that are numbers": (lambda: Output(1, (1, 2)), "ports"),
    "tokens that are text": (lambda: Output(1, tokens="many"), "tokens"),
    "tokens that are a flag": (lambda: Output(1, tokens=True), "tokens"),
    "fewer tokens than none": (lambda: Output(1, tokens=-1), "tokens"),
    "more tokens than there are": (lambda: Output(1, tokens=2**60), "tokens"),
    "a wait for nonsense": (lambda: Timer("soon"), "wait"),
    "a wait with bytes": (lambda: Approval("x", b"x"), "wait"),
    "a wait with NaN": (lambda: Approval("x", [float("nan")]), "wait"),
}


@pytest.mark.parametrize(("make", "message"), BAD_RESULTS.values(), ids=list(BAD_RESULTS))
async def test_a_result_that_cannot_be_recorded_is_a_permanent_failure_that_says_why(
    world: World, hostile: Hostile, make: Callable[[], Any], message: str
):
    hostile.deed = lambda _: make()

    run = await tried(world, flow(node("bad", "hostile"), act("after"), edges="bad->after"))

    assert (run["state"], run["errorType"], run["attempt"]) == ("DLQ", "PERMANENT", 1)
    assert message in run["error"]


class Own(BaseException):
    """What nobody catches."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


BAD_EXCEPTIONS = {
    "BaseException": Own("mine"),
    "SystemExit": SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt(),
    "CancelledError": asyncio.CancelledError(),
    "GeneratorExit": GeneratorExit(),
    "StopIteration": StopIteration(1),
    "StopAsyncIteration": StopAsyncIteration(),
    "MemoryError": MemoryError(),
    "RecursionError": RecursionError(),
    "unprintable": Unprintable(),
    "half a character": ValueError("\udcff"),
    "a group": BaseExceptionGroup("several", [KeyboardInterrupt(), ValueError()]),
}


@pytest.mark.parametrize("raised", BAD_EXCEPTIONS.values(), ids=list(BAD_EXCEPTIONS))
async def test_whatever_a_node_raises_is_a_failed_attempt_that_is_tried_again(
    world: World, hostile: Hostile, raised: BaseException
):
    def deed(_: Any) -> None:
        raise raised

    hostile.deed = deed

    run = await tried(world, flow(node("bad", "hostile")))

    assert (run["state"], run["errorType"], run["attempt"]) == ("DLQ", "TRANSIENT", 3)


BAD_ERRORS = {
    "an unknown type": RunError("WEIRD", "hm"),
    "no message": RunError(ErrorType.TRANSIENT, None),
    "half a character": RunError(ErrorType.PERMANENT, "\ud800"),
    "a wish that is text": RunError(ErrorType.TRANSIENT, "hm", retry_after="soon"),
    "a wish that is no number": RunError(ErrorType.TRANSIENT, "hm", retry_after=float("nan")),
    "bytes for detail": RunError(ErrorType.TRANSIENT, "hm", detail=b"x"),
    "no error at all": None,
}


@pytest.mark.parametrize("error", BAD_ERRORS.values(), ids=list(BAD_ERRORS))
async def test_a_failure_that_is_told_badly_is_a_failure_all_the_same(world: World, hostile: Hostile, error: RunError):
    def deed(_: Any) -> None:
        failure = NodeFailure(RunError(ErrorType.TRANSIENT, ""))
        failure.error = error
        raise failure

    hostile.deed = deed

    run = await tried(world, flow(node("bad", "hostile")))

    assert run["state"] == "DLQ"
    assert run["errorType"] in ("TRANSIENT", "PERMANENT")


async def test_a_result_too_large_for_the_log_is_kept_apart_whole(world: World, hostile: Hostile):
    hostile.deed = lambda _: Output("x" * 100 * 1024)

    ended = await world.run(flow(node("big", "hostile"), act("size", "{{ length(nodes.big.output) }}"),
                                 edges="big->size"))  # fmt: skip

    (large, _) = await world.events(ended.execution, NodeSucceeded)
    assert ended.output == {"size": 102_400}
    assert (large.output, large.blob.size) == (None, 102_402)


async def test_a_node_that_blocks_the_loop_delays_others_and_breaks_nothing(world: World, hostile: Hostile):
    def deed(_: Any) -> Output:
        time.sleep(1.5)  # the offence itself
        return Output("late")

    hostile.deed = deed
    document = flow(node("bad", "hostile", timeout="1s", retry=ONCE), act("b"), node("d", "delay", **{"for": "10ms"}))

    ended = await at_most(20, world.run(document))

    assert await world.states(ended.execution) in ("SUCCESS SUCCESS SUCCESS", "FAILED SUCCESS SUCCESS")
    assert (await world.run(GOOD)).state is ExecutionState.SUCCESS


async def test_a_node_that_never_ends_and_cannot_be_cancelled_times_out_and_holds_nobody_up(world: World):
    run = await tried(world, flow(node("bad", "stubborn", timeout="30ms")))

    assert (run["state"], run["errorType"], run["attempt"]) == ("DLQ", "TIMEOUT", 3)
    assert world.outside.gate().inside == 3


async def test_what_a_node_says_after_its_time_limit_changes_nothing(world: World):
    ended = await world.run(flow(node("bad", "stubborn", value="late", timeout="30ms", retry=ONCE)))
    before = await world.events(ended.execution)

    world.outside.gate().open()
    assert (await world.run(GOOD)).state is ExecutionState.SUCCESS

    assert await world.events(ended.execution) == before


def leave() -> None:
    raise SystemExit(3)


async def test_a_function_on_a_thread_that_leaves_is_a_failed_attempt(tmp_path: Path):
    async with judged_world(str(tmp_path / "ropewalk.db"), function_node(leave)) as world:
        run = await tried(world, flow(node("bad", "leave")))

        assert (run["state"], run["errorType"]) == ("DLQ", "TRANSIENT")
        assert "SystemExit" in run["error"]


async def test_a_function_on_a_thread_that_never_ends_times_out_and_holds_nobody_up(tmp_path: Path):
    released = threading.Event()

    def hang() -> None:
        released.wait(20)

    async with judged_world(str(tmp_path / "ropewalk.db"), function_node(hang)) as world:
        run = await tried(world, flow(node("bad", "hang", timeout="30ms")))
        released.set()

        assert (run["state"], run["errorType"], run["attempt"]) == ("DLQ", "TIMEOUT", 3)


async def test_tasks_a_node_leaves_behind_are_its_own_affair(
    world: World, hostile: Hostile, caplog: pytest.LogCaptureFixture
):
    left: list[asyncio.Task[None]] = []

    async def fail() -> None:
        raise ValueError("nobody listens")

    async def linger() -> None:
        await asyncio.Event().wait()

    def deed(_: Any) -> Output:
        left.extend(asyncio.ensure_future(each()) for each in (fail, linger, linger))
        return Output("gone")

    hostile.deed = deed

    run = await tried(world, flow(node("bad", "hostile")))

    assert run["state"] == "SUCCESS"
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def test_a_node_that_changes_its_inputs_changes_nobody_elses(world: World, hostile: Hostile):
    def deed(given: list[int]) -> Output:
        given.append(99)
        return Output(len(given))

    hostile.deed = deed
    document = flow(
        act("a", [1, 2]), node("bad", "hostile", value="{{ nodes.a.output }}"),
        act("after", "{{ nodes.a.output }}"), edges="a->bad bad->after", output="{{ nodes.after.output }}",
    )  # fmt: skip

    first, second = await world.run(document), await world.run(document)

    assert first.output == second.output == [1, 2]


async def test_a_node_that_changes_what_it_returned_changes_no_result(world: World, hostile: Hostile):
    kept: list[int] = []

    def deed(_: Any) -> Output:
        kept.append(len(kept))
        return Output(kept)

    hostile.deed = deed
    document = flow(
        node("bad", "hostile"), node("again", "hostile"), act("after", "{{ nodes.bad.output }}"),
        edges="bad->again again->after",
    )  # fmt: skip

    ended = await world.run(document)

    assert ended.output == {"after": [0]}


async def test_a_node_cancelled_before_its_first_step_ends_the_execution_at_once(world: World):
    version = await world.save(flow(node("a", "gate")))
    starting = asyncio.ensure_future(world.service.start(version))
    await asyncio.sleep(0)  # it is accepted in memory, and not committed yet
    (execution,) = world.service.engine.memory.lives

    await world.service.cancel(execution)

    assert (await at_most(5, world.ended(await starting))).state is ExecutionState.CANCELLED
    assert world.service.engine.hands.busy == world.outside.gate().most == 0


async def test_what_a_node_sets_in_its_context_is_not_there_for_the_next(world: World, hostile: Hostile):
    def deed(value: str) -> Output:
        found = MARK.get()
        MARK.set(value)
        return Output(found)

    hostile.deed = deed

    ended = await world.run(flow(*(node(name, "hostile", value=name) for name in "abc")))

    assert ended.output == {"a": "none", "b": "none", "c": "none"}


async def test_a_node_that_cancels_itself_and_ends_first_cancels_nobody_else(world: World, hostile: Hostile):
    def deed(value: str) -> Output:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return Output(value)

    hostile.deed = deed
    names = "abc"

    ended = await world.run(flow(*(node(name, "hostile", value=name) for name in names), act("d", "d")))

    assert ended.output == {"a": "a", "b": "b", "c": "c", "d": "d"}


async def test_a_node_that_waits_keeps_nobody_behind_it_waiting(world: World):
    names = [f"n{place}" for place in range(150)]
    version = await world.save(flow(*(node(name, "gate", value=1) for name in names)))

    execution = await world.service.start(version)

    assert await at_most(20, world.outside.gate().arrived(150)) == names
    world.outside.gate().open()
    assert (await at_most(20, world.ended(execution))).state is ExecutionState.SUCCESS

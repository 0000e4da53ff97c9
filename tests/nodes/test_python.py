"""Registered functions, on the loop, on threads and in processes."""

import asyncio
import os
import sys
import threading

import msgspec
import pytest

from ropewalk.core.errors import ErrorType
from ropewalk.nodes import work
from ropewalk.nodes.base import NodeFailure, Output, Placement, failure_of
from ropewalk.nodes.functions import Functions
from ropewalk.nodes.processes import LENGTH_BYTES, Call
from ropewalk.nodes.work import Threads

from . import samples


async def failure(attempt):
    with pytest.raises(NodeFailure) as caught:
        await attempt
    return caught.value.error


@pytest.mark.parametrize(
    ("function", "placement"),
    [
        (samples.add, None),
        (samples.add_async, None),
        (samples.add, Placement.PROCESS),
        (samples.add_async, Placement.PROCESS),
        ("tests.nodes.samples:add", Placement.PROCESS),
    ],
)
async def test_a_function_is_called_by_name_wherever_it_belongs(run, functions, function, placement):
    functions.register(function, "sum", placement)

    assert await run("python", {"function": "sum", "args": {"a": 2, "b": 3}}) == Output(5)


async def test_a_blocking_function_leaves_the_loop_free(run, functions):
    started, may_end = threading.Event(), threading.Event()

    def block():
        started.set()
        return may_end.wait(10)

    functions.register(block)
    running = asyncio.create_task(run("python", {"function": "block"}))
    await asyncio.to_thread(started.wait, 10)
    may_end.set()

    assert await running == Output(True)


async def test_a_function_may_choose_its_ports(run, functions):
    functions.register(lambda: Output(1, ("left",)), "choose")

    assert await run("python", {"function": "choose"}) == Output(1, ("left",))


@pytest.mark.parametrize("placement", [None, Placement.PROCESS])
async def test_a_function_may_say_how_many_tokens_it_used_up(run, functions, placement):
    functions.register(samples.counted, "counted", placement)

    assert await run("python", {"function": "counted"}) == Output("Dear Ann", (), 12)


async def test_an_unknown_function_is_a_permanent_failure_that_names_the_known(run, functions):
    functions.register(samples.add)

    error = await failure(run("python", {"function": "os.system", "args": {"command": "id"}}))

    assert (error.type, error.message) == (
        ErrorType.PERMANENT,
        "no function named 'os.system' is registered; there are: add",
    )


@pytest.mark.parametrize("placement", [Placement.THREAD, Placement.PROCESS])
@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (samples.refuse, ErrorType.PERMANENT, "no such customer"),
        (samples.leave, ErrorType.TRANSIENT, "SystemExit: 3"),
    ],
)
async def test_what_a_function_raises_is_its_own_failure_only(run, functions, function, placement, kind, message):
    functions.register(function, "fails", placement)

    error = await failure(run("python", {"function": "fails"}))

    assert (error.type, error.message) == (kind, message)


async def test_a_stop_iteration_does_not_leave_the_caller_waiting(run, functions):
    functions.register(lambda: next(iter(())), "empty")

    with pytest.raises(RuntimeError, match="StopIteration"):
        await run("python", {"function": "empty"})


async def test_a_process_is_kept_for_the_next_call(run, functions):
    functions.register(samples.where_am_i, placement=Placement.PROCESS)

    first, second = [(await run("python", {"function": "where_am_i"})).value for _ in range(2)]

    assert first == second != os.getpid()


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (samples.die, ErrorType.TRANSIENT, "the function's process was ended by SIGKILL"),
        (samples.not_a_number, ErrorType.PERMANENT, "output: NaN is not JSON"),
        (samples.add, ErrorType.TRANSIENT, "TypeError: "),
    ],
)
async def test_a_failing_process_is_replaced(run, functions, function, kind, message):
    functions.register(function, "fails", Placement.PROCESS)
    functions.register(samples.hand_on, placement=Placement.PROCESS)

    error = await failure(run("python", {"function": "fails"}))
    after = await run("python", {"function": "hand_on", "args": {"value": "grüß"}})

    assert error.type is kind
    assert error.message.startswith(message)
    assert after == Output("grüß")


async def test_a_process_that_never_ends_is_killed_with_its_attempt(run, functions):
    functions.register(samples.spin, placement=Placement.PROCESS)
    functions.register(samples.where_am_i, placement=Placement.PROCESS)
    before = await run("python", {"function": "where_am_i"})

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await run("python", {"function": "spin"})
    after = await run("python", {"function": "where_am_i"})

    assert after != before
    with pytest.raises(ProcessLookupError):
        os.kill(before.value, 0)


async def test_a_process_ends_with_its_parent_in_the_middle_of_any_work():
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "ropewalk.nodes.child"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    for function in ("where_am_i", "spin"):
        call = msgspec.json.encode(Call(f"tests.nodes.samples:{function}", {}))
        process.stdin.write(len(call).to_bytes(LENGTH_BYTES) + call)
    await process.stdout.readexactly(LENGTH_BYTES)

    process.stdin.close()

    assert await asyncio.wait_for(process.wait(), 30) == 0


async def test_a_thread_that_never_ends_gives_its_place_back():
    threads = Threads(1)
    may_end = threading.Event()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await threads.call(may_end.wait, {})
    value = await threads.call(samples.add, {"a": 1, "b": 1})

    may_end.set()
    threads.close()
    assert value == 2


async def test_a_thread_is_kept_for_the_next_call():
    threads = Threads(2)

    first, second = [await threads.call(threading.current_thread, {}) for _ in range(2)]

    threads.close()
    first.join(10)
    assert first is second
    assert not first.is_alive()


async def test_when_too_many_calls_never_end_further_ones_fail(monkeypatch):
    monkeypatch.setattr(work, "MOST_ABANDONED", 0)
    threads = Threads(1)
    may_end = threading.Event()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await threads.call(may_end.wait, {})
    error = await failure(threads.call(samples.add, {"a": 1, "b": 1}))

    may_end.set()
    threads.close()
    assert (error.type, error.message) == (
        ErrorType.TRANSIENT,
        "1 earlier calls never ended; the worker has no thread left",
    )


@pytest.mark.parametrize(
    ("function", "placement"),
    [
        (samples.add, Placement.LOOP),
        (samples.add_async, Placement.THREAD),
        (lambda: 1, Placement.PROCESS),
    ],
)
def test_a_function_is_not_registered_where_it_cannot_work(function, placement):
    with pytest.raises(ValueError):
        Functions().register(function, "f", placement)


def test_a_name_is_registered_once():
    functions = Functions()
    functions.register(samples.add)

    with pytest.raises(ValueError, match="registered already"):
        functions.register(samples.add)


class Unprintable(Exception):
    def __str__(self):
        raise ValueError


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (NodeFailure.transient("busy", 3.0), ErrorType.TRANSIENT, "busy"),
        (ConnectionResetError("gone"), ErrorType.TRANSIENT, "ConnectionResetError: gone"),
        (KeyError("a"), ErrorType.TRANSIENT, "KeyError: 'a'"),
        (TimeoutError(), ErrorType.TIMEOUT, "TimeoutError"),
        (KeyboardInterrupt(), ErrorType.TRANSIENT, "KeyboardInterrupt"),
        (Unprintable(), ErrorType.TRANSIENT, "Unprintable: (its text cannot be read: ValueError)"),
        (ValueError("\ud800"), ErrorType.TRANSIENT, "ValueError: �"),
        (ExceptionGroup("tasks", [NodeFailure.permanent("no")]), ErrorType.PERMANENT, "no"),
        (
            ExceptionGroup("tasks", [KeyError("a"), NodeFailure.permanent("no")]),
            ErrorType.PERMANENT,
            "KeyError: 'a'; no",
        ),
        (ExceptionGroup("tasks", [TimeoutError(), KeyError("a")]), ErrorType.TIMEOUT, "TimeoutError; KeyError: 'a'"),
    ],
)
def test_anything_raised_has_a_kind_and_a_writable_message(raised, kind, message):
    error = failure_of(raised)

    assert (error.type, error.message) == (kind, message)


def test_the_wishes_of_tasks_that_failed_together_are_all_kept():
    group = ExceptionGroup("tasks", [NodeFailure.transient("busy", 3.0), NodeFailure.transient("busier", 9.0)])

    assert failure_of(group).retry_after == 9.0


def test_the_detail_tells_what_an_exception_was_made_of():
    raised = RuntimeError("bad answer")
    raised.__cause__ = ValueError("seven is no number")

    told = failure_of(raised).detail or ""

    assert told.startswith("ValueError: seven is no number\n\nThe above exception was the direct cause")


def test_messages_and_traces_are_bounded():
    def dig(depth):
        if depth == 0:
            raise ValueError("x" * 10**6)
        dig(depth - 1)

    with pytest.raises(ValueError) as caught:
        dig(200)
    error = failure_of(caught.value)

    assert len(error.message) == 1000
    assert len(error.detail) <= 8000
    assert "dig(depth - 1)" in error.detail

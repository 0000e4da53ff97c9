"""Functions in processes of their own: their limits, their end, and what is laid to a run whose process dies."""

import asyncio
import os
import select
import signal
import sys
from pathlib import Path

import pytest

from ropewalk import Workflow, node
from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import ErrorType, ExecutionEnded, InvalidDefinition
from ropewalk.engines.kept_values import StoredValues
from ropewalk.local import LocalEngine
from ropewalk.nodes.base import Facilities, NodeFailure, Output, Registry
from ropewalk.nodes.functions import Functions
from ropewalk.nodes.limits import MIB, Limits, as_limits
from ropewalk.store.sqlite import SqliteStore
from ropewalk.wiring import Settings, open_service

from . import isolated_samples as samples
from .conftest import context_of

LIMITS = {"memory": "64MiB", "cpuSeconds": 1, "files": 32}


@pytest.fixture
def isolated(run, functions):
    """Calls a function in a process of its own, as a node of a workflow asks for it."""

    async def call(function, limits=LIMITS, attempt=1, execution="e1", **args):
        if function.__name__ not in functions._by_name:
            functions.register(function)
        given = {"function": function.__name__, "args": args, "placement": "process", "limits": limits}
        return (await run("python", given, attempt=attempt, execution=execution)).value

    return call


@pytest.fixture
def failure(isolated):
    async def call(function, **changes):
        with pytest.raises(NodeFailure) as caught:
            await isolated(function, **changes)
        return caught.value.error

    return call


async def test_a_function_within_its_limits_gives_its_result(isolated):
    assert await isolated(samples.hog, mib=16) == 16 * MIB
    assert await isolated(samples.open_files, count=8) == 8
    assert await isolated(samples.burn, seconds=0.01) == 0.01


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (samples.hog, {"mib": 256}, "the function ran into its memory limit of 64 MiB"),
        (samples.map_memory, {"mib": 256}, "the function ran into its memory limit of 64 MiB"),
        (samples.open_files, {"count": 100}, "the function ran into its limit of 32 open files"),
        (samples.burn, {"seconds": 20}, "the function ran into its limit of 1 CPU seconds"),
        (samples.die, {"number": signal.SIGSEGV}, "the function's process was ended by SIGSEGV"),
        (
            samples.die,
            {"number": signal.SIGKILL},
            "the function's process was ended by SIGKILL, as the system does when memory runs out",
        ),
        (samples.end, {"code": 3}, "the function's process ended with code 3 before it answered"),
    ],
)
async def test_a_death_says_which_limit_or_signal_it_was_and_the_worker_goes_on(
    failure, isolated, function, args, message
):
    error = await failure(function, **args)

    assert (error.type, error.message) == (ErrorType.TRANSIENT, message)
    assert await isolated(samples.hog, mib=1) == MIB


async def test_the_second_death_of_a_run_is_for_good_and_that_of_another_run_is_not(failure):
    first = await failure(samples.end, code=3)
    again = await failure(samples.end, code=3)
    second = await failure(samples.end, code=4, attempt=2)
    other = await failure(samples.end, code=3, attempt=2, execution="e2")

    assert [each.type for each in (first, again, other)] == [ErrorType.TRANSIENT] * 3
    assert (second.type, second.message) == (
        ErrorType.PERMANENT,
        "quarantined, since its process died twice; the last time, the function's process ended with code 4 before "
        "it answered",
    )


async def test_a_death_is_remembered_in_the_store_for_every_worker(tmp_path, registry):
    store = await SqliteStore.open(str(tmp_path / "kept.db"))
    kinds = []
    for attempt in (1, 2):
        functions = Functions()
        functions.register(samples.end)
        facilities = Facilities(functions=functions, processes=1)
        facilities.kept_values = StoredValues(store)
        python = registry.get("python")
        parameters = python.accept({"function": "end", "args": {"code": 3}, "placement": "process"})
        with pytest.raises(NodeFailure) as caught:
            await python.run(parameters, context_of(facilities, attempt=attempt))
        kinds.append(caught.value.error.type)
        await facilities.close()
    await store.close()

    assert kinds == [ErrorType.TRANSIENT, ErrorType.PERMANENT]


def written_into(pipe):
    """What another process writes into a named pipe; nothing if that takes too long."""
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(reader, 4096).decode() if select.select([reader], [], [], 30)[0] else ""
    finally:
        os.close(reader)


async def test_a_call_that_is_stopped_takes_everything_along_that_it_started(isolated, tmp_path):
    note = tmp_path / "children"
    os.mkfifo(note)
    running = asyncio.create_task(isolated(samples.leave_children, limits={}, note=str(note)))
    pids = [int(pid) for pid in (await asyncio.to_thread(written_into, note)).split()]
    handles = [os.pidfd_open(pid) for pid in pids]

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    # A handle can be read once its process has ended.
    assert [bool(select.select([handle], [], [], 10)[0]) for handle in handles] == [True] * 3


async def test_a_process_ends_with_a_worker_that_is_killed_even_if_its_code_lets_no_thread_run(tmp_path):
    note = tmp_path / "number"
    os.mkfifo(note)
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.nodes.held_up_worker", str(note)), cwd=Path(__file__).parents[2]
    )
    handle = os.pidfd_open(int(await asyncio.to_thread(written_into, note)))

    worker.kill()
    await worker.wait()

    assert select.select([handle], [], [], 10)[0]


@pytest.fixture
async def local(tmp_path):
    functions = Functions()
    functions.register(samples.die_once)
    functions.register(samples.end)
    settings = Settings(db=str(tmp_path / "test.db"), is_thrown_away=True)
    types = Registry.builtin()
    types.register(samples.fragile)
    async with open_service(settings, types, functions) as service:
        yield LocalEngine(service)


RETRY = {"maxAttempts": 10, "delay": "1ms", "jitter": 0}


async def test_a_run_that_kills_its_process_twice_is_a_dead_letter_and_the_worker_is_unharmed(local):
    doomed = Workflow("doomed")
    doomed.node("a", samples.fragile, mib=512, retry=RETRY)

    execution = await local.start(doomed)
    with pytest.raises(ExecutionEnded):
        await execution.result()

    [letter] = [each async for each in local.dead_letters()]
    assert "quarantined" in str(letter)
    assert "its memory limit of 64 MiB" in str(letter)
    assert letter["attempt"] == 2
    fine = Workflow("fine")
    fine.node("a", samples.fragile, mib=1)
    assert await (await local.start(fine)).result() == {"a": MIB}


async def test_a_run_whose_process_dies_once_is_tried_again(local, tmp_path):
    lucky = Workflow("lucky")
    args = {"marker": str(tmp_path / "marker")}
    lucky.node("a", "python", function="die_once", args=args, placement="process", retry=RETRY)

    assert await (await local.start(lucky)).result() == {"a": "alive"}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"memory": "1MiB"}, "limits.memory: must be between 16 MiB and"),
        ({"memory": "lots"}, "is no size"),
        ({"cpuSeconds": 0}, "limits.cpuSeconds: must be between 1 and"),
        ({"files": 2}, "limits.files: must be between 16 and"),
    ],
)
def test_limits_that_are_none_are_problems_of_the_workflow(registry, limits, message):
    asked = {"function": "f", "placement": "process", "limits": limits}
    document = {"ropewalk": 1, "name": "w", "nodes": [{"id": "a", "type": "python", "with": asked}]}

    with pytest.raises(InvalidDefinition, match=message):
        parse_definition(document, registry.infos())


@pytest.mark.parametrize(
    ("given", "limits"),
    [
        (None, None),
        ({"memory": "1GiB"}, Limits(memory=1024 * MIB)),
        ({"memory": 2**25, "cpuSeconds": 3, "files": 64}, Limits(2**25, 3, 64)),
        (Limits(files=64), Limits(files=64)),
    ],
)
def test_limits_are_given_as_a_program_likes(given, limits):
    assert as_limits(given) == limits


@pytest.mark.parametrize("given", [{"cpu": 1}, {"cpuSeconds": True}, {"files": 1.5}, {"memory": [1]}, 7])
def test_limits_that_are_none_are_refused_where_they_stand(given):
    with pytest.raises(ValueError):
        as_limits(given)


def test_limits_without_a_process_are_refused_where_they_stand():
    with pytest.raises(ValueError, match="process"):

        @node(limits={"files": 64})
        def f() -> None:
            """Does nothing."""


async def test_a_function_that_no_other_process_can_find_says_so(run, functions):
    functions.register(lambda: 1, "here")

    with pytest.raises(NodeFailure, match="cannot be imported by another process"):
        await run("python", {"function": "here", "placement": "process"})


async def test_processes_of_different_limits_are_not_confused_and_not_piled_up(isolated, facilities):
    for memory in ("32MiB", "48MiB", "64MiB"):
        assert await isolated(samples.hog, limits={"memory": memory}, mib=1) == MIB

    kept = facilities._processes._idle
    assert [limits.memory for limits, _ in kept] == [64 * MIB]
    assert os.getpgid(kept[0][1].pid) == kept[0][1].pid


async def test_an_output_of_a_function_keeps_its_ports(run, functions):
    functions.register(samples.burn, placement="process", limits=LIMITS)

    assert await run("python", {"function": "burn", "args": {"seconds": 0.0}}) == Output(0.0)

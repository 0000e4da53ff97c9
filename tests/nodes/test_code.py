"""Code of users in its sandbox: what it gives, what it may take, and that it does not get out."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import ErrorType, InvalidDefinition
from ropewalk.nodes import code as code_node
from ropewalk.nodes import sandbox
from ropewalk.nodes.base import NodeFailure, Output
from ropewalk.nodes.limits import MIB
from ropewalk.nodes.processes import descendants
from ropewalk.nodes.sandbox import Sandboxes, syntax_problem
from ropewalk.nodes.sandboxed import LONGEST_PRINTED, Code

from .sandbox_corpus import FAMILIES

CANARY = "canary-7f1c"
LIMITS = {"seconds": 0.2}


@pytest.fixture
def code(run):
    """Runs code with these variables and gives back what it gives."""

    async def run_code(source, limits=None, **inputs):
        given = {"code": source, "inputs": inputs, "limits": limits or {"seconds": 5}}
        return (await run("code.python", given)).value

    return run_code


@pytest.fixture
def failure(code):
    async def run_code(source, limits=None, **inputs):
        with pytest.raises(NodeFailure) as caught:
            await code(source, limits, **inputs)
        return caught.value.error

    return run_code


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("a + b", 5),
        ("return a * b", 6),
        ("if a > 1:\n    return 'more'\nreturn 'less'", "more"),
        ("x = a", None),
        ("{'list': [a, None, True, 1.5], 'text': f'{b}é'}", {"list": [2, None, True, 1.5], "text": "3é"}),
        ("(a, b)", [2, 3]),
        ("import json\njson.loads(json.dumps({'a': a}))", {"a": 2}),
        ("import re\nre.findall(r'[0-9]+', 'a1b22')", ["1", "22"]),
    ],
)
async def test_the_result_is_what_is_returned_or_the_last_expression(code, source, value):
    assert await code(source, a=2, b=3) == value


async def test_every_attempt_at_the_same_work_sees_the_same_moment_and_the_same_chance(code):
    source = "import datetime, random\n[datetime.datetime.now(datetime.timezone.utc), random.random()]"

    first, second = await code(source), await code(source)

    assert first == second
    assert first[0] == "2027-01-15T08:00:00Z"


async def test_nothing_of_one_call_is_there_in_the_next(code, failure):
    await code("kept = 1")

    assert (await failure("kept")).message == "line 1: NameError: name 'kept' is not defined"


async def test_what_code_prints_is_logged_up_to_a_limit(run, caplog):
    caplog.set_level("INFO", "ropewalk.node")

    await run("code.python", {"code": "print('hello')\nprint('x' * 100_000)", "inputs": {}})

    [record] = caplog.records
    assert record.fields["printed"].startswith("hello\nxxx")
    assert len(record.fields["printed"]) == LONGEST_PRINTED


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("x = 1\n1 / 0", ErrorType.PERMANENT, "line 2: ZeroDivisionError: division by zero"),
        ("def f():\n    return y\n\nf()", ErrorType.PERMANENT, "line 2: NameError: name 'y' is not defined"),
        ("while True: pass", ErrorType.TIMEOUT, "the code did not end in its limit of 0.2 s"),
        ("[0] * 10**9", ErrorType.PERMANENT, "line 1: the code took more memory than its limit of 64 MiB"),
        ("import time\ntime.sleep(1)", ErrorType.PERMANENT, "line 2: the code may not sleep; use a delay node"),
        ("'x' * 2_000_000", ErrorType.PERMANENT, "output: is larger than 1 MiB"),
        ("{1, 2}", ErrorType.PERMANENT, "output: a set has no order; hand on a sorted list"),
        ("class A: pass\nA()", ErrorType.PERMANENT, "output: an object of a class is not JSON"),
        ("10**100", ErrorType.PERMANENT, "output: the integer is beyond ±2⁵³; hand it on as text"),
        ("def f(): yield 1", ErrorType.PERMANENT, "line 1: NotImplementedError: the sandbox does not support yield "),
        ("def f(): return f()\nf()", ErrorType.PERMANENT, "line 1: RecursionError: maximum recursion depth exceeded"),
    ],
)
async def test_a_failure_says_the_line_and_the_limit(failure, source, kind, message):
    error = await failure(source, LIMITS)

    assert (error.type, error.message[: len(message)]) == (kind, message)


async def test_a_failure_tells_where_it_came_from_and_what_was_printed_but_no_path_of_the_host(failure):
    error = await failure("def f(x):\n    print('so far')\n    return 1 / x\n\nf(0)")

    assert error.detail == "line 5, in <module>\nline 3, in f\nprinted:\nso far\n"


async def test_a_small_memory_limit_is_kept_and_the_next_code_has_its_own(code, failure):
    source = "len([0] * 1_000_000)"

    error = await failure(source, {"memory": "8MiB", "seconds": 2})

    assert error.message == "line 1: the code took more memory than its limit of 8 MiB"
    assert await code(source) == 1_000_000


async def test_inputs_that_are_too_large_are_refused(failure):
    error = await failure("len(x)", x="y" * (16 * MIB))

    assert (error.type, error.message) == (ErrorType.PERMANENT, "with.inputs: are larger than 16 MiB")


@pytest.mark.parametrize("name", ["a b", "1a", "", "é", "x" * 65, "a\nb", "a.b"])
async def test_an_input_has_the_name_of_a_variable(failure, name):
    assert "is no name for a variable" in (await failure("1", **{name: 1})).message


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"seconds": 0}, "with.limits.seconds"),
        ({"seconds": 61}, "with.limits.seconds"),
        ({"memory": "1GiB"}, "with.limits.memory: must be between"),
        ({"memory": "some"}, "with.limits.memory: is no size"),
        ({"output": "17MiB"}, "with.limits.output: must be between"),
        ({"recursion": 2_000}, "with.limits.recursion"),
        ({"cores": 2}, "with.limits.cores"),
    ],
)
async def test_limits_have_limits(failure, limits, message):
    assert message in (await failure("1", limits)).message


async def test_a_sandbox_is_kept_warm_and_replaced_when_it_dies(facilities, code):
    await code("1")
    [(_, process)] = facilities.sandboxes._processes._idle
    await code("2")
    [(_, same)] = facilities.sandboxes._processes._idle

    os.kill(process.pid, 9)
    await process.wait()

    assert same is process
    assert await code("3") == 3


async def test_a_sandbox_whose_interpreter_is_killed_has_a_new_one(facilities, code):
    await code("1")
    [(_, process)] = facilities.sandboxes._processes._idle
    [interpreter] = descendants(process.pid)

    os.kill(interpreter, 9)

    assert [await code("2"), await code("3")] == [2, 3]


async def test_a_sandbox_that_hangs_is_killed_within_its_time_and_replaced(sandboxes):
    [(_, process)] = sandboxes._processes._idle
    os.kill(process.pid, signal.SIGSTOP)
    began = time.monotonic()

    with pytest.raises(NodeFailure) as caught:
        await sandboxes.run(Code("1", {}, 0.05, 64 * MIB, 200, MIB))

    assert caught.value.error.type is ErrorType.TIMEOUT
    assert "was killed" in caught.value.error.message
    assert time.monotonic() - began < 5
    assert process.returncode is not None
    assert (await sandboxes.run(Code("2", {}, 1.0, 64 * MIB, 200, MIB))).value == 2


async def test_the_time_until_a_sandbox_is_free_does_not_count(sandboxes, monkeypatch):
    monkeypatch.setattr(sandbox, "TO_AND_FRO", 0.3)
    busy = Code("while True: pass", {}, 0.5, 64 * MIB, 200, MIB)

    first, second = await asyncio.gather(
        sandboxes.run(busy), sandboxes.run(Code("1", {}, 0.05, 64 * MIB, 200, MIB)), return_exceptions=True
    )

    assert isinstance(first, NodeFailure)
    assert second.value == 1


async def test_a_sandbox_has_nothing_of_the_environment(facilities, code, monkeypatch):
    monkeypatch.setenv("ROPEWALK_CANARY", CANARY)
    await code("1")
    [(_, process)] = facilities.sandboxes._processes._idle

    inside = [process.pid, *descendants(process.pid)]

    assert len(inside) == 2
    for each in inside:
        with open(f"/proc/{each}/environ") as told:
            assert CANARY not in told.read()
        with open(f"/proc/{each}/limits") as told:
            assert "Max file size             0                    0" in told.read()


# The syntax, when a workflow is saved


def document(code):
    node = {"id": "a", "type": "code.python", "with": {"code": code, "inputs": {"x": "{{ input.x }}"}}}
    return {"ropewalk": 1, "name": "w", "nodes": [node]}


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 1\ny = = 2", "nodes[0].with.code: line 2: Expected an expression"),
        ("x = (1", "nodes[0].with.code: line 1: unexpected EOF while parsing"),
        ("def f():\n    yield 1", "nodes[0].with.code: line 2: the sandbox does not support yield expressions"),
        ("(" * 5_000, "nodes[0].with.code: line 1: Source is too deeply nested"),
    ],
)
def test_a_mistake_in_the_syntax_is_found_when_a_workflow_is_saved(registry, source, problem):
    with pytest.raises(InvalidDefinition) as caught:
        parse_definition(document(source), registry.infos())

    assert [str(each) for each in caught.value.problems] == [problem]


@pytest.mark.parametrize("source", ["1 / 0", "while True: pass", "[0] * 10**10", "{{ input.code }}"])
def test_saving_executes_nothing(registry, source):
    assert parse_definition(document(source), registry.infos()).name == "w"


async def test_without_the_extra_the_node_and_the_check_say_what_to_install(registry, failure, monkeypatch):
    monkeypatch.setattr(sandbox, "find_spec", lambda name: None)
    monkeypatch.setattr(code_node, "is_there", lambda: False)

    error = await failure("1")
    with pytest.raises(InvalidDefinition) as caught:
        parse_definition(document("1"), registry.infos())

    assert (error.type, error.message) == (ErrorType.PERMANENT, sandbox.MISSING)
    assert "pip install 'ropewalk[code]'" in str(caught.value)


# The corpus


class Trap:
    """What must stay untouched: a file with the canary, a file that is not there, a port that is not called."""

    def __init__(self, folder, port):
        self.secret = folder / "secret.txt"
        self.secret.write_text(CANARY)
        self.new = folder / "new.txt"
        self.port = port
        self.calls = 0

    def set_in(self, source):
        return source.replace("FILE", str(self.secret)).replace("NEW", str(self.new)).replace("PORT", str(self.port))

    def is_sprung(self, told):
        return CANARY in told or self.new.exists() or self.secret.read_text() != CANARY or self.calls > 0


@pytest.fixture
async def trap(tmp_path, monkeypatch):
    monkeypatch.setenv("ROPEWALK_CANARY", CANARY)
    made = Trap(tmp_path, 0)

    async def called(reader, writer):
        made.calls += 1
        writer.close()

    server = await asyncio.start_server(called, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await server.wait_closed()


@pytest.fixture
async def sandboxes():
    opened = Sandboxes(1)
    await opened.run(Code("1", {}, 5.0, 16 * MIB, 200, MIB))
    yield opened
    await opened.close()


async def outcome(sandboxes, source):
    inputs = {"order": {"name": "Ada", "lines": [1]}}
    try:
        ran = await sandboxes.run(Code(source, inputs, 0.1, 16 * MIB, 200, MIB))
    except NodeFailure as failed:
        return f"{failed.error.message}{failed.error.detail}"
    return f"{ran.value}{ran.printed}"


def test_the_corpus_is_large():
    assert sum(map(len, FAMILIES.values())) >= 250
    assert all(len(set(cases)) == len(cases) for cases in FAMILIES.values())


@pytest.mark.parametrize("family", FAMILIES)
async def test_no_code_gets_out_of_the_sandbox_or_takes_more_than_its_time(sandboxes, trap, family):
    for source in FAMILIES[family]:
        began = time.monotonic()

        told = await outcome(sandboxes, trap.set_in(source))

        assert not trap.is_sprung(told), source
        assert time.monotonic() - began < 2, source
        assert len(told) < 2 * MIB, source
    assert await outcome(sandboxes, "'still here'") == "still here"


@pytest.mark.parametrize("source", [FAMILIES["imports"][5], FAMILIES["files"][2], FAMILIES["walks"][34]])
async def test_the_trap_is_sprung_outside_of_the_sandbox(trap, source):
    plain = "\n".join(f"    {line}" for line in trap.set_in(source).splitlines())

    subprocess.run([sys.executable, "-c", f"def run():\n{plain}\nrun()"], check=True, timeout=30)

    assert trap.is_sprung("")


def test_a_syntax_that_was_read_before_is_not_read_again():
    syntax_problem.cache_clear()

    assert [syntax_problem("a = 1"), syntax_problem("a = 1")] == [None, None]
    assert syntax_problem.cache_info().hits == 1


async def test_the_output_is_the_value_itself(run):
    assert await run("code.python", {"code": "1"}) == Output(1)

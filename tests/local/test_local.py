"""Ropewalk inside a Python program."""

import asyncio
from collections.abc import AsyncIterator

import pytest

import ropewalk
from ropewalk import LocalEngine, LocalExecution, Workflow

ECHO = Workflow("echo")
ECHO.node("a", "noop", value=ECHO.input)


@pytest.fixture
async def engine(tmp_path) -> AsyncIterator[LocalEngine]:
    async with ropewalk.open(f"sqlite:///{tmp_path}/jobs.db") as opened:
        yield opened


async def until(execution: LocalExecution, kind: str, count: int = 1) -> None:
    """Wait for so many events of this kind."""
    async for event in execution.events():
        count -= event["type"] == kind
        if not count:
            return


def test_a_workflow_runs_to_its_end_in_one_line():
    assert ropewalk.run(ECHO, 7) == {"a": 7}


@pytest.mark.parametrize("given", [None, "refund.yaml", 5, lambda: 1])
async def test_what_is_no_workflow_is_refused_with_the_way_to_one(engine: LocalEngine, given):
    with pytest.raises(TypeError, match=r"Workflow\.load"):
        ropewalk.run(given)
    # A text is the name of a workflow that is saved, and there is none of this name.
    with pytest.raises(ropewalk.NotFound if isinstance(given, str) else TypeError, match=r"Workflow\.load"):
        await engine.start(given)


async def test_a_program_with_a_loop_is_told_what_to_await():
    with pytest.raises(RuntimeError, match=r"ropewalk\.open"):
        ropewalk.run(ECHO)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite://jobs.db", "mysql://host/jobs", "sqlite:///sqlite://jobs.db"])
def test_an_address_that_names_no_store_makes_no_file(tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ropewalk.Invalid, match=r"sqlite:///jobs\.db"):
        ropewalk.run(ECHO, db=url)

    assert list(tmp_path.iterdir()) == []


async def test_each_item_of_a_map_of_approvals_gets_its_own_answer(engine: LocalEngine):
    workflow = Workflow("ask")
    workflow.node("ask", "approval", for_each=["ann", "bob"], title=ropewalk.item)
    execution = await engine.start(workflow)
    await until(execution, "RunWaiting", 2)
    with pytest.raises(ropewalk.InvalidTransition, match="say which"):
        await execution.approve("ask")

    await execution.approve("ask", item=0)
    await execution.reject("ask", item=1)

    answers = await execution.result()
    assert [answer["approved"] for answer in answers["ask"]] == [True, False]


@pytest.mark.parametrize("name", ["", "x" * 256, 5, None])
async def test_a_signal_that_no_node_could_wait_for_is_refused(engine: LocalEngine, name):
    workflow = Workflow("waits")
    workflow.node("a", "wait", signal="go")
    execution = await engine.start(workflow)

    with pytest.raises(ropewalk.Invalid, match="name: "):
        await execution.signal(name)

    await execution.signal("go", 7)
    assert await execution.result() == {"a": 7}


@pytest.mark.parametrize("subject", ["", "x" * 256, 5, None, "order paid", b"order.paid"])
async def test_an_event_that_no_node_could_wait_for_is_refused(engine: LocalEngine, subject):
    with pytest.raises(ropewalk.Invalid, match="subject: must be words with dots between them"):
        await engine.publish(subject)


async def test_a_rerun_is_an_execution_of_its_own(engine: LocalEngine):
    execution = await engine.start(ECHO, 7)
    await execution.result()

    again = await execution.rerun("a")

    assert again.id != execution.id
    assert await again.result() == {"a": 7}


async def test_a_failure_brings_the_traceback_of_its_node_along(engine: LocalEngine):
    def divide(by: int) -> float:
        return 1 / by

    workflow = Workflow("divide")
    workflow.node("divide", ropewalk.node(divide), by=0, retry={"maxAttempts": 1})

    with pytest.raises(ropewalk.ExecutionEnded) as ended:
        await (await engine.start(workflow)).result()

    assert "in divide\n    return 1 / by\nZeroDivisionError: " in (ended.value.detail or "")
    assert ended.value.__notes__ == [ended.value.detail]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ("{{ input }}", "forEach gives no list but an object"),
        ("{{ input.words }}", "forEach gives no list but text"),
        ("{{ input.none }}", "forEach gives no list but null"),
        ("{{ 1 / input.zero }}", "forEach: at 5: divides by zero"),
    ],
)
async def test_a_map_without_a_list_says_what_it_was_given(engine: LocalEngine, items: str, message: str):
    workflow = Workflow("each")
    workflow.node("each", "noop", for_each=items)
    execution = await engine.start(workflow, {"words": "a b", "zero": 0})

    with pytest.raises(ropewalk.ExecutionEnded, match=message):
        await execution.result()


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("delay", {"for": "soon"}, r"nodes\[0\]\.with\.for: 'soon' is no duration"),
        ("delay", {"for": -1}, r"nodes\[0\]\.with\.for: must be from 0s"),
        ("wait", {"until": "tomorrow"}, r"nodes\[0\]\.with\.until: must be a moment with a zone"),
        ("wait", {}, r"nodes\[0\]\.with: give exactly one of until, event and signal"),
        ("wait", {"event": "order.paid", "filter": "item."}, r"nodes\[0\]\.with\.filter: "),
        ("filter", {"items": [1]}, r"nodes\[0\]\.with: give exactly one of where, conditions and keep"),
    ],
)
async def test_parameters_that_could_never_do_are_refused_before_a_start(engine, kind, parameters, message):
    workflow = Workflow("never")
    workflow.node("a", kind, with_=parameters)

    with pytest.raises(ropewalk.Invalid, match=message):
        await engine.start(workflow)


async def test_parameters_that_a_run_will_know_are_left_to_it(engine: LocalEngine):
    workflow = Workflow("later")
    workflow.node("a", "delay", for_="{{ input }}")

    assert await (await engine.start(workflow, "1ms")).result() == {"a": None}


async def test_what_was_paused_in_the_queue_is_claimed_with_its_whole_log(engine: LocalEngine, caplog):
    workflow = Workflow("one", concurrency_key="{{ input }}")
    workflow.node("a", "wait", signal="go")
    first, second = await engine.start(workflow, "key"), await engine.start(workflow, "key")
    await second.pause()
    await first.signal("go", 1)
    await first.result()

    await second.resume()
    await until(second, "RunWaiting")
    await second.signal("go", 2)

    assert await second.result() == {"a": 2}
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == []


@ropewalk.node
def twice(number: int) -> int:
    return 2 * number


async def test_what_waits_for_a_node_type_goes_on_when_a_later_start_brings_it(tmp_path):
    url = f"sqlite:///{tmp_path}/jobs.db"
    workflow = Workflow("doubled")
    go = workflow.node("go", "wait", signal="go")
    workflow.node("double", twice, number=go.output, after=go)
    async with ropewalk.open(url) as engine:
        first = await engine.start(workflow)
        await until(first, "RunWaiting")

    async with ropewalk.open(url) as engine, asyncio.timeout(20):
        waiting = engine.execution(first.id)
        await waiting.signal("go", 21)
        await until(waiting, "RunWaiting", 2)
        await engine.start(workflow)

        assert await waiting.result() == {"double": 42}

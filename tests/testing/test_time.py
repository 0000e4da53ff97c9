"""Time in tests: skipped whenever the engine has nothing to do, in order, and never while a node runs."""

import asyncio
import time
from datetime import datetime, timedelta
from typing import Any

import pytest

from ropewalk import ExecutionEnded, Workflow, node, testing
from ropewalk.core.errors import InvalidInput, NotFound
from ropewalk.testing import StillWaiting, TestEngine


def workflow(name: str, *nodes: dict[str, Any], edges: tuple[dict[str, str], ...] = (), **more: Any) -> dict[str, Any]:
    return {"ropewalk": 1, "name": name, "nodes": list(nodes), "edges": list(edges), **more}


def delay(name: str, length: str) -> dict[str, Any]:
    return workflow(name, {"id": "sleep", "type": "delay", "with": {"for": length}})


ASKING = workflow(
    "asking",
    {"id": "ask", "type": "approval", "timeout": "2d", "with": {"title": "Shall we?"}},
    {"id": "remind", "type": "log", "with": {"message": "no answer"}},
    edges=({"from": "ask", "to": "remind", "on": "expired"},),
    output='{{ nodes.remind.state == "SUCCESS" }}',
)
FOR_EVER = workflow("forever", {"id": "ask", "type": "approval", "with": {"title": "Shall we?"}})


def moment(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["at"])


def test_a_deadline_of_two_days_passes_in_no_time(ropewalk_engine: TestEngine):
    began = time.monotonic()
    execution = ropewalk_engine.start(ASKING)

    assert execution.result() is True
    events = execution.events()
    assert moment(events[-1]) - moment(events[0]) >= timedelta(days=2)
    assert time.monotonic() - began < 10


def test_a_retry_backoff_of_hours_is_skipped(ropewalk_engine: TestEngine):
    @node(retry={"maxAttempts": 4, "delay": "1h"})
    def flaky() -> str:
        """Fails, unless it is stubbed."""
        raise ConnectionError("away")

    built = Workflow("retrying")
    built.node("flaky", flaky)
    ropewalk_engine.stub(flaky, ConnectionError("away"), ConnectionError("away"), "here")
    execution = ropewalk_engine.start(built)

    assert execution.result() == {"flaky": "here"}
    assert execution.nodes()["flaky"]["attempts"] == 3
    failures = execution.events("RunFailed")
    assert moment(failures[1]) - moment(failures[0]) >= timedelta(hours=1)


def test_what_is_due_meanwhile_happens_in_the_order_of_its_time(ropewalk_engine: TestEngine):
    started = {hours: ropewalk_engine.start(delay(f"d{hours}", f"{hours}h")) for hours in (3, 1, 2)}

    ropewalk_engine.skip("2h30m")

    assert {hours: each.state() for hours, each in started.items()} == {1: "SUCCESS", 2: "SUCCESS", 3: "RUNNING"}
    one, two = (moment(started[hours].events("ExecutionSucceeded")[0]) for hours in (1, 2))
    assert timedelta(minutes=59) < two - one < timedelta(minutes=61)


def test_a_skip_is_as_long_as_it_says(ropewalk_engine: TestEngine):
    execution = ropewalk_engine.start(delay("hour", "1h"))

    ropewalk_engine.skip(timedelta(minutes=59))
    assert execution.state() == "RUNNING"

    ropewalk_engine.skip(61)
    assert execution.state() == "SUCCESS"


@pytest.mark.parametrize("length", ["soon", -1, None, "2y"])
def test_a_length_that_is_none_is_refused(ropewalk_engine: TestEngine, length: Any):
    with pytest.raises(InvalidInput):
        ropewalk_engine.skip(length)


def test_looking_at_an_execution_skips_nothing(ropewalk_engine: TestEngine):
    execution = ropewalk_engine.start(ASKING)

    assert execution.state() == "RUNNING"
    assert execution.nodes()["ask"]["state"] == "RUNNING"
    execution.approve("ask")
    assert execution.result() is False


def test_a_wait_that_no_time_ends_is_told_and_not_waited_for(ropewalk_engine: TestEngine):
    execution = ropewalk_engine.start(FOR_EVER)

    with pytest.raises(StillWaiting, match=r"ask: waits for approval: Shall we\? \(approve or reject it\)"):
        execution.result()


def test_a_paused_execution_says_that_it_is_paused(ropewalk_engine: TestEngine):
    execution = ropewalk_engine.start(delay("paused", "1h"))
    execution.pause()
    ropewalk_engine.skip("2d")

    with pytest.raises(StillWaiting, match="paused"):
        execution.result()

    execution.resume()
    assert execution.wait()["state"] == "SUCCESS"


def test_the_timeout_of_the_whole_comes_before_a_later_deadline(ropewalk_engine: TestEngine):
    execution = ropewalk_engine.start({**ASKING, "timeout": "10m"})

    assert execution.wait()["state"] == "TIMEOUT"


def test_one_waits_for_the_key_of_another_and_for_its_days(ropewalk_engine: TestEngine):
    document = {**ASKING, "concurrencyKey": "one at a time"}
    first, second = ropewalk_engine.start(document), ropewalk_engine.start(document)

    assert second.result() is True
    ended, began = first.events("ExecutionSucceeded")[0], second.events("ExecutionStarted")[0]
    assert moment(began) >= moment(ended)
    assert moment(second.events()[-1]) - moment(began) >= timedelta(days=2)


def test_a_short_wait_that_keeps_its_slot_is_skipped_too(ropewalk_engine: TestEngine):
    began = time.monotonic()
    document = delay("short", "9s")
    document["nodes"].append({"id": "also", "type": "delay", "with": {"for": "8s"}})

    ropewalk_engine.start(document).result()

    assert time.monotonic() - began < 7


def test_a_child_and_its_parent_skip_together(ropewalk_engine: TestEngine):
    ropewalk_engine.save(delay("child", "1d"))
    call = {"id": "call", "type": "subworkflow", "with": {"workflow": "child"}}
    execution = ropewalk_engine.start(workflow("parent", call))

    execution.result()

    assert [each["workflow"] for each in ropewalk_engine.executions("SUCCESS")] == ["child", "parent"]


def test_an_execution_that_does_not_exist_is_not_waited_for(ropewalk_engine: TestEngine):
    with pytest.raises(NotFound):
        ropewalk_engine.execution("01a1ec5b-5940-7106-a6b5-7c7e19877ca5").result()


def test_a_failure_is_told_as_anywhere(ropewalk_engine: TestEngine):
    failing = workflow("failing", {"id": "no", "type": "fail", "with": {"message": "no"}})

    with pytest.raises(ExecutionEnded, match="no"):
        ropewalk_engine.start(failing).result()

    assert [letter["node"] for letter in ropewalk_engine.dead_letters()] == ["no"]


async def test_time_does_not_move_while_a_node_runs():
    may_end = asyncio.Event()

    @node
    async def slow() -> str:
        """Ends when it is told to."""
        await may_end.wait()
        return "done"

    built = Workflow("slow")
    built.node("slow", slow)
    async with testing.open() as engine:
        waiting = await engine.start(ASKING)
        running = await engine.start(built)
        result = asyncio.ensure_future(waiting.result())
        await asyncio.wait({result}, timeout=0.2)
        assert not result.done()

        may_end.set()
        assert await running.result() == {"slow": "done"}
        assert await result is True


async def test_a_result_does_not_wait_for_the_nodes_of_others():
    may_end = asyncio.Event()

    @node
    async def slow() -> None:
        """Ends when it is told to."""
        await may_end.wait()

    built = Workflow("slow")
    built.node("slow", slow)
    async with testing.open() as engine:
        await engine.start(built)
        quick = await engine.start(workflow("quick", {"id": "a", "type": "noop"}))

        assert await quick.result() == {"a": None}
        may_end.set()

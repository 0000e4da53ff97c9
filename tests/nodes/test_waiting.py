"""The types that wait without a worker."""

from uuid import UUID

import pytest

from ropewalk.core.duration import DAY, SECOND
from ropewalk.core.errors import ErrorType
from ropewalk.core.waits import Approval, ChildWait, EventWait, SignalWait, Timer
from ropewalk.nodes.base import NodeFailure

from .conftest import NOON


@pytest.mark.parametrize(
    ("type_name", "inputs", "wait"),
    [
        ("delay", {"for": "2d"}, Timer(NOON + 2 * DAY)),
        ("delay", {"for": 1.5}, Timer(NOON + 3 * SECOND // 2)),
        ("delay", {"for": 0}, Timer(NOON)),
        ("wait", {"until": "2027-01-15T09:00:00+01:00"}, Timer(1_800_000_000 * SECOND)),
        ("wait", {"until": 1_800_000_000.25}, Timer(1_800_000_000_250_000)),
        ("wait", {"until": "1970-01-01T00:00:00Z"}, Timer(0)),
        ("wait", {"until": "0001-01-01T00:00:00+14:00"}, Timer(0)),
        ("wait", {"until": "2255-01-01T00:00:00Z"}, Timer(8_993_721_600 * SECOND)),
        ("wait", {"until": 8_993_721_600}, Timer(8_993_721_600 * SECOND)),
        ("wait", {"signal": "x" * 255}, SignalWait("x" * 255)),
        ("wait", {"event": "order.paid", "filter": "item.total > 3"}, EventWait("order.paid", "item.total > 3")),
        ("wait", {"event": "order.paid"}, EventWait("order.paid")),
        ("wait", {"event": "*.paid.>"}, EventWait("*.paid.>")),
        ("wait", {"signal": "go"}, SignalWait("go")),
        ("approval", {"title": "Refund?", "details": {"a": 1}}, Approval("Refund?", {"a": 1})),
    ],
)
async def test_what_is_waited_for_is_handed_to_the_core(run, type_name, inputs, wait):
    assert await run(type_name, inputs) == wait


async def test_a_subworkflow_names_a_new_child(run):
    inputs = {"workflow": "refund", "version": 3, "input": {"a": 1}}

    first, second = await run("subworkflow", inputs), await run("subworkflow", inputs)

    assert first == ChildWait(first.child, "refund", {"a": 1}, 3)
    assert UUID(first.child).version == 7
    assert first.child != second.child


@pytest.mark.parametrize(
    ("type_name", "inputs", "message"),
    [
        ("delay", {"for": "soon"}, "with.for: 'soon' is no duration"),
        ("delay", {"for": True}, "with.for: must be a duration"),
        ("delay", {"for": -1}, "with.for: must be from 0s to"),
        ("wait", {}, "with: give exactly one of until, event and signal"),
        ("wait", {"until": 1, "signal": "go"}, "with: give exactly one of until, event and signal"),
        ("wait", {"signal": "go", "filter": "true"}, "with: filter goes with event only"),
        ("wait", {"event": "e", "filter": "1 +"}, "with.filter: "),
        ("wait", {"until": "2027-01-15T09:00:00"}, "with.until: must be a moment with a zone"),
        ("wait", {"until": "0001-01-01T00:00:00+23:59x"}, "with.until: must be a moment with a zone"),
        ("wait", {"until": 10**20}, "with.until: must be a moment"),
        ("wait", {"until": False}, "with.until: must be a moment"),
        ("wait", {"until": "2255-01-01T00:00:00.000001Z"}, "with.until: must be a moment with a zone"),
        ("wait", {"until": "9999-12-31T23:59:59-12:00"}, "with.until: must be a moment with a zone"),
        ("wait", {"until": 8_993_721_601}, "with.until: must be a moment"),
        ("wait", {"signal": "x" * 256}, "with.signal: "),
        ("wait", {"event": "x" * 256}, "with.event: "),
        ("wait", {"event": "order paid"}, "with.event: must be words"),
        ("wait", {"event": "order.>.paid"}, "with.event: must be words"),
        ("wait", {"event": "order..paid"}, "with.event: must be words"),
        ("approval", {"title": ""}, "with.title: "),
        ("subworkflow", {"workflow": "a", "version": 0}, "with.version: "),
    ],
)
async def test_a_wait_for_nothing_sensible_is_a_permanent_failure(run, type_name, inputs, message):
    with pytest.raises(NodeFailure) as caught:
        await run(type_name, inputs)

    assert caught.value.error.type is ErrorType.PERMANENT
    assert caught.value.error.message.startswith(message)

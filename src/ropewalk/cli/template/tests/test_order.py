"""Tests of order.yaml. Waits are skipped, so they take milliseconds; the store is thrown away after each."""

from pathlib import Path

from ropewalk import Workflow
from ropewalk.testing import TestEngine

ORDER = Workflow.load(Path(__file__).parents[1] / "order.yaml")


def test_an_order_is_shipped(ropewalk_engine: TestEngine) -> None:
    execution = ropewalk_engine.start(ORDER, {"item": "rope", "quantity": 3})

    assert execution.result() == {"total": 37.5, "shipped": True}
    assert execution.nodes()["stock"]["attempts"] == 2


def test_an_order_that_no_one_decides_about_is_declined_after_two_days(ropewalk_engine: TestEngine) -> None:
    ropewalk_engine.stub("stock", 0)  # the warehouse is not asked
    execution = ropewalk_engine.start(ORDER)

    ropewalk_engine.skip("1d23h")
    assert execution.state() == "RUNNING"

    assert execution.result() == {"total": 37.5, "shipped": False}
    assert execution.nodes()["decline"]["state"] == "SUCCESS"


def test_an_item_that_no_shop_sells_leaves_a_dead_letter(ropewalk_engine: TestEngine) -> None:
    execution = ropewalk_engine.start(ORDER, {"item": "anchor"})

    assert execution.wait()["state"] == "FAILED"
    assert [letter["reason"] for letter in ropewalk_engine.dead_letters()] == ["no shop sells 'anchor'"]

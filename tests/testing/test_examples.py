"""The examples do what they say, with their waits skipped and the outside stubbed."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from ropewalk import NodeFailure, Workflow
from ropewalk.testing import TestEngine

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> Workflow:
    return Workflow.load(EXAMPLES / name)


@pytest.mark.parametrize("answer", ["approved", "rejected", "none"])
def test_approval_publishes_what_is_approved_and_nothing_else(ropewalk_engine: TestEngine, answer: str):
    execution = ropewalk_engine.start(load("approval.yaml"), {"title": "Knots"})
    if answer != "none":
        (execution.approve if answer == "approved" else execution.reject)("ask")

    assert execution.result() == {"published": answer == "approved"}
    reached = [name for name in ("publish", "shelve", "remind") if execution.nodes()[name]["state"] == "SUCCESS"]
    assert reached == [{"approved": "publish", "rejected": "shelve", "none": "remind"}[answer]]


def test_hello_greets(ropewalk_engine: TestEngine):
    assert ropewalk_engine.start(load("hello.yaml"), {"name": "Ada"}).result() == "Hello, Ada!"


def test_nightly_keeps_the_invoices_when_the_ledger_is_away(ropewalk_engine: TestEngine):
    ropewalk_engine.stub("http.request", ConnectionError("no such host"))
    execution = ropewalk_engine.start(load("nightly.yaml"))

    result = execution.result()

    assert [invoice and invoice["name"] for invoice in result["invoices"]] == ["Ada", "Alan", None, "Edsger"]
    assert result["posted"] is False
    assert len(ropewalk_engine.calls("http.request")) == 2
    assert ropewalk_engine.dead_letters() == []


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ("delivered", "It has arrived."),
        ("returned", "It came back; the money is on its way."),
        (None, "We are looking for it."),
    ],
)
def test_parcel_goes_the_way_the_report_says(ropewalk_engine: TestEngine, report: str | None, said: str):
    execution = ropewalk_engine.start(load("parcel.yaml"))
    if report is not None:
        execution.signal("report", {"status": report})

    assert execution.result() == said
    assert execution.nodes()["late"]["state"] == ("SUCCESS" if report is None else "SKIPPED")


def shop(inputs: dict[str, Any]) -> dict[str, Any]:
    """A shop with one large order."""
    if inputs.get("method") == "POST":
        return {"status": 201, "body": {"refunded": 250}}
    return {"status": 200, "body": {"total": 250, "watchers": ["ada@example.org", "alan@example.org"]}}


def test_refund_pays_what_was_approved_and_tells_every_watcher(ropewalk_engine: TestEngine):
    ropewalk_engine.stub("http.request", shop)
    ropewalk_engine.stub("email.send")
    execution = ropewalk_engine.start(load("refund.yaml"), {"orderId": "o-17"})
    ropewalk_engine.skip("5m")
    execution.approve("ask")

    assert execution.result() == {"refunded": 250}
    told = [call["to"] for call in ropewalk_engine.calls("email.send")]
    assert told == ["ada@example.org", "alan@example.org"]


def test_refund_alerts_when_the_shop_refuses_to_pay(ropewalk_engine: TestEngine):
    found = {"status": 200, "body": {"total": 20, "watchers": []}}
    ropewalk_engine.stub("http.request", found, NodeFailure.permanent("402 Payment Required"))
    execution = ropewalk_engine.start(load("refund.yaml"), {"orderId": "o-17"})

    execution.result()

    assert execution.nodes()["alert"]["output"] == {"message": "refund failed: 402 Payment Required"}
    assert ropewalk_engine.dead_letters() == []


def test_flaky_makes_an_offer_without_a_rating(ropewalk_engine: TestEngine):
    workflow = runpy.run_path(str(EXAMPLES / "flaky.py"))["workflow"]
    execution = ropewalk_engine.start(workflow, {"product": "rope"})

    assert execution.result() == "40 × rope at 12.50 each, unrated"
    assert {name: node["attempts"] for name, node in execution.nodes().items()} == {
        "prices": 1, "stocks": 3, "ratings": 2, "unrated": 1, "offers": 1,
    }  # fmt: skip

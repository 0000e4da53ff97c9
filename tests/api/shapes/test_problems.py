"""Faults of ours: the client gets an id to ask about, the log has the rest under it."""

import logging

import pytest

from tests.api.house import House


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/workflow/definitions", None),
        ("POST", "/workflow/executions/start", {"workflowDefinitionId": "any"}),
    ],
    ids=["by the route", "by the short way"],
)
async def test_a_fault_of_ours_tells_the_client_an_id_and_the_log_the_rest(
    house: House,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    body: object,
):
    async def broken(*_: object) -> None:
        raise RuntimeError("the words of a fault")

    monkeypatch.setattr(house.backend.rights_cache, "rights_in", broken)
    with caplog.at_level(logging.ERROR, "ropewalk.api"):
        answer = await house.ask(method, path, json=body)

    told, logged = answer.json(), caplog.records[0]
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "words" not in answer.text
    assert "Traceback" not in answer.text
    assert told["instance"] in logged.getMessage()
    assert "the words of a fault" in str(logged.exc_info and logged.exc_info[1])

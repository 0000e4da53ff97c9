"""The log: envelopes, old versions, recorded histories."""

import json
from pathlib import Path

import msgspec
import pytest

from ropewalk.core import events, log, signals
from ropewalk.core.commands import CancelChild, Finish
from ropewalk.core.errors import UnknownVersion
from ropewalk.core.events import RULES, Event, ExecutionAccepted, NodesStarted, NodeSucceeded
from ropewalk.core.execution import Execution
from ropewalk.core.execution.evolving_whole import EVOLVE
from ropewalk.core.execution.machine import DECIDE
from ropewalk.core.plan import load_plan
from tests.core.executions import NOON, states

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))


def test_an_entry_is_read_as_it_was_written():
    written = [NodeSucceeded(NOON, "a", 1, {"x": [1, None]}, ("true",)), NodesStarted(NOON, ("b", "c"))]

    assert log.decode(log.encode(7, written)) == (7, written)


def test_what_counted_no_tokens_is_written_as_ever_and_read_from_logs_that_know_of_none():
    entry = b'{"v":2,"seq":1,"events":[{"type":"NodeSucceeded","at":5,"node":"a","attempt":1,"output":7}]}'

    assert log.encode(1, [NodeSucceeded(5, "a", 1, 7)]) == entry
    assert log.decode(entry)[1][0].tokens is None
    assert b'"tokens":12' in log.encode(1, [NodeSucceeded(5, "a", 1, 7, tokens=12)])


def test_an_entry_of_version_1_is_read_for_ever():
    entry = b'{"v":1,"seq":2,"events":[{"type":"NodeStarted","at":5,"node":"a"},{"type":"SlotTaken","at":5}]}'

    assert log.decode(entry) == (2, [NodesStarted(5, ("a",)), events.SlotTaken(5)])


@pytest.mark.parametrize("version", [0, log.VERSION + 1])
def test_an_entry_of_an_unknown_version_is_refused(version):
    with pytest.raises(UnknownVersion, match=f"version {version}"):
        log.decode(json.dumps({"v": version, "seq": 1, "events": []}).encode())


def test_the_outside_sees_one_envelope_per_event():
    envelope = log.envelope("e1", 3, NodeSucceeded(NOON, "a", 1, 5))

    assert envelope == {
        "v": log.VERSION,
        "type": "NodeSucceeded",
        "executionId": "e1",
        "seq": 3,
        "at": "2025-11-15T12:00:00.000000Z",
        "data": {"node": "a", "attempt": 1, "output": 5},
    }


def test_every_event_can_be_applied_and_every_signal_decided():
    assert set(EVOLVE) == set(Event.__args__)
    assert set(DECIDE) == set(signals.Signal.__args__)


def test_there_are_recorded_histories():
    assert HISTORIES


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_a_recorded_history_is_folded_as_it_was_then(path):
    """Never edit such a file: it is a log someone may still have."""
    history = json.loads(path.read_text())
    execution = Execution(load_plan(json.dumps(history["definition"]).encode()))

    execution.apply(log.decode_all(json.dumps(entry).encode() for entry in history["log"]))

    assert execution.state == history["state"]
    assert states(execution) == history["nodes"]
    # What its family is told once more was not written down then.
    outstanding = [command for command in execution.outstanding() if not isinstance(command, Finish | CancelChild)]
    assert [msgspec.to_builtins(command) for command in outstanding] == history["outstanding"]


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_recorded_signals_still_decide_the_same(path):
    """Only histories of the current version: the rules of old ones may have been others."""
    history = json.loads(path.read_text())
    if any(entry["v"] != log.VERSION for entry in history["log"]):
        return
    execution = Execution(load_plan(json.dumps(history["definition"]).encode()))
    recorded = list(log.decode_all(json.dumps(entry).encode() for entry in history["log"]))
    execution.apply([event for event in recorded if isinstance(event, ExecutionAccepted)])

    decided = [
        event
        for each in history["signals"]
        for event in execution.handle(msgspec.convert(each["signal"], signals.Signal), each["now"])
    ]

    assert decided == recorded[1:]


def test_there_is_a_recorded_history_of_every_rule_an_execution_may_follow():
    """An execution is decided for life by the rules it began with; the histories above say so of each."""
    logs = [json.loads(path.read_text())["log"] for path in HISTORIES]

    assert {entries[0]["events"][0].get("rules", 0) for entries in logs} == set(range(RULES + 1))

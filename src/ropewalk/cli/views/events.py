"""Events as sentences, for logs and for terminals that cannot draw. An event comes as its envelope."""

from typing import Any

from ropewalk.cli.views.text import clock, json_line, lapse, moment, one_line
from ropewalk.cli.views.timeline import waits_for

Json = dict[str, Any]


def event_line(envelope: Json) -> str:
    """One event of a log: number, time, what happened, and its data."""
    data = {key: value for key, value in envelope["data"].items() if value not in (None, [], {})}
    return (
        f"{envelope['seq']:>6}  {clock(envelope['at'])}  {envelope['type']:<19} {json_line(data, 160) if data else ''}"
    )


def sentence(envelope: Json) -> str | None:
    """What people want to hear of while they wait; None for bookkeeping."""
    kind, data = envelope["type"], envelope["data"]
    match kind:
        case "NodesStarted" | "NodesSkipped" | "NodesReset":
            return f"{', '.join(data['nodes'][:10])}{_more(data['nodes'])}: {_WORDS[kind]}"
        case "RunStarted":
            return f"{_work(data)}: attempt {data['attempt']} started"
        case "MapExpanded":
            return f"{data['node']}: {data['count']} items"
        case "NodeSucceeded":
            return f"{data['node']}: SUCCESS"
        case "NodeFailed" | "ItemFailed":
            return f"{_work(data)}: FAILED: {one_line(data['error']['message'], 300)}"
        case "RunFailed":
            return f"{_work(data)}: attempt {data['attempt']} failed{_retry(envelope)}: {_message(data)}"
        case "RoundEnded":
            return f"{data['node']}: a round ended (attempt {data['attempt']})"
        case "RunWaiting":
            return f"{_work(data)}: {waits_for(data['wait'], data.get('due'), moment(envelope['at']) or 0)}"
        case "NodeRequeued" | "NodeFixed":
            return f"{_work(data)}: {_WORDS[kind]} by {one_line(data['by'])}"
        case "SignalReceived":
            return f"signal {one_line(data['name'])!r} received"
        case "OutcomeDecided":
            return f"closed with the outcome {data['outcome']}"
        case "ExecutionFailed":
            return f"FAILED: {one_line(data['error'], 300)}"
        case _:
            return _WORDS.get(kind)


_WORDS = {
    "NodesStarted": "started",
    "NodesSkipped": "SKIPPED",
    "NodesReset": "to be tried again",
    "NodeRequeued": "requeued",
    "NodeFixed": "fixed",
    "ExecutionAccepted": "accepted",
    "ExecutionStarted": "RUNNING",
    "ExecutionPaused": "PAUSED",
    "ExecutionResumed": "resumed",
    "ExecutionReopened": "reopened",
    "ExecutionSucceeded": "SUCCESS",
    "ExecutionCancelled": "CANCELLED",
    "ExecutionTimedOut": "TIMEOUT",
    "CancelRequested": "told to stop",
    "DeadlinePassed": "its time limit has passed",
    "StopRequested": "stops at the first failure",
}


def _more(names: list[str]) -> str:
    return f" and {len(names) - 10} more" if len(names) > 10 else ""


def _work(data: Json) -> str:
    item = data.get("item")
    return str(data["node"]) if item is None else f"{data['node']}[{item}]"


def _retry(envelope: Json) -> str:
    at, due = moment(envelope["at"]), envelope["data"].get("retryAt")
    return "" if at is None or due is None else f", retry in {lapse(due - at)}"


def _message(data: Json) -> str:
    return one_line(data["error"]["message"], 300)

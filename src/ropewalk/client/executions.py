"""What can be said to one execution, and how its events are followed."""

from typing import Final
from urllib.parse import quote

import msgspec

from ropewalk.client.answers import Event, ExecutionDetails, Explanation, Node, Run, Told
from ropewalk.client.messages import Message
from ropewalk.client.patience import Trial
from ropewalk.client.talking import (
    Close,
    Item,
    Open,
    Read,
    Request,
    Series,
    Sleep,
    Talk,
    TransportError,
    get,
    insist,
    post,
    said,
)
from ropewalk.client.verbs import Line, Speaker, listing, verb
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import ExecutionEnded, Unavailable
from ropewalk.core.state import ENDED, ExecutionState

PATH: Final = "/workflow/executions"
WAIT: Final = 30
"""For how many seconds the server may wait for the end of an execution before it answers."""


class ExecutionVerbs(Speaker):
    """What can be said to one execution."""

    def __init__(self, line: Line, execution: str) -> None:
        self.line = line
        self.id = execution

    @property
    def _path(self) -> str:
        return f"{PATH}/{quote(self.id, safe='')}"

    # Looking

    @verb
    def details(self) -> Talk[ExecutionDetails]:
        """The execution with everything it keeps; its nodes, runs and events have lists of their own."""
        return self._ask(get(self._path))

    @verb
    def output(self) -> Talk[JSON]:
        """The output of an execution that succeeded, of any size."""
        return self._ask(get(f"{self._path}/output"))

    @verb
    def explain(self, node: str | None = None) -> Talk[Explanation]:
        """Why it, or one node of it, does not run now, and what would help."""
        return self._ask(get(f"{self._path}/explain", {"node": node}))

    @listing
    def nodes(self) -> Series[Node]:
        """Every node, in the order of the document."""
        return self._pages(f"{self._path}/nodes")

    @listing
    def runs(self) -> Series[Run]:
        """Every attempt, in the order they began."""
        return self._pages(f"{self._path}/runs")

    @listing
    def recorded(self, after: int = 0) -> Series[Event]:
        """The events recorded by now, after this number."""
        return self._pages(f"{self._path}/events", after=after)

    @listing
    def events(self, after: int = 0, *, patience: float | None = None) -> Series[Event]:
        """Every event after this number, those recorded and those to come, once and in order, until the end.

        A stream that is cut is taken up again where it was; Unavailable if that takes longer than `patience` (s).
        """
        return followed(self._path, after, self.line.patience if patience is None else patience)

    @verb
    def wait(self) -> Talk[ExecutionDetails]:
        """Wait for the end; the execution as it is then."""
        return self._ended()

    @verb
    def result(self) -> Talk[JSON]:
        """Wait for the end; the output, or `ExecutionEnded` if there is none."""
        details = yield from self._ended()
        if details["state"] != ExecutionState.SUCCESS:
            state = ExecutionState(details["state"])
            raise ExecutionEnded(self.id, state, details["error"], details["errorDetail"])
        if details["outputReference"] is None:
            return details["output"]
        return (yield from self._ask(get(f"{self._path}/output")))

    def _ended(self) -> Talk[ExecutionDetails]:
        while True:
            details: ExecutionDetails = yield from self._ask(get(self._path, {"wait": WAIT}, seconds=WAIT))
            if details["state"] in ENDED:
                return details

    # Telling. What holds already is no error, so a pause, a resume and a cancel may be said twice.

    @verb
    def cancel(self, reason: str | None = None) -> Talk[Told]:
        """Running nodes and children are told to stop, and have ten seconds."""
        return self._ask(post(f"{self._path}/cancel", said(reason=reason), repeats=True))

    @verb
    def pause(self, reason: str | None = None) -> Talk[Told]:
        """Nothing new starts; what runs finishes."""
        return self._ask(post(f"{self._path}/pause", said(reason=reason), repeats=True))

    @verb
    def resume(self) -> Talk[Told]:
        """What was paused goes on."""
        return self._ask(post(f"{self._path}/resume", repeats=True))

    @verb
    def retry(self) -> Talk[Told]:
        """Every failed node is tried again."""
        return self._ask(post(f"{self._path}/retry"))

    @verb
    def signal(self, name: str, payload: JSON = None) -> Talk[Told]:
        """Tell it something it waits for."""
        return self._ask(post(f"{self._path}/signal", {"name": name, "payload": payload}, doubles=True))

    @verb
    def approve(self, node: str, payload: JSON = None, item: int | None = None) -> Talk[Told]:
        """Say yes to an approval that is waiting."""
        return self._ask(self._decision(node, payload, item, approved=True))

    @verb
    def reject(self, node: str, payload: JSON = None, item: int | None = None) -> Talk[Told]:
        """Say no to an approval that is waiting."""
        return self._ask(self._decision(node, payload, item, approved=False))

    def _decision(self, node: str, payload: JSON, item: int | None, *, approved: bool) -> Request:
        body = {"node": node, "approved": approved, "payload": payload, **said(item=item)}
        return post(f"{self._path}/approve", body)

    @verb
    def rerun(self, node: str, version: int | None = None) -> Talk[str]:
        """A new execution that keeps every result but those of `node` and of what is behind it; its id."""
        body = {"node": node, **said(version=version)}
        answer = yield from self._ask(post(f"{self._path}/rerun", body, doubles=True))
        return str(answer["executionId"])

    @verb
    def replay(self) -> Talk[str]:
        """A new execution of the same version with the same input; its id."""
        answer = yield from self._ask(post(f"{self._path}/replay", doubles=True))
        return str(answer["executionId"])


# The stream


def followed(path: str, after: int, patience: float) -> Series[Event]:
    """The events of an execution after this number, to its end, across any number of cuts."""
    seq, trial = after, Trial(patience)
    while True:
        stream = (yield from insist(Open(_stream(path, seq)), patience)).stream
        try:
            while (message := (yield Read(stream))) is not None:
                if message.event == "end":
                    if _is_finished(message):
                        return
                    break
                number = int(message.id)
                if message.event == "snapshot":
                    # Of a database that went back in time it may be earlier than what was told before.
                    seq, trial = number, Trial(patience)
                elif number > seq:
                    seq, trial = number, Trial(patience)
                    yield Item(msgspec.json.decode(message.data))
        except TransportError:
            pass  # a cut like any other: what was missed comes with the next stream
        yield Close(stream)
        pause = trial.pause()
        if pause is None:
            raise Unavailable(f"the events after {seq} cannot be had: the stream ends again and again")
        yield Sleep(pause)


def _stream(path: str, seq: int) -> Request:
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(seq)}
    return Request(method="GET", path=f"{path}/stream", headers=headers, repeats=True)


def _is_finished(message: Message) -> bool:
    """Whether the execution is over; else a client that comes back gets the rest, or is told why not."""
    return bool(msgspec.json.decode(message.data)["reason"] == "finished")

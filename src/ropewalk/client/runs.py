"""External runners: take the runs of a pool, and report."""

import os
import re
import socket
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from ropewalk.client.answers import KeptLease, LeasedRun, ReportTaken
from ropewalk.client.talking import Item, Series, Talk, ask, post, said
from ropewalk.client.verbs import Line, Speaker, verb
from ropewalk.core.canonical import JSON

PATH: Final = "/workflow/runs"
WAIT: Final = 30
"""For how many seconds the server may wait for work before it says that there is none."""
LONGEST_NAME: Final = 64


def runner_name() -> str:
    """What a runner is called if it is given no name."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", f"{os.getpid()}.{socket.gethostname()}")[:LONGEST_NAME]


class RunnerVerbs(Speaker):
    """A runner: takes the runs of a pool."""

    def __init__(self, line: Line, pool: str, name: str) -> None:
        self.line = line
        self.pool = pool
        self.name = name


def leased(runner: RunnerVerbs, limit: int) -> Series[LeasedRun]:
    """The runs handed to a runner, one after the other, for ever."""
    body = {"pool": runner.pool, "runnerId": runner.name, "limit": limit, "waitSeconds": WAIT}
    while True:
        answer = yield from ask(post(f"{PATH}/lease", body, seconds=WAIT, repeats=True), runner.line.patience)
        for run in answer["runs"]:
            yield Item(run)


class LeaseVerbs(Speaker):
    """What can be reported of a run that was handed over.

    Under a lease that ran out nothing changes: InvalidTransition. So a report may be sent again if its answer is lost.
    """

    def __init__(self, line: Line, run: LeasedRun) -> None:
        self.line = line
        self.run = run

    @property
    def inputs(self) -> JSON:
        """What the node was given."""
        return self.run["inputs"]

    @verb
    def heartbeat(self) -> Talk[KeptLease]:
        """It is still at work; `stop` says that the run is not wanted any more."""
        return self._report("heartbeat")

    @verb
    def complete(
        self, output: JSON = None, ports: Sequence[str] = (), *, tokens: int | None = None
    ) -> Talk[ReportTaken]:
        """It is done; this came of it, and so many tokens of a language model were used up."""
        return self._report("complete", output=output, ports=list(ports), **said(tokens=tokens))

    @verb
    def fail(self, message: str, kind: str = "TRANSIENT", *, detail: str | None = None,
             retry_after: float | None = None, tokens: int | None = None, status: int | None = None,
             body: str | None = None) -> Talk[ReportTaken]:  # fmt: skip
        """It failed: TRANSIENT and TIMEOUT are tried again, PERMANENT is not."""
        about = said(detail=detail, retryAfter=retry_after, status=status, body=body)
        error = {"type": kind, "message": message, **about}
        return self._report("fail", error=error, **said(tokens=tokens))

    def _report(self, what: str, **more: JSON) -> Talk[JSON]:
        path = f"{PATH}/{quote(self.run['runId'], safe='')}/{what}"
        return self._ask(post(path, {"leaseToken": self.run["leaseToken"], **more}, repeats=True))

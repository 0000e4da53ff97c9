"""`make fuzz-api`: requests made from the API's own description, good and bad, against a real server.

No answer may be a 5xx, and none may differ from what the description says. Half of the requests name things that exist.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

API: Final = "/api/v1"
PATIENCE: Final = 10.0
GLANCE: Final = 0.5
"""How long a stream is listened to (s)."""
LONGEST_WAIT: Final = 60
LONGEST_LEAVE: Final = 60.0
"""How long a server may take to leave (s)."""
AT_ONCE: Final = 3
CHECKS: Final = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
WAITING: Final = {
    "ropewalk": 1,
    "name": "waiting",
    "nodes": [{"id": "ask", "type": "approval", "with": {"title": "?"}}],
}
FAILING: Final = {
    "ropewalk": 1,
    "name": "failing",
    "nodes": [{"id": "a", "type": "fail", "with": {"message": "no"}, "retry": {"maxAttempts": 1}}],
}


class Server:
    """A server of its own, with a few things in it that can be named."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.session = requests.Session()
        self.proof = {"Authorization": f"Bearer {token}"}
        self.names: dict[str, str] = {}

    def ask(self, method: str, path: str, **more: Any) -> Any:
        answer = self.session.request(method, f"{self.url}{API}{path}", headers=self.proof, timeout=PATIENCE, **more)
        answer.raise_for_status()
        return answer.json()

    def furnish(self) -> None:
        """A workflow that waits, one that fails, and an execution of each."""
        workflows = [
            self.ask("POST", "/workflow/definitions?publish=true", json=document)["id"]
            for document in (WAITING, FAILING)
        ]
        started = [
            self.ask("POST", "/workflow/executions/start", json={"workflowDefinitionId": each})["executionId"]
            for each in workflows
        ]
        self.names = {"definitionId": workflows[0], "workflowId": workflows[0], "executionId": started[0],
                      "workspaceId": "default", "node": "ask", "type": "noop"}  # fmt: skip


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Server]:
    """`ropewalk up` on a new store."""
    command = [sys.executable, "-m", "ropewalk", "up", "--port", "0", "--json", "--db", str(folder / "fuzz.db")]
    # Into files: the server writes its log where a pipe would be full after a while, and wait for its reader.
    with (folder / "log").open("wb") as log, (folder / "said").open("wb") as output, subprocess.Popen(
        command, stdout=output, stderr=log, cwd=folder,
        env={**os.environ, "XDG_RUNTIME_DIR": str(folder), "PYTHONFAULTHANDLER": "1"},
    ) as process:  # fmt: skip
        try:
            said = _first_line(folder / "said")
            yield Server(said["url"], said["token"])
            _leave(process, folder / "log")
        finally:
            process.kill()


def _first_line(said: Path) -> dict[str, Any]:
    """What the server says when it is up; RuntimeError if it says nothing."""
    end = time.monotonic() + PATIENCE * 3
    while time.monotonic() < end:
        if "\n" in (text := said.read_text(encoding="utf-8")):
            found: dict[str, Any] = json.loads(text.partition("\n")[0])
            return found
        time.sleep(0.05)
    raise RuntimeError("the server did not say that it is up")


def _leave(process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Tell the server to leave; RuntimeError with what its threads are at if it does not."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(LONGEST_LEAVE)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # the fault handler writes down where every thread is
        process.wait(PATIENCE)
        tail = log.read_text(encoding="utf-8", errors="replace")[-8_000:]
        raise RuntimeError(f"the server did not leave within {LONGEST_LEAVE:g} s of SIGTERM:\n{tail}") from None
    print(f"the server left {time.monotonic() - began:.1f} s after SIGTERM")


class Found:
    """What the answers were, and which of them were wrong."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.operations: Counter[str] = Counter()
        self.unanswered: Counter[str] = Counter()
        self.wrong: dict[str, str] = {}

    @property
    def requests(self) -> int:
        return sum(self.operations.values())


def fuzz(server: Server, count: int, seconds: float = 3_600.0) -> Found:
    """So many requests, a few to every operation in turn, or as many as fit into the time."""
    found, end = Found(), time.monotonic() + seconds
    schema = schemathesis.openapi.from_dict(_described(server))
    ways = [way for result in schema.get_all_operations() for way in _ways(server, result.ok())]  # type: ignore[union-attr]  # an error raises
    while found.requests < count:
        before = found.requests
        for name, strategy in ways:
            if found.requests >= count or time.monotonic() > end:
                return found
            _try_out(server, strategy, name, found)
        if found.requests == before:
            raise RuntimeError("the description offers nothing to ask")
    return found


def _described(server: Server) -> dict[str, Any]:
    """The description without the proof of who asks: requests that are not let in try out nothing."""
    found: dict[str, Any] = server.ask("GET", "/openapi.json")
    found.pop("security", None)
    found["components"].pop("securitySchemes", None)
    for operations in found["paths"].values():
        for operation in operations.values():
            if isinstance(operation, dict):
                operation.pop("security", None)
    return found


def _ways(server: Server, operation: Any) -> Iterator[tuple[str, Any]]:
    """Good requests and bad ones, to things that exist and to others."""
    name = str(operation.definition.raw.get("operationId", operation.label))
    known = {each.name: server.names[each.name] for each in operation.path_parameters if each.name in server.names}
    for mode in GenerationMode:
        for named in (None, known) if known else (None,):
            yield name, operation.as_strategy(generation_mode=mode, path_parameters=named)


def _try_out(server: Server, strategy: Any, name: str, found: Found) -> None:
    @seed(found.requests)
    @settings(max_examples=AT_ONCE, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(case=strategy)
    def ask(case: Case[Any]) -> None:
        _ask(server, case, name, found)

    # There may be no bad request to make: where nothing is asked for, nothing can be asked wrongly.
    with contextlib.suppress(Unsatisfiable):
        ask()


def _ask(server: Server, case: Case[Any], name: str, found: Found) -> None:
    found.operations[name] += 1
    is_endless = name.startswith("stream")
    _hurry(case)
    try:
        patience = GLANCE if is_endless else PATIENCE
        answer = case.call(server.url, session=server.session, headers=server.proof, timeout=patience)
    except requests.Timeout:
        found.unanswered[name] += not is_endless
        return
    found.statuses[answer.status_code] += 1
    try:
        case.validate_response(answer, checks=CHECKS, excluded_checks=_excluded(answer))
    except FailureGroup as failure:
        for each in failure.exceptions:
            found.wrong.setdefault(f"{name}: {type(each).__name__}", str(failure))


def _hurry(case: Case[Any]) -> None:
    """No runner waits for work here: there is none."""
    body: Any = case.body
    if isinstance(body, dict) and body.get("waitSeconds") in range(1, LONGEST_WAIT + 1):
        body["waitSeconds"] = 0


def _excluded(answer: Any) -> list[Any]:
    """An event stream has no schema that a description of this version could give."""
    is_stream = any("text/event-stream" in each for each in answer.headers.get("content-type", ()))
    return [checks.response_schema_conformance] if is_stream else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=3_600.0, help="stop after so long")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="rw-") as folder, running(Path(folder)) as server:
        server.furnish()
        found = fuzz(server, arguments.count, arguments.seconds)
        _tell(found)
    return 1 if found.wrong else 0


def _tell(found: Found) -> None:
    print(f"{found.requests:,} requests to {len(found.operations)} operations: {dict(sorted(found.statuses.items()))}")
    print(f"unanswered within {PATIENCE:g} s: {dict(found.unanswered)}")
    for what, detail in found.wrong.items():
        print(f"\n{what}\n{detail}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

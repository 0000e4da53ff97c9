"""A server under load that a fault befalls, and what its clients and the outside world have to say afterwards.

The server is `ropewalk up` in a process of its own; clients speak HTTP to it and write down every answer.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
from msgspec import Struct

from tests.crash.ledgers import Accepted, Ledger
from tests.store.samples import ROOT

PATIENCE: Final = 60.0
PAUSE: Final = 0.05
NODES: Final = str(ROOT / "tests" / "faults" / "nodes.py")
FORK: Final[dict[str, Any]] = {
    "ropewalk": 1,
    "name": "fork",
    "nodes": [{"id": each, "type": "touch", "with": {"value": 1}} for each in "abcd"],
    "edges": [{"from": start, "to": end} for start, end in ("ab", "ac", "bd", "cd")],
}


class Answer(Struct, frozen=True):
    """One request of a client: when it was sent and answered, and what came back; status 0 where nothing did."""

    sent_at: float
    answered_at: float
    status: int
    execution: str | None = None


class Server:
    """`ropewalk up` on one store, brought up again under the same address when it has ended."""

    def __init__(self, folder: Path, db: str, *options: str, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.db = db
        self._options = options
        # What lies in its folder comes first: an experiment may put something in the place of a module.
        path = f"{folder}:{ROOT}"
        self._environment = {**os.environ, "PYTHONPATH": path, "XDG_RUNTIME_DIR": str(folder), **environment}
        self._process: asyncio.subprocess.Process | None = None
        self.token = ""
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return (self.folder / "up.log").read_text(errors="replace")

    @property
    def exit_code(self) -> int | None:
        """How the process ended; None while it runs."""
        assert self._process is not None
        return self._process.returncode

    async def start(self) -> None:
        """Bring it up, and wait until it serves."""
        command = ["up", "--json", "--db", self.db, "--port", str(self.port), "--nodes", NODES, *self._options]
        with (self.folder / "up.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "ropewalk", *command,
                cwd=self.folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        said = await asyncio.wait_for(self._address(), PATIENCE)
        self.port, self.token = int(said["url"].rpartition(":")[2]), said["token"] or self.token

    async def _address(self) -> dict[str, Any]:
        """What the server says when it serves; what it has to say before that is for the log."""
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            said: dict[str, Any] = json.loads(line)
            if "url" in said:
                return said
        raise RuntimeError(f"the server ended before it served; {self.folder}/up.log says why")

    async def ended(self, seconds: float = PATIENCE) -> int | None:
        """How the process ended, if it does within that time."""
        assert self._process is not None
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)
        return self._process.returncode

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int | None:
        """End the process, by force if it takes too long."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(how)
            if await self.ended(30) is None:
                self._process.kill()
                await self._process.wait()
        return self._process.returncode


class Ground:
    """A server, its clients, and what they were answered."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.answers: list[Answer] = []
        self.ledger = Ledger(server.folder / "clients.jsonl", Accepted)
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20))
        self._clients: list[asyncio.Task[None]] = []
        self._under_way: set[asyncio.Task[Answer]] = set()

    async def save(self, document: dict[str, Any] = FORK, workspace: str = "default") -> str:
        """The id of the workflow, saved and published."""
        path = f"/workflow/definitions?publish=true&workspaceId={workspace}"
        status, answer = await self.ask("POST", path, document)
        assert status in (200, 201), answer
        return str(answer["id"])

    async def add_workspace(self, name: str) -> None:
        status, answer = await self.ask("POST", "/workspaces", {"id": name, "plan": "ENTERPRISE"})
        assert status == 201, answer

    async def end_of(self, execution: str, seconds: float = PATIENCE) -> str:
        """The state it ends in."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            _, found = await self.ask("GET", f"/workflow/executions/{execution}")
            if found["finishedAt"] is not None:
                return str(found["state"])
            await asyncio.sleep(PAUSE)
        raise AssertionError(f"{execution} did not end within {seconds:g} s")

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.server.token}"}
        url = f"{self.server.url}/api/v1{path}"
        async with self._session.request(method, url, json=body, headers=headers) as answer:
            return answer.status, json.loads(await answer.read() or b"null")

    # Load

    def load(self, workflow: str, clients: int = 8) -> None:
        """So many clients start one execution after the other, until `rest`."""
        self._clients += [asyncio.create_task(self._client(workflow)) for _ in range(clients)]

    async def rest(self) -> None:
        """Start nothing more; requests under way are answered."""
        clients, self._clients = self._clients, []
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        await asyncio.gather(*self._under_way)

    async def _client(self, workflow: str) -> None:
        while True:
            start = asyncio.create_task(self._start(workflow))
            self._under_way.add(start)
            start.add_done_callback(self._under_way.discard)
            if (await asyncio.shield(start)).status != 202:
                await asyncio.sleep(PAUSE)

    async def _start(self, workflow: str) -> Answer:
        sent_at = time.monotonic()
        try:
            status, said = await self.ask("POST", "/workflow/executions/start", {"workflowDefinitionId": workflow})
        except (aiohttp.ClientError, TimeoutError, OSError):
            status, said = 0, None
        answer = Answer(sent_at, time.monotonic(), status, said["executionId"] if status == 202 else None)
        if answer.execution is not None:
            self.ledger.write(Accepted(answer.execution, FORK["name"]))
        self.answers.append(answer)
        return answer

    async def serves(self, since: float, seconds: float = PATIENCE) -> float:
        """How long after that moment a start was accepted again."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if any(each.status == 202 and each.sent_at >= since for each in self.answers[-200:]):
                return time.monotonic() - since
            await asyncio.sleep(PAUSE)
        raise AssertionError(f"no start was accepted within {seconds:g} s")

    async def quiet(self, seconds: float = PATIENCE) -> list[str]:
        """Wait until everything has ended; the executions that have not."""
        deadline = time.monotonic() + seconds
        while left := await self._unended():
            if time.monotonic() > deadline:
                return left
            await asyncio.sleep(0.2)
        return []

    async def _unended(self) -> list[str]:
        found: list[str] = []
        for state in ("PENDING", "RUNNING", "PAUSED"):
            status, page = await self.ask("GET", f"/workflow/executions?state={state}&limit=200")
            assert status == 200, page
            found += [each["id"] for each in page["items"]]
        return found

    # What they say

    def forget(self, since: float, until: float) -> int:
        """Take the starts that were accepted between these moments out of the ledger; how many there were.

        The first answer may be to a request from before, and the last may arrive after the later moment.
        """
        answers = (each for each in self.answers if each.sent_at <= until and since <= each.answered_at)
        gone = {each.execution for each in answers} - {None}
        kept = [line for line in self.ledger.read() if line.execution not in gone]
        self.ledger.rewrite(kept)
        return len(gone)

    @property
    def statuses(self) -> Counter[int]:
        return Counter(each.status for each in self.answers)

    def unexpected(self) -> list[str]:
        """Answers that no fault of the store excuses: only 202, 503, or none at all."""
        wrong = {status: count for status, count in self.statuses.items() if status not in (0, 202, 503)}
        return [f"{count} answers of {status}" for status, count in wrong.items()]

    async def close(self) -> None:
        await self.rest()
        await self._session.close()
        await self.server.stop()


@asynccontextmanager
async def ground(
    folder: Path, db: str, *options: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Ground]:
    """A server that serves, without load; it does not outlive the block."""
    folder.mkdir(parents=True, exist_ok=True)
    server = Server(folder, db, *options, environment=environment or {})
    await server.start()
    opened = Ground(server)
    try:
        yield opened
    finally:
        await opened.close()


async def checked(db: str, folder: Path) -> list[str]:
    """What `ropewalk check` finds."""
    command = [sys.executable, "-m", "ropewalk", "check", "--db", db]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "NO_COLOR": "1"}
    )
    said, _ = await asyncio.wait_for(process.communicate(), 300)
    return [] if process.returncode == 0 else [f"ropewalk check: {said.decode(errors='replace')[-2000:]}"]

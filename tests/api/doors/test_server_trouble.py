"""A server loses its database, is killed, or is told to leave while clients start executions: every 202 is kept."""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import httpx2

from tests.api.servers import PATIENCE, UpServer, up
from tests.polling import until
from tests.postgres import PostgresServer
from tests.store.wires import a_line

PAIR = {
    "ropewalk": 1,
    "name": "pair",
    "nodes": [{"id": "a", "type": "noop"}, {"id": "b", "type": "noop"}],
    "edges": [{"from": "a", "to": "b"}],
}
START = "/api/v1/workflow/executions/start"
CLIENTS = 8
BROKEN = "broken"


class Load:
    """Clients that start one execution after the other, and write down what they are told."""

    def __init__(self, url: str, token: str, workflow: str) -> None:
        self.url = url
        self.accepted: list[str] = []
        self.answers: Counter[int | str] = Counter()
        self.without_advice = 0
        self._headers = {"Authorization": f"Bearer {token}"}
        self._body = {"workflowDefinitionId": workflow}
        self._news = asyncio.Event()

    async def client(self) -> None:
        async with httpx2.AsyncClient(headers=self._headers, timeout=PATIENCE) as client:
            while True:
                try:
                    self._note(await client.post(f"{self.url}{START}", json=self._body))
                except httpx2.TransportError:
                    self.answers[BROKEN] += 1
                # A client that was refused does not come back at once.
                await asyncio.sleep(0.005)

    def _note(self, answer: httpx2.Response) -> None:
        self.answers[answer.status_code] += 1
        if answer.status_code == 202:
            self.accepted.append(answer.json()["executionId"])
        elif "retry-after" not in answer.headers:
            self.without_advice += 1
        self._news.set()

    async def more(self, status: int, count: int) -> None:
        """So many more answers of this status have come."""
        goal = self.answers[status] + count
        async with asyncio.timeout(PATIENCE):
            while self.answers[status] < goal:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def under_load(server: UpServer, workflow: str) -> AsyncIterator[Load]:
    assert server.token is not None
    load = Load(server.url, server.token, workflow)
    clients = [asyncio.ensure_future(load.client()) for _ in range(CLIENTS)]
    try:
        yield load
    finally:
        for each in clients:
            each.cancel()
        await asyncio.gather(*clients, return_exceptions=True)


def published(server: UpServer) -> str:
    answer = server.ask("POST", "/workflow/definitions?publish=true", json=PAIR)
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["id"]
    return found


async def states(server: UpServer, token: str | None, executions: list[str]) -> Counter[str]:
    """How the executions stand, as soon as none of them is under way any more."""
    headers = {"Authorization": f"Bearer {token}"}
    found: Counter[str] = Counter()
    async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1", headers=headers, timeout=PATIENCE) as client:
        for execution in executions:
            found[await _ended(client, execution)] += 1
    return found


async def _ended(client: httpx2.AsyncClient, execution: str) -> str:
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await client.get(f"/workflow/executions/{execution}?wait=30s")
            state = str(answer.json().get("state", answer.status_code))
            if state not in ("PENDING", "RUNNING"):
                return state


async def test_a_database_that_goes_away_and_comes_back_breaks_no_promise(
    database: str, postgres: PostgresServer, tmp_path: Path
):
    with up(tmp_path, "--db", database) as server:
        async with under_load(server, published(server)) as load:
            for how in (signal.SIGINT, signal.SIGQUIT):
                await load.more(202, 20)
                postgres.stop(how)
                try:
                    await load.more(503, 5)
                finally:
                    postgres.start()
                await load.more(202, 20)
        ended = await states(server, server.token, load.accepted)

    assert set(load.answers) <= {202, 503}
    assert load.without_advice == 0
    assert ended == Counter({"SUCCESS": len(load.accepted)})


async def test_a_server_that_is_killed_keeps_every_promise_when_it_is_back(tmp_path: Path):
    with up(tmp_path) as server:
        port, token, workflow = str(server.port), server.token, published(server)
        async with under_load(server, workflow) as load:
            await load.more(202, 50)
            server.kill()
            with up(tmp_path, "--port", port) as again:
                await load.more(202, 20)
                again.kill()
            with up(tmp_path, "--port", port) as last:
                await load.more(202, 20)
                ended = await states(last, token, list(load.accepted))

    assert set(load.answers) <= {202, BROKEN}
    assert ended == Counter({"SUCCESS": sum(ended.values())})
    assert sum(ended.values()) >= 90


async def test_a_client_in_the_middle_of_a_request_is_answered_when_the_server_leaves(tmp_path: Path):
    with up(tmp_path) as server:
        body = json.dumps({"workflowDefinitionId": published(server)}).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(_head(server, len(body)) + body[:5])
        # Another request that is answered after this one has been seen.
        server.ask("GET", "/workflow/executions")
        server.process.send_signal(signal.SIGTERM)
        await _refused(server.port)
        writer.write(body[5:])
        said = await asyncio.wait_for(reader.read(), PATIENCE)
        code = server.process.wait(PATIENCE)
        writer.close()
    execution = json.loads(said.partition(b"\r\n\r\n")[2])["executionId"]
    with up(tmp_path) as again:
        ended = await states(again, server.token, [execution])

    assert said.startswith(b"HTTP/1.1 202 ")
    assert code == 0
    assert ended == Counter({"SUCCESS": 1})


def _head(server: UpServer, size: int) -> bytes:
    lines = (
        f"POST {START} HTTP/1.1",
        "host: x",
        f"authorization: Bearer {server.token}",
        "content-type: application/json",
        f"content-length: {size}",
    )
    return "\r\n".join([*lines, "", ""]).encode()


async def _refused(port: int) -> None:
    """The server takes no connections any more."""

    async def is_refused() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return True
        writer.close()
        return False

    await until(is_refused, "the server refuses connections")


async def test_cut_connections_are_told_in_lines_and_never_as_tracebacks(database: str, tmp_path: Path):
    with ExitStack() as stack:
        async with a_line(database) as (line, url):
            # In a thread: the line is carried by this loop.
            server = await asyncio.to_thread(stack.enter_context, up(tmp_path, "--db", url))
            workflow = await asyncio.to_thread(published, server)
            async with under_load(server, workflow) as load:
                for pause in range(40):
                    await load.more(202, 2)
                    line.cut()
                    # Also those that are just being made.
                    for _ in range(5 * pause):
                        await asyncio.sleep(0)
                    line.cut()
                await load.more(202, 5)
            ended = await asyncio.to_thread(server.terminate)
            said = server.rest()
    raw = (tmp_path / "up.log").read_text()

    assert ended == 0
    assert raw == ""
    assert [line for line in said.splitlines() if "message" not in json.loads(line)] == []

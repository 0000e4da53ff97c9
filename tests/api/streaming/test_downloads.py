"""Large values are sent from where they lie, as fast as they are read, and no caller has too many under way."""

import asyncio
import json
import re
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from ropewalk.api.shapes.problems import Refused
from ropewalk.api.streaming import downloads
from ropewalk.api.streaming.downloads import PARTS, PER_CALLER, Downloads
from ropewalk.store.blobs import CHUNK
from tests.api.servers import UpServer, up

MIB = 2**20
SIZE = 10 * MIB
CROWD = 40
MOST = PER_CALLER // (PARTS * CHUNK)
MAKER = f"""
import ropewalk

@ropewalk.node
def make() -> str:
    return "x" * {SIZE}
"""
DOCUMENT = {
    "ropewalk": 1,
    "name": "large",
    "nodes": [{"id": "make", "type": "make"}],
    "output": "{{ nodes.make.output }}",
}


def memory_of(process: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found
    return int(found[1]) * 1024


def made(server: UpServer) -> str:
    workflow = server.ask("POST", "/workflow/definitions?publish=true", json=DOCUMENT).json()["id"]
    started = server.ask("POST", "/workflow/executions/start", json={"workflowDefinitionId": workflow}).json()
    execution: str = started["executionId"]
    while server.ask("GET", f"/workflow/executions/{execution}").json()["state"] != "SUCCESS":
        pass
    return execution


async def ask_and_do_not_read(server: UpServer, execution: str, stack: AsyncExitStack) -> asyncio.StreamReader:
    # A small window, so that the system takes little off the server's hands.
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
    path = f"/api/v1/workflow/executions/{execution}/output"
    head = (f"GET {path} HTTP/1.1", "host: x", f"authorization: Bearer {server.token}", "\r\n")
    writer.write("\r\n".join(head).encode())
    stack.push_async_callback(_hang_up, writer)
    await writer.drain()
    return reader


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()


async def test_answers_that_are_not_read_take_little_memory(tmp_path: Path):
    (tmp_path / "maker.py").write_text(MAKER)
    async with AsyncExitStack() as stack:
        server = stack.enter_context(up(tmp_path, "--nodes", "maker.py"))
        execution = await asyncio.to_thread(made, server)
        whole = await asyncio.to_thread(server.ask, "GET", f"/workflow/executions/{execution}/output")
        before = memory_of(server.process.pid)
        crowd = [await ask_and_do_not_read(server, execution, stack) for _ in range(CROWD)]
        lines = [await crowd[number].readline() for number in range(MOST)]
        health = await asyncio.to_thread(server.ask, "GET", f"/workflow/executions/{execution}")
        grown = memory_of(server.process.pid) - before

    assert len(whole.content) == SIZE + 2
    assert json.loads(whole.content) == "x" * SIZE
    assert lines == [b"HTTP/1.1 200 OK\r\n"] * MOST
    assert health.status_code == 200
    assert grown < CROWD * SIZE / 4, f"{grown / MIB:.0f} MiB"


async def test_a_caller_that_does_not_read_waits_for_the_next_and_is_told_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(downloads, "PATIENCE", 0.05)
    under_way, done = Downloads(), asyncio.Event()

    async def never_read() -> None:
        async with under_way.reserve("ann"):
            await done.wait()

    tasks = [asyncio.create_task(never_read()) for _ in range(MOST)]
    await asyncio.sleep(0)
    with pytest.raises(Refused) as refused:
        async with under_way.reserve("ann"):
            pass
    async with under_way.reserve("bob"):
        done.set()
    await asyncio.gather(*tasks)
    async with under_way.reserve("ann"):
        pass

    assert refused.value.status_code == 429
    assert refused.value.headers == {"Retry-After": "5"}

"""Host names that no name server answers: they keep only the nodes waiting that ask for them."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from tests.faults.figures import Figure, Outcome
from tests.faults.ground import Ground, checked, ground

SILENT: Final = 40
RESOLVER: Final = """
import socket, time
known = socket.getaddrinfo

def getaddrinfo(host, *arguments, **more):
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name.endswith(".silent"):
        time.sleep(600)
    return known("127.0.0.1" if name.endswith(".fine") else host, *arguments, **more)

socket.getaddrinfo = getaddrinfo
"""
"""What the server's process has in place of its resolver."""
LEAVES_WITHIN: Final = 20.0
BAR: Final = 2.0
"""Beside silent names, one request in a hundred to a name that is answered may take so long (s)."""


def calling(name: str, urls: list[str]) -> dict[str, Any]:
    """A workflow whose nodes call these addresses, each once."""
    nodes = [
        {"id": f"n{at}", "type": "http.request", "with": {"url": url}, "retry": {"maxAttempts": 1}, "timeout": "30s"}
        for at, url in enumerate(urls)
    ]
    return {"ropewalk": 1, "name": name, "nodes": nodes}


async def silent_names(folder: Path, calls: int) -> Outcome:
    """So many calls to a name that is answered, beside forty lookups that are not; then SIGTERM."""
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text(RESOLVER, encoding="utf-8")
    environment = {"ROPEWALK_ALLOW_HOSTS": "127.0.0.1,a.fine", "ROPEWALK_DRAIN": "1"}
    database = str(folder / "ropewalk.db")
    async with _counterpart() as port, ground(folder, database, environment=environment) as field:
        await field.add_workspace("other")
        silent = calling("silent", [f"http://n{each}.silent/" for each in range(SILENT)])
        await _started(field, await field.save(silent, "other"), "other")
        taken = await _called(field, calling("fine", [f"http://a.fine:{port}/"]), calls)
        began = time.monotonic()
        code = await field.server.stop()
        left = time.monotonic() - began
    violations = [] if code == 0 else [f"the server left with code {code} after {left:.0f} s"]
    violations += [f"{each} of the calls to a name that is answered failed" for each in [taken.count(None)] if each]
    violations += await checked(database, folder)
    times = sorted(each for each in taken if each is not None)
    p99 = times[min(len(times) - 1, round(0.99 * len(times)))] if times else 0.0
    late = [f"one call in a hundred took {p99:.1f} s"] if p99 > BAR else []
    late += [f"the server took {left:.0f} s to leave"] if left > LEAVES_WITHIN else []
    figures = [
        Figure("call_p99", round(p99, 3), "s", len(times)),
        Figure("left_after", round(left, 2), "s", 1),
    ]
    return Outcome("names", figures, violations, late)


async def _started(field: Ground, workflow: str, workspace: str = "default") -> str:
    path = f"/workflow/executions/start?workspaceId={workspace}"
    status, said = await field.ask("POST", path, {"workflowDefinitionId": workflow})
    assert status == 202, said
    return str(said["executionId"])


async def _called(field: Ground, document: dict[str, Any], calls: int) -> list[float | None]:
    """How long each execution took, one after the other; None for one that failed."""
    taken: list[float | None] = []
    workflow = await field.save(document)
    for _ in range(calls):
        began = time.monotonic()
        execution = await _started(field, workflow)
        state = await field.end_of(execution)
        taken.append(time.monotonic() - began if state == "SUCCESS" else None)
    return taken


@asynccontextmanager
async def _counterpart() -> AsyncIterator[int]:
    """A server that answers; its port."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"ok": True})

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
        await asyncio.sleep(0)

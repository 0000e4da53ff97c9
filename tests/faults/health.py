"""How long `/healthz` takes beside a worst document: a server in one process, who asks it in another.

`python -m tests.faults.health [SECONDS] [NAME…]` prints p50, p99 and the longest of each document, in milliseconds.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import httpx2
from msgspec import Struct

from tests.api.servers import UpServer, up
from tests.faults.worst import WORST, Ask, Worst

EVERY = 0.02
PATIENCE = 60.0
SECONDS = 5.0


class Health(Struct, frozen=True):
    """What asking again and again has taken (ms), and what the document's own requests were answered."""

    count: int
    p50: float
    p99: float
    longest: float
    statuses: dict[str, int]


def measured(folder: Path, worst: Worst, seconds: float = SECONDS) -> Health:
    """Save the document, make its requests all at once, and ask for the server's health for so long."""
    with up(folder) as server:
        saved = server.ask("POST", "/workflow/definitions?publish=true", json=worst.document)
        if saved.status_code != 201:
            raise AssertionError(f"{worst.name} cannot be saved: {saved.text[:500]}")
        with _asking(server.url, seconds) as probe:
            statuses = asyncio.run(_asked(server, worst.asks, saved.json()["id"], seconds))
            said, _ = probe.communicate(timeout=seconds + PATIENCE)
    taken = sorted(json.loads(said))
    p99 = taken[min(len(taken) - 1, round(0.99 * len(taken)))]
    return Health(len(taken), statistics.median(taken), p99, taken[-1], statuses)


@contextmanager
def _asking(url: str, seconds: float) -> Iterator["Popen[str]"]:
    """A process of its own that asks for the health of a server; it has begun."""
    command = [sys.executable, "-m", "tests.faults.health", "--probe", url, str(seconds)]
    with Popen(command, stdout=PIPE, text=True) as probe:
        assert probe.stdout is not None
        probe.stdout.readline()
        try:
            yield probe
        finally:
            probe.kill()


def probe(url: str, seconds: float) -> list[float]:
    """How long each answer took (ms)."""
    taken = []
    with httpx2.Client(base_url=url, timeout=PATIENCE) as client:
        client.get("/healthz")
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        end = time.monotonic() + seconds
        while (began := time.monotonic()) < end:
            client.get("/healthz").raise_for_status()
            taken.append(1000 * (time.monotonic() - began))
            time.sleep(EVERY)
    return taken


async def _asked(server: UpServer, asks: tuple[Ask, ...], workflow: str, seconds: float) -> dict[str, int]:
    """Make the requests, one kind after the other, those of a kind at once; what was not answered in time is left."""
    statuses: dict[str, int] = {}
    headers = {"Authorization": f"Bearer {server.token}"}
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(base_url=f"{server.url}/api/v1", headers=headers, timeout=PATIENCE,
                                  limits=limits) as client:  # fmt: skip
        for ask in asks:
            body = json.loads(json.dumps(ask.body).replace("{id}", workflow))
            waiting = [asyncio.ensure_future(client.request(ask.method, ask.path, json=body)) for _ in range(ask.times)]
            done, left = await asyncio.wait(waiting, timeout=seconds)
            for each in left:
                each.cancel()
            for each in done:
                status = str(each.result().status_code)
                statuses[status] = statuses.get(status, 0) + 1
    return statuses


def main(arguments: list[str]) -> None:
    seconds = float(arguments[0]) if arguments else SECONDS
    for worst in WORST:
        if arguments[1:] and not any(name in worst.name for name in arguments[1:]):
            continue
        with tempfile.TemporaryDirectory() as folder:
            _show(worst, measured(Path(folder), worst, seconds))


def _show(worst: Worst, health: Health) -> None:
    row: dict[str, Any] = {"p50": health.p50, "p99": health.p99, "max": health.longest}
    figures = "  ".join(f"{name} {value:7.1f}" for name, value in row.items())
    sys.stdout.write(f"{worst.name:40}  {figures}  n {health.count:4}  {health.statuses}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--probe"]:
        sys.stdout.write(json.dumps(probe(sys.argv[2], float(sys.argv[3]))))
    else:
        main(sys.argv[1:])

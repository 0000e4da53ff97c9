"""Webhooks under kill -9: a sender that never gives up, a server that is killed, and what must hold afterwards.

Every good delivery id starts exactly one execution, a bad signature starts none, and the sender hears nothing but
2xx, 4xx, 503 or a broken connection.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import random
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import aiohttp
from msgspec import Struct, field

SECRET: Final = "a key of the sender"
PATIENCE: Final = 120.0
AT_ONCE: Final = 32
HOOK: Final = {
    "ropewalk": 1,
    "name": "orders",
    "nodes": [{"id": "a", "type": "noop"}],
    "triggers": [{"webhook": "orders", "credential": "sender"}],
}


class Seen(Struct):
    """What the sender heard."""

    statuses: Counter[int] = field(default_factory=Counter)
    broken: int = 0
    accepted: dict[str, set[str]] = field(default_factory=dict)


class Server:
    """`ropewalk up` on one file and one port, killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port: int = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = ""
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        arguments = ("-m", "ropewalk", "up", "--port", str(self.port), "--json", "--db", "hooks.db")
        with (self._folder / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, *arguments, cwd=self._folder, stdout=asyncio.subprocess.PIPE, stderr=log,
                env={**os.environ, "XDG_RUNTIME_DIR": str(self._folder)},
            )  # fmt: skip
        assert self._process.stdout is not None
        said = json.loads(await asyncio.wait_for(self._process.stdout.readline(), PATIENCE))
        self.token = said.get("token") or self.token

    async def stop(self, how: int = signal.SIGKILL) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        await asyncio.wait_for(self._process.wait(), PATIENCE)

    async def ask(self, session: aiohttp.ClientSession, method: str, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with session.request(method, f"{self.url}/api/v1{path}", headers=headers, **more) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()


async def campaign(folder: Path, count: int, kills: int, seed: int = 1) -> list[str]:
    """Everything that was broken; nothing, if all held."""
    chance, server, seen = random.Random(seed), Server(folder), Seen()
    await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            path = await _hook(server, session)
            work = _work(count, chance)
            sending = asyncio.create_task(_send_all(server, session, path, work, seen))
            for _ in range(kills):
                await _until(lambda: sum(seen.statuses.values()) > count * chance.uniform(0.1, 0.3), sending)
                await server.stop()
                await server.start()
            await asyncio.wait_for(sending, PATIENCE)
            found = await _executions(server, session)
    finally:
        await server.stop(signal.SIGTERM)
    return _judged(work, seen, found)


async def _hook(server: Server, session: aiohttp.ClientSession) -> str:
    credential = {"name": "sender", "type": "webhook", "values": {"key": SECRET}}
    await server.ask(session, "POST", "/credentials", json=credential)
    await server.ask(session, "POST", "/workflow/definitions?publish=true", json=HOOK)
    return str((await server.ask(session, "GET", "/triggers/orders"))["path"])


def _work(count: int, chance: random.Random) -> list[tuple[str, bool]]:
    """Ids of deliveries and whether they are signed well: a fifth comes twice, one in twenty is forged."""
    once = [(f"d{number}", chance.random() >= 0.05) for number in range(int(count / 1.2))]
    work = once + chance.choices(once, k=count - len(once))
    chance.shuffle(work)
    return work


async def _send_all(server: Server, session: aiohttp.ClientSession, path: str, work: list[tuple[str, bool]],
                    seen: Seen) -> None:  # fmt: skip
    room = asyncio.Semaphore(AT_ONCE)

    async def send(delivery: str, is_good: bool) -> None:
        async with room:
            await _send(server, session, path, delivery, is_good, seen)

    await asyncio.gather(*[send(*each) for each in work])


async def _send(server: Server, session: aiohttp.ClientSession, path: str, delivery: str, is_good: bool, seen: Seen
                ) -> None:  # fmt: skip
    """One delivery, sent again until the server has said what becomes of it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        body = json.dumps({"delivery": delivery}).encode()
        try:
            signed = _signed(delivery, body, SECRET if is_good else "another key")
            async with session.post(f"{server.url}{path}", data=body, headers=signed) as answer:
                seen.statuses[answer.status] += 1
                told = await answer.json()
        except (aiohttp.ClientError, OSError):
            seen.broken += 1
            await asyncio.sleep(0.05)
            continue
        if answer.status == 202:
            seen.accepted.setdefault(delivery, set()).add(told["executionId"])
        if answer.status != 503:
            return
        await asyncio.sleep(0.05)


def _signed(delivery: str, body: bytes, key: str) -> dict[str, str]:
    at = str(int(time.time()))
    made = hmac.new(key.encode(), f"{delivery}.{at}.".encode() + body, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json", "webhook-id": delivery, "webhook-timestamp": at,
        "webhook-signature": f"v1,{base64.b64encode(made).decode()}",
    }  # fmt: skip


async def _until(is_so: Any, sending: asyncio.Task[None]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so() and not sending.done() and time.monotonic() < end:
        await asyncio.sleep(0.005)


async def _executions(server: Server, session: aiohttp.ClientSession) -> dict[str, str]:
    """Every execution, and the delivery that started it."""
    found: dict[str, str] = {}
    cursor: str | None = None
    while True:
        params = {"limit": "200", **({} if cursor is None else {"cursor": cursor})}
        page = await server.ask(session, "GET", "/triggers/orders/fires", params=params)
        found |= {each["executionId"]: each["key"] for each in page["items"] if each["executionId"]}
        cursor = page["next"]
        if cursor is None:
            return found


def _judged(work: list[tuple[str, bool]], seen: Seen, found: dict[str, str]) -> list[str]:
    good = {delivery for delivery, is_good in work if is_good}
    started = Counter(found.values())
    broken = [f"status {status} was answered" for status in seen.statuses if not _is_allowed(status)]
    broken += [f"delivery {each} started {started[each]} executions" for each in sorted(good) if started[each] != 1]
    broken += [f"delivery {each} was forged and started one" for each in started if each not in good]
    broken += [
        f"delivery {each} was answered with {len(ids)} ids" for each, ids in seen.accepted.items() if len(ids) > 1
    ]
    lost = [each for each, ids in seen.accepted.items() if not ids <= set(found)]
    return broken + [f"delivery {each} was accepted and lost" for each in lost]


def _is_allowed(status: int) -> bool:
    return 200 <= status < 300 or 400 <= status < 500 or status == 503


async def rates(folder: Path, count: int, rounds: int) -> list[tuple[float, float]]:
    """How many plain starts and how many deliveries are accepted a second, in turns."""
    server, seen = Server(folder), Seen()
    await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            path = await _hook(server, session)

            async def start(_: str) -> None:
                body = {"workflowDefinitionId": "orders", "input": {"delivery": "d"}}
                await server.ask(session, "POST", "/workflow/executions/start", json=body)

            async def deliver(name: str) -> None:
                await _send(server, session, path, name, True, seen)

            await _per_second(deliver, "warm", count // 10)
            return [
                (await _per_second(start, f"s{each}", count), await _per_second(deliver, f"r{each}", count))
                for each in range(rounds)
            ]
    finally:
        await server.stop(signal.SIGTERM)


async def _per_second(call: Callable[[str], Awaitable[None]], name: str, count: int) -> float:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with room:
            await call(f"{name}-{number}")

    began = time.perf_counter()
    await asyncio.gather(*[one(number) for number in range(count)])
    return count / (time.perf_counter() - began)

"""Many readers of one busy execution, and some who do not read at all."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from ropewalk.access.rights import Role
from ropewalk.service.stream_limits import StreamLimits
from ropewalk.service.stream_readers import Reader
from ropewalk.service.streaming import Streams
from tests.api.house import API, House
from tests.api.streaming.test_streams import path, started
from tests.api.streams import PATIENCE, Listener, numbers, served

CROWD = 1_000
KEYS = 10
NODES = 120
QUICK = 0.050


def chain(length: int, **node: Any) -> dict[str, Any]:
    """A wait for the signal `go`, then so many nodes one after the other."""
    names = ["go", *(f"n{place}" for place in range(length))]
    nodes = [{"id": name, **node} for name in names[1:]]
    edges = [{"from": one, "to": other} for one, other in pairwise(names)]
    return {
        "ropewalk": 1,
        "name": "chain",
        "nodes": [{"id": "go", "type": "wait", "with": {"signal": "go"}}, *nodes],
        "edges": edges,
    }


def memory(kind: str = "VmRSS") -> int:
    """What this process has at the moment, or (VmHWM) the most since `forget_peak` (KiB)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:"))


def forget_peak() -> None:
    """The most is what there is now."""
    Path("/proc/self/clear_refs").write_text("5")


async def test_each_of_a_thousand_readers_gets_every_event_once_and_in_order(house: House, record_property: Any):
    execution = await started(house, chain(NODES, type="noop"))
    tokens = [await house.key(Role.OPERATOR) for _ in range(KEYS)]
    before = memory()
    async with served(house) as url, crowd(url, path(execution), CROWD, tokens) as readers:
        there = memory()
        forget_peak()
        await house.service.signal(execution, "go")
        said = json.loads((await readers.communicate())[0])
        most = memory("VmHWM")

    (story,) = said["stories"]
    snapshot, *seen = story["numbers"]
    each, all_events = (there - before) // CROWD, most - there
    report = f"{each} KiB for each of {CROWD} readers, {all_events} KiB at the most for {len(seen)} events"
    record_property("memory", report)
    sys.stdout.write(f"\n{report}\n")
    assert len(seen) > 200
    assert seen == list(range(snapshot + 1, snapshot + len(seen) + 1))
    assert story["heard"] == CROWD
    assert said["reasons"] == {"finished": CROWD}
    # Of what is told, one text is kept for all.
    assert most - there < 64 * 1024


@asynccontextmanager
async def crowd(url: str, path: str, count: int, tokens: list[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """So many readers in a process of their own, all of them there."""
    arguments = ("-m", "tests.api.crowd", url, path, str(count), *tokens)
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_an_event_is_with_the_client_soon_after_it_is_recorded(house: House, record_property: Any):
    execution = await started(house, chain(NODES, type="noop"))
    late: list[float] = []
    async with served(house) as url:
        listeners = [await Listener.connect(url, path(execution), house.root) for _ in range(5)]

        async def listen(listener: Listener) -> None:
            async for each in listener.said():
                if each.kind == "message":
                    late.append((house.service.store.now() - microseconds(each.data["at"])) / 1e6)

        reading = asyncio.gather(*(listen(listener) for listener in listeners))
        await house.service.signal(execution, "go")
        await reading

    late.sort()
    p95 = late[len(late) * 95 // 100]
    record_property("commit to client", f"p50 {late[len(late) // 2] * 1e3:.1f} ms, p95 {p95 * 1e3:.1f} ms")
    sys.stdout.write(f"\ndecided to client: p50 {late[len(late) // 2] * 1e3:.1f} ms, p95 {p95 * 1e3:.1f} ms\n")
    assert len(late) > 5 * 200
    assert p95 < QUICK


def microseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1e6)


async def test_a_reader_that_does_not_read_is_cut_off_and_no_other_is_late(house: House):
    house.app.state.streams = streams = Streams(house.service.engine, StreamLimits(stalled=2.0))
    document = chain(150, type="set", **{"with": {"values": {"text": "{{ input }}"}}})
    workflow = await house.save(document)
    version = await house.service.engine.versions.version(workflow, 1)
    execution = await house.service.start(version, "x" * 30_000)
    async with served(house) as url:
        deaf = await _deaf(url, execution, house.root)
        listener = await Listener.connect(url, path(execution), house.root)
        await listener.take(1)
        reading = asyncio.ensure_future(listener.everything())

        await house.service.signal(execution, "go")
        said = await reading
        was_there = len(streams)
        async with asyncio.timeout(PATIENCE):
            await streams.emptied()
        deaf.close()

    assert said[-1].data["reason"] == "finished"
    assert numbers(said) == list(range(numbers(said)[0], numbers(said)[0] + len(said) - 1))
    assert was_there
    assert streams.ended == {"finished": 1, "slow": 1}


async def test_a_reader_that_was_up_to_date_survives_a_burst_larger_than_what_is_kept(house: House):
    house.app.state.streams = streams = Streams(house.service.engine, StreamLimits(kept=3))
    burst = chain(1, type="noop", forEach="{{ input }}", concurrency=200)
    workflow = await house.save(burst)
    version = await house.service.engine.versions.version(workflow, 1)
    execution = await house.service.start(version, list(range(200)))
    async with served(house) as url:
        listeners = [
            await Listener.connect(url, path(execution), house.root),
            await Listener.connect(url, f"{path(execution)}?after=0", house.root),
        ]
        reading = asyncio.gather(*(listener.everything() for listener in listeners))

        await house.service.signal(execution, "go")
        (snapshot, *live), earlier = await reading

    count = numbers(earlier)[-1]
    assert count > 200
    assert numbers(earlier) == list(range(1, count + 1))
    assert numbers(live) == list(range(snapshot.data["seq"] + 1, count + 1))
    assert streams.ended == {"finished": 2}


async def _deaf(url: str, execution: str, token: str) -> socket.socket:
    """A client that asks for a stream and never reads it."""
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    deaf.setblocking(False)
    loop = asyncio.get_running_loop()
    host, _, port = url.removeprefix("http://").partition(":")
    await loop.sock_connect(deaf, (host, int(port)))
    request = f"GET {API}{path(execution)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    await loop.sock_sendall(deaf, request.encode())
    return deaf


async def test_a_fault_in_asking_of_one_lets_no_other_read_on(house: House):
    async def broken() -> bool:
        raise RuntimeError("a fault of ours")

    execution, token = await started(house), await house.key(Role.VIEWER)
    async with served(house) as url:
        house.app.state.streams = streams = Streams(house.service.engine)
        async with streams.channel(*streams.of_workspace("default")) as channel:
            guard = streams.guard("first", broken, payloads=False)
            async with streams.reader(Reader(channel, guard, None, ""), guard, "user:ann"):
                listener = await Listener.connect(url, path(execution), token)
                await listener.take(1)

                await house.ask("DELETE", f"/keys/{token.split('_')[1]}")
                said = await listener.everything()

    assert [each.data["reason"] for each in said] == ["revoked"]

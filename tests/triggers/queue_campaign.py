"""Messages of a stream, some of them published twice, while `ropewalk up` is killed: one execution each, none lost."""

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct
from nats.js import JetStreamContext
from nats.js.api import ConsumerInfo
from nats.js.errors import NotFoundError

from ropewalk.service import reading
from ropewalk.store import executions, triggers
from ropewalk.wiring import Settings, open_service
from tests.nats import NatsServer, publish_anew
from tests.polling import until
from tests.postgres import _die_with_parent

PATIENCE = 60.0
REPEATED = 10
"""Every so many messages one is published again under the same id."""
DOCUMENT = {
    "ropewalk": 1, "name": "orders", "nodes": [{"id": "a", "type": "noop"}],
    "triggers": [{"queue": "ORDERS", "credential": "nats", "ackWait": "1s"}],
}  # fmt: skip


class Counted(Struct):
    """What came of a campaign; `wrong` are the messages that started none, or more than one, and how many."""

    published: int
    deliveries: int
    kills: int
    wrong: dict[int, int]


async def campaign(folder: Path, messages: int, kills: int, *, is_broker_killed: bool = False) -> Counted:
    """Publish, kill the server that consumes at even distances, and count what was started."""
    broker = NatsServer(folder)
    with ExitStack() as stack:
        stack.callback(broker.kill)
        settings = Settings(db=str(folder / "ropewalk.db"), allow_hosts=("127.0.0.1",))
        consumer = await _declare(settings, broker.url)
        async with broker.stream() as stream:
            published = await _publish(stream, messages)
        server = stack.enter_context(_Server(folder))
        for kill in range(1, kills + 1):
            async with broker.stream() as stream:
                await _until(stream, consumer, published * kill // (kills + 1))
            server.kill()
            if is_broker_killed and kill == 1:
                broker.kill()
                broker.start()
            server.start()
        async with broker.stream() as stream:
            deliveries = await _until(stream, consumer, None)
        server.stop()
        return Counted(published, deliveries, kills, await _wrong(settings, messages))


class _Server:
    """`ropewalk up` on the file in the folder."""

    def __init__(self, folder: Path) -> None:
        self._command = [sys.executable, "-m", "ropewalk", "up", "--port", "0", "--db", str(folder / "ropewalk.db")]
        self._folder = folder
        self.start()

    def start(self) -> None:
        with (self._folder / "up.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, stdout=log, stderr=log, preexec_fn=_die_with_parent,
                env=os.environ | {"ROPEWALK_ALLOW_HOSTS": "127.0.0.1"},
            )  # fmt: skip

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE)

    def __enter__(self) -> "_Server":
        return self

    def __exit__(self, *about: object) -> None:
        self.kill()


async def _declare(settings: Settings, url: str) -> str:
    """The workflow with its trigger; the name of the consumer."""
    async with open_service(settings) as service:
        await service.credentials.create("nats", "nats", {"url": url}, [], "me")
        await service.save(DOCUMENT)
        (trigger,) = await triggers.listed(service.store, "default")
    return f"ropewalk-{trigger.id}"


async def _publish(stream: JetStreamContext, messages: int) -> int:
    """Every message has its id; some come again after the time in which the stream knows it. How many there are."""
    await stream.add_stream(name="ORDERS", subjects=["orders"], duplicate_window=0.1)
    again = range(0, messages, REPEATED)
    for n in (*range(messages), *again):
        await publish_anew(stream, "orders", str(n).encode(), f"order-{n}")
    return messages + len(again)


async def _until(stream: JetStreamContext, consumer: str, delivered: int | None) -> int:
    """Waits until so many were delivered, or all are done with; how many deliveries there were."""

    async def count() -> int:
        found = await _info(stream, consumer)
        if found is None or found.delivered is None:
            return 0
        is_done = found.num_pending == 0 and found.num_ack_pending == 0
        is_reached = is_done if delivered is None else found.delivered.consumer_seq >= delivered
        return found.delivered.consumer_seq if is_reached else 0

    reached: int = await until(count, "the messages are delivered")
    return reached


async def _info(stream: JetStreamContext, consumer: str) -> ConsumerInfo | None:
    try:
        found: ConsumerInfo = await stream.consumer_info("ORDERS", consumer)
    except NotFoundError:
        return None
    return found


async def _wrong(settings: Settings, messages: int) -> dict[int, int]:
    async with open_service(settings) as service:
        found = await reading.list_executions(service.store, "default", executions.ANY, limit=10 * messages)
        stories = [await reading.recorded(service.store, each["id"]) for each in found]
    counts = Counter(story.accepted.input for story in stories)
    return {n: counts[n] for n in {*range(messages), *counts} if counts[n] != 1 or n not in range(messages)}

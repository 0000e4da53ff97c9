"""Hints between workers: NOTIFY after a commit, never inside it, one at a time, on a connection of its own.

A hint may be lost, doubled or late, so nothing may rely on one: looking for oneself now and then is the truth.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from ropewalk.store.access import CONNECTED
from ropewalk.store.postgres.connection import CHANGING, Address, Connection, closed
from ropewalk.store.postgres.faults import DRIVER_ERRORS

ANY: Final = "*"
_LONGEST: Final = 7_000
_MOST: Final = 20
"""So many notifications are sent together at most."""
_NOTIFY: Final = "select pg_notify($1, payload) from unnest(cast($2 as text[])) as payload"
_HINTING: Final = {**CHANGING, "synchronous_commit": "off"}
"""A hint may be lost: no caller waits for the disk."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0


class Notices:
    """Sends the topics that were hinted at, and hears those of others."""

    def __init__(self, address: Address, worker: str, hear: Callable[[list[str]], None]) -> None:
        self._address = address
        self._worker = worker
        self._hear = hear
        self._topics: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.sent = 0

    def open(self) -> None:
        """Connects in the background, and again whenever the connection is lost."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def hint(self, topic: str) -> None:
        """The topic goes out with the next notification."""
        self._topics[topic] = None
        self._wake.set()

    async def close(self) -> None:
        """Ends the sending and the hearing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            with suppress(*DRIVER_ERRORS):  # only hints: a worker that missed one polls
                connection = await self._address.connect(_HINTING, f"ropewalk {self._worker} notices")
                pause = _FIRST_PAUSE
                try:
                    await self._serve(connection)
                finally:
                    await closed(connection)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _serve(self, connection: Connection) -> None:
        channel = f"ropewalk_{await connection.fetchval('select current_schema()')}"[:63]
        connection.add_termination_listener(lambda _: self._wake.set())
        await connection.add_listener(channel, lambda *heard: self._hear(heard[3].split("\n")))
        # Stands for all hints that were given while this worker did not listen.
        self._hear([ANY, CONNECTED])
        while not connection.is_closed():
            if self._topics:
                await self._send(connection, channel)
            await self._wake.wait()
            self._wake.clear()

    async def _send(self, connection: Connection, channel: str) -> None:
        topics, self._topics = self._topics, {}
        await connection.execute(_NOTIFY, channel, payloads(topics))
        self.sent += 1


def payloads(topics: Iterable[str]) -> list[str]:
    """The topics in as few notifications as hold them; a flood of them is one that stands for any topic."""
    found: list[list[str]] = [[]]
    size = 0
    for topic in topics:
        length = len(topic.encode()) + 1
        if size + length > _LONGEST and found[-1]:
            found.append([])
            size = 0
        found[-1].append(topic)
        size += length
    is_flood = len(found) > _MOST or any(len(part) == 1 and len(part[0].encode()) > _LONGEST for part in found)
    return [ANY] if is_flood else ["\n".join(part) for part in found]

"""Hints between workers: NOTIFY after a commit, never inside it, one at a time, on a connection of its own.

A hint may be lost, doubled or late, so nothing may rely on one: looking for oneself now and then is the truth.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ropewalk.store.access import CONNECTED
from ropewalk.store.postgres.connection import CHANGING, Address, Connection, closed
from ropewalk.store.postgres.faults import DRIVER_ERRORS

ANY: Final = "*"
_LONGEST: Final = 7_000
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
            with suppress(*DRIVER_ERRORS):  # only hints: whoever missed one looks for itself
                connection = await self._address.connect(CHANGING, f"ropewalk {self._worker} notices")
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
        # Whatever was hinted at while nobody listened.
        self._hear([ANY, CONNECTED])
        while not connection.is_closed():
            if self._topics:
                await self._send(connection, channel)
            await self._wake.wait()
            self._wake.clear()

    async def _send(self, connection: Connection, channel: str) -> None:
        topics, self._topics = self._topics, {}
        payload = "\n".join(topics)
        if len(payload.encode()) > _LONGEST:
            payload = ANY
        await connection.execute("select pg_notify($1, $2)", channel, payload)
        self.sent += 1

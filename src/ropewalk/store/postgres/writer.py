"""Group commits on a connection of their own: one statement, one round trip, written once even if the answer is lost.

Every commit leaves its number in the worker's row, under the condition that the number before is still there. So when a
connection dies in mid-commit, the row tells whether the commit was carried out; and if the server is still busy with
it, only one of the two can be.

The row has the number of the commit that was sent last, or of one that was not answered before it, or of the last that
was. Any other number proves that the database has gone back in time, and so does a row that is gone or has an older
epoch. What was taken in a transaction, which has no number, the first commit about it expects to find (`EXPECTED`).
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import asyncpg
from msgspec import Struct

from ropewalk.store.access import Batch
from ropewalk.store.bulk import Form, bulk
from ropewalk.store.clock import ticks
from ropewalk.store.errors import StaleWriter, StoreDefect, StoreUnavailable, WentBack
from ropewalk.store.postgres.bulk import Layer, Message, Told, composed, normal_layers, nothing, tell
from ropewalk.store.postgres.connection import WRITING, Address, Connection, bounded, closed, statements, undone
from ropewalk.store.postgres.faults import DRIVER_ERRORS, REPEATABLE, is_lost, translated

PATIENCE_SECONDS: Final = 30.0
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
_MOST_PREPARED: Final = 200
_FENCED: Final = "fence"
_USUAL: Final = (
    ("insert_audit", "insert_execution", "insert_live", "insert_log"),
    ("insert_log", "insert_run"),
    ("insert_log", "insert_run", "delete_live", "set_execution"),
)
"""What a commit is made of when executions begin, go on, and end."""
_LARGEST_COMMIT: Final = 2**20
"""Most commits have no more bytes than this."""
_NEVER: Final = -1
"""The number of no commit."""
_UNWRITABLE: Final = (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError)


class Writer:
    """Writes the batches of one worker, one at a time."""

    def __init__(
        self, address: Address, worker: str, epoch: int, check: Callable[[], None], *, lease: float, patience: float
    ) -> None:
        """`check` raises when there is no point in trying any more."""
        self._address = address
        self._worker = worker
        self._epoch = epoch
        self._patience = patience
        # A commit keeps the heartbeat waiting: it must be over, or undone, well within the lease.
        limits = {"statement_timeout": f"{max(2.0, lease / 2):g}s", "lock_timeout": f"{max(2.0, lease / 3):g}s"}
        self._settings = WRITING | limits
        self._name = f"ropewalk {worker} writer"
        self._connection: Connection | None = None
        self._prepared: dict[tuple[str, tuple[Form, ...]], Any] = {}
        self._types: dict[str, tuple[str, ...]] = {}
        self._number = 0
        self._expected: int | None = None
        # The number of the last commit that was answered.
        self.answered = 0
        self._check = check

    async def open(self) -> None:
        """Connects, and learns the number of the last commit."""
        connection = await self._connected()
        self._number = self._expected = self.answered = await self._last_commit(connection)
        if not self._address.is_pooled:
            await self._rehearse(connection)

    async def _rehearse(self, connection: Connection) -> None:
        """Has the server plan the usual commits, in both their forms, before the first of them is in a hurry.

        Each as the one after a commit that never was: nothing is written.
        """
        for names in _USUAL:
            await self._learn_types(connection, names)
            for forms in tuple((name, ()) for name in names), tuple((name, bulk(name).alike) for name in names):
                statement = await self._prepare(connection, (_FENCED, forms))
                await statement.fetchval(0, self._worker, self._epoch, _NEVER, *nothing(forms, self._types))

    def prepared(self, batch: Batch) -> Batch:
        """The batch as it will be sent, if there is nothing wrong with it; else `write` says what."""
        with suppress(StoreDefect):
            return Message(batch, self._types)
        return batch

    async def write(self, batch: Batch) -> None:
        """Writes the batch, once; durable on return."""
        message = batch if isinstance(batch, Message) else Message(batch, self._types)
        attempt = _Attempt(message.layers, message.told, ticks() + int(self._patience * 1_000_000))
        if not attempt.layers:
            return
        self._number += 1
        while not await self._try(attempt):
            self._check()
            if ticks() >= attempt.until:
                raise StoreUnavailable(f"{self._address.place} did not take a commit in {self._patience:g} s")
            await asyncio.sleep(attempt.pause)
            attempt.pause = min(2 * attempt.pause, _LONGEST_PAUSE)

    async def close(self) -> None:
        """Hangs up."""
        await closed(self._connection)

    async def _try(self, attempt: "_Attempt") -> bool:
        """Whether it is written now; if not, it may be tried again."""
        try:
            connection = await self._connected()
            if self._expected is None:
                self._expected = await self._last_commit(connection)
                self._require_known(self._expected, attempt)
            if self._expected != self._number:
                # Unknown until the answer is here.
                before, self._expected = self._expected, None
                is_done = await self._carry_out(connection, attempt, before)
                self._expected = self._number if is_done else None
                attempt.refused_after = None if is_done else before
            if self._expected == self._number:
                self.answered = self._number
            return self._expected == self._number
        except DRIVER_ERRORS as error:
            await self._judge(error, attempt)
            return False
        except asyncio.CancelledError:
            self._hang_up()
            raise

    async def _judge(self, error: Exception, attempt: "_Attempt") -> None:
        """Returns if trying again may help."""
        if is_lost(error):
            self._hang_up()
        is_over = ticks() >= attempt.until
        if _is_unwritable(error) and not attempt.is_normal:
            attempt.layers, attempt.told, attempt.is_normal = normal_layers(attempt.layers), None, True
        elif is_over or not (is_lost(error) or isinstance(error, REPEATABLE)):
            raise translated(error, self._address.place) from error

    # One commit

    async def _carry_out(self, connection: Connection, attempt: "_Attempt", before: int) -> bool:
        fence = (self._number, self._worker, self._epoch, before)
        told = attempt.told or await self._tell(connection, attempt.layers)
        if len(told) == 1 and not self._address.is_pooled:
            return await self._run(connection, told[0], fence)
        try:
            await connection.execute(self._address.beginning(self._settings, self._name))
            if not await self._run(connection, told[0], fence):
                return False
            for layer in told[1:]:
                await self._run(connection, layer, ())
            await connection.execute("commit")
        finally:
            await undone(connection)
        return True

    async def _tell(self, connection: Connection, layers: list[Layer]) -> list[Told]:
        """What to send, once the types are known."""
        await self._learn_types(connection, [name for layer in layers for name, _ in layer])
        return [tell(layer, self._types) for layer in layers]

    async def _run(self, connection: Connection, told: Told, fence: tuple[int | str, ...]) -> bool:
        forms, arguments = told
        if self._address.is_pooled:
            text = composed(forms, self._types, is_fenced=bool(fence))
            return bool(await connection.fetchval(text, *fence, *arguments) == 1)
        key = (_FENCED if fence else "", forms)
        statement = self._prepared.get(key) or await self._prepare(connection, key)
        return bool(await statement.fetchval(*fence, *arguments) == 1)

    async def _prepare(self, connection: Connection, key: tuple[str, tuple[Form, ...]]) -> Any:
        """What statements of these forms are together; the first says whether there is a fence."""
        if len(self._prepared) >= _MOST_PREPARED:
            self._prepared.clear()
        text = composed(key[1], self._types, is_fenced=key[0] == _FENCED)
        statement = self._prepared[key] = await connection.prepare(text)
        return statement

    async def _learn_types(self, connection: Connection, names: Sequence[str]) -> None:
        for name in names:
            if name not in self._types:
                # Without a name: behind a pooler the server may have one like it from another client.
                plain = await connection.prepare(statements()[name], name="")
                self._types[name] = tuple(parameter.name for parameter in plain.get_parameters())

    # The connection, and whether this worker may still write

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._hang_up()
            self._connection = await self._address.connect(self._settings, self._name)
            _widen(self._connection)
            if not self._address.is_pooled:
                await bounded(self._connection)
        return self._connection

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        self._prepared.clear()
        if connection is not None:
            connection.terminate()

    async def _last_commit(self, connection: Connection) -> int:
        async with self._address.whole(connection, self._settings, self._name):
            row = await connection.fetchrow(statements()["last_commit"], self._worker)
        if (refusal := refused(row, self._worker, self._epoch, self.answered)) is not None:
            raise refusal
        number: int = row[1]
        return number

    def _require_known(self, found: int, attempt: "_Attempt") -> None:
        """Raises if the last commit the database knows is none of those it may be."""
        if found > self._number:
            raise WentBack(f"{GONE_BACK} commit {found} of worker {self._worker} was never sent")
        if found == attempt.refused_after:
            raise WentBack(f"{GONE_BACK} what worker {self._worker} had taken to execute is not its own there")


def _widen(connection: Connection) -> None:
    """Lets a whole commit go out in one go, if the system does: else its end waits for a busy loop to come by again,
    and the server for it. Over TCP the system sees to that by itself, unless it is told otherwise."""
    end = connection._transport.get_extra_info("socket")
    if end is not None and end.family == socket.AF_UNIX:
        # One that is lost already says so when it is written to.
        with suppress(OSError, ValueError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LARGEST_COMMIT)


GONE_BACK: Final = "the database went back in time:"


def refused(row: Sequence[Any] | None, worker: str, epoch: int, answered: int) -> StaleWriter | None:
    """Why a worker may write no more, by what its row says (epoch, last commit); None if it may.

    `answered` is the number of its last commit that was answered.
    """
    if row is None:
        return WentBack(f"{GONE_BACK} it does not know worker {worker}")
    if row[1] < answered:
        known = f"commit {answered} of worker {worker} was answered, and the last it knows of is {row[1]}"
        return WentBack(f"{GONE_BACK} {known}")
    if row[0] < epoch:
        return WentBack(f"{GONE_BACK} worker {worker} has epoch {epoch}, and the database knows epoch {row[0]}")
    return StaleWriter(taken_over(worker)) if row[0] > epoch else None


def taken_over(worker: str) -> str:
    """What to tell a worker that was believed dead."""
    return f"worker {worker} was taken over from; it writes no more"


class _Attempt(Struct):
    layers: list[Layer]
    told: list[Told] | None
    until: int
    pause: float = _FIRST_PAUSE
    is_normal: bool = False
    # The number of the last commit the database knew when it refused this one.
    refused_after: int | None = None


def _is_unwritable(error: Exception) -> bool:
    """Whether a text has what cannot be kept: a NUL, as the server says, or half a pair, as the driver does."""
    return isinstance(error, _UNWRITABLE) or isinstance(error.__cause__, UnicodeEncodeError)

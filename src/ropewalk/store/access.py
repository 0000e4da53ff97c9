"""What every dialect offers the nouns: reading by the name of a statement, and writing inside a transaction."""

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from ropewalk.core.events import Blob

Value: TypeAlias = str | int | bytes | None
Row: TypeAlias = tuple[Any, ...]
Batch: TypeAlias = Sequence[tuple[str, Sequence[Sequence[Value]]]]
"""What one commit writes: the name of each statement and its rows, in the order they are carried out."""


def json_list(names: Iterable[str]) -> str:
    """The JSON list a statement takes that asks for several at once."""
    return msgspec.json.encode(list(names)).decode()


class Reader(Protocol):
    """What can be asked by the name of a statement."""

    async def fetch(self, name: str, *arguments: Value) -> list[Row]:
        """Every row the statement gives."""

    async def fetch_one(self, name: str, *arguments: Value) -> Row | None:
        """The first row the statement gives, if any."""


class Transaction(Reader, Protocol):
    """A reader that also writes; everything it writes becomes true together, or nothing does."""

    @property
    def worker(self) -> str:
        """The worker that owns the transaction and what is taken in it: the store may get another worker meanwhile."""

    async def execute(self, name: str, *arguments: Value) -> int:
        """Carries the statement out; how many rows it touched."""

    async def execute_many(self, name: str, rows: Sequence[Sequence[Value]]) -> None:
        """Carries the statement out once per row."""


class Blobs(Protocol):
    """Where values go that are too large for the log, under their hash."""

    async def put(self, value: bytes | bytearray | memoryview) -> Blob:
        """Keeps the value; durable on return."""

    async def put_stream(self, chunks: AsyncIterable[bytes], most: int) -> Blob:
        """Keeps what comes in parts; durable on return, and nothing of it stays if it does not come whole.

        BlobTooLarge if there are more bytes than `most`.
        """

    def put_here(self, value: bytes | bytearray | memoryview) -> Blob:
        """Keeps the value without a pause; durable at the latest with the store's next write."""

    async def get(self, digest: str) -> bytes:
        """The value under this hash, checked against it."""

    def chunks(self, digest: str) -> AsyncGenerator[bytes, None]:
        """The same a part at a time. The last part comes only if all of them together are what they should be."""

    def sweep(self) -> int:
        """Removes what was never finished; how many there were."""


CONNECTED: Final = "connected"
"""The topic of a hint that the store gives itself: it has a new connection, and perhaps another server."""


class Rewind(Struct, frozen=True):
    """A worker found that the database went back in time: when by the store's time, under which name, and by what."""

    at: int
    worker: str
    why: str


class Store(Reader, Protocol):
    """The store of one worker: what it writes counts only while no other worker has taken over from it."""

    load: int
    """How much the worker has in hand, for those that list the workers; set by the engine."""
    on_lost: Callable[[str], None]
    """Called once, on the loop, when the worker may write no more; says why."""
    on_hint: Callable[[list[str]], None]
    """Called on the loop with the topics that another worker hinted at; ["*"] may be any."""

    @property
    def worker(self) -> str:
        """The id of the worker."""

    @property
    def epoch(self) -> int:
        """The worker's epoch: what it writes is refused once another process has raised it."""

    @property
    def is_shared(self) -> bool:
        """Whether there may be other workers on the same store."""

    @property
    def stale_writes(self) -> int:
        """How many writes were refused because another worker has taken over."""

    @property
    def rewinds(self) -> Sequence[Rewind]:
        """How often this process has found that the database went back in time."""

    @property
    def blobs(self) -> Blobs:
        """Where large values go."""

    @property
    def lease_seconds(self) -> float:
        """How long a worker is silent before it counts as dead."""

    @property
    def path(self) -> str:
        """Where it is: a file, or host and database."""

    def now(self) -> int:
        """Store time (µs), never going back."""

    async def tell_time(self) -> None:
        """From now on `now()` is not before this moment, also compared with another worker's clock."""

    async def scan(self, name: str, *arguments: Value) -> list[Row]:
        """Like `fetch`, for what takes its time."""

    def prepared(self, batch: Batch) -> Batch:
        """The same batch, with as much of the work done as can be before its turn comes."""

    def write(self, batch: Batch) -> Awaitable[None]:
        """Writes the batch as one transaction, durable on return. Cancelling the wait does not undo the commit."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Several statements as one, durable at the end; undone by an exception."""

    def hint(self, topic: str) -> None:
        """Tells the others, soon and perhaps never, that there is something to look at."""

    async def check(self) -> None:
        """Raises what keeps the store from being read or written now, if anything does."""

    async def departed(self) -> list[str]:
        """The workers that are gone for sure, though their leases have not run out."""

    async def rejoin(self) -> None:
        """Comes back as another worker, after `on_lost` or a StaleWriter; StaleWriter if there is no way back."""

    async def close(self) -> None:
        """Gives the store up. Twice is once."""

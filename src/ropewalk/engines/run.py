"""One attempt at a node with everything it needs to know, and what a worker has at hand for every attempt."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from ropewalk.core.breaker import Wait as HeldBack
from ropewalk.core.canonical import content_hash, idempotency_key
from ropewalk.core.errors import ErrorType
from ropewalk.core.events import Blob
from ropewalk.core.waits import RateLimitWait
from ropewalk.engines.files import Room, RunRoom, StoredFiles
from ropewalk.nodes.base import Facilities, Output, Registry
from ropewalk.nodes.files import Files
from ropewalk.nodes.recording import Large


class Run(Struct, eq=False):
    """One attempt, with everything its node needs to know."""

    execution: str
    workspace: str
    node: str
    type: str
    attempt: int
    item: int | None
    inputs: Any
    now: int
    deadline: int
    held_since: int | None
    cache_ttl: int | None
    rate_limit: str | None
    inputs_at: Blob | None
    """Where the inputs lie, if they are too large for the log."""
    is_little: bool
    """Whether the inputs are known to be some MiB at most."""

    def reserved(self) -> RateLimitWait | None:
        """The slots of rate limits that the attempt holds."""
        raise NotImplementedError

    async def keep(self, large: Large, desk: "Desk") -> Blob:
        """Keeps a value that is too large for the log; fails the attempt if its execution has no room for it."""
        return await desk.shelf.keep(large.text)

    def room(self, desk: "Desk") -> Room:
        """What the execution may still store; of one that another worker owns, what this attempt alone may."""
        return RunRoom(desk.most_stored)

    def files(self, desk: "Desk") -> Files | None:
        """Files as this attempt reads and writes them, if the worker has any."""
        files = desk.facilities.files
        return files.bound(self.workspace, self.room(desk)) if isinstance(files, StoredFiles) else files

    def config_hash(self) -> str:
        """What the node is told to do, without its inputs; computed when asked for."""
        raise NotImplementedError

    def bounded_by(self) -> tuple[str, ...]:
        """The actors that bound what its execution reaches."""
        raise NotImplementedError

    def credentials(self) -> str | Mapping[str, str] | None:
        """The names of the credentials that its node may use, as the definition says them."""
        return None

    def inputs_hash(self) -> str:
        return content_hash(self.inputs) if self.inputs_at is None else self.inputs_at.hash

    def round(self) -> int:
        """Which round it is, of a node that is repeated; the first is 0."""
        return 0

    def idempotency_key(self) -> str:
        place = self.round() or self.item
        return idempotency_key(self.workspace, self.execution, self.node, place, self.inputs_hash(), self.config_hash())


class Breakers(Protocol):
    """The shared health of the targets nodes call."""

    async def admit(self, workspace: str, target: str, now: int) -> HeldBack | None: ...
    async def record(self, workspace: str, target: str, outcome: ErrorType | None) -> None: ...


class RateLimits(Protocol):
    """How many calls may begin, across all workers."""

    async def turn(
        self, workspace: str, name: str | None, target: str | None, reserved: RateLimitWait | None
    ) -> int | RateLimitWait | None: ...
    def now(self) -> int: ...


class Shelf(Protocol):
    """Where large and reusable results are kept."""

    async def keep(self, data: bytes) -> Blob: ...
    async def cached(self, workspace: str, key: str) -> Output | None: ...
    def cache(self, workspace: str, key: str, output: Output, ttl: int) -> None: ...


Beside = Callable[[Run, Callable[[], Any]], Awaitable[Any]]
"""Gives what some work for a run gives, which goes through a large value: done beside the loop, when it is its turn."""


class Desk(Struct, frozen=True):
    """What a worker has at hand for every run."""

    types: Registry
    facilities: Facilities
    breakers: Breakers
    limits: RateLimits
    shelf: Shelf
    beside: Beside
    most_stored: int = 2**62
    """How many bytes one execution may store."""

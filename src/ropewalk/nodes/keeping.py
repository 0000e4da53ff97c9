"""What nodes keep by key beyond an execution: the questions they ask; the engine answers them from its store.

A write belongs to the work of one run, which its idempotency key names. An attempt that is repeated, since the worker
died before its result was recorded, gets the answer of the first and writes nothing again.
"""

from typing import Any, Protocol, TypeAlias

from msgspec import Struct

JSON: TypeAlias = Any


class Kept(Struct, frozen=True):
    """A value that is kept; `is_there` is false if there is none, or its time is over."""

    is_there: bool = False
    value: Any = None
    version: int | None = None
    expires_at: int | None = None


class Change(Struct, frozen=True):
    """What came of a change: what is kept now, and whether that was changed."""

    kept: Kept
    is_made: bool


class Condition(Struct, frozen=True):
    """When a value may be changed: always, if there is none, or if it still has this version."""

    version: int | None = None
    is_missing: bool = False

    def holds(self, kept: Kept) -> bool:
        if self.is_missing and kept.is_there:
            return False
        return self.version is None or kept.version == self.version


class KeptValues(Protocol):
    """The values of all workspaces. Every change is durable on return; NodeFailure if the store cannot be reached."""

    async def get(self, workspace: str, key: str) -> Kept: ...

    async def put(self, workspace: str, key: str, value: JSON, ttl: int | None, condition: Condition, work: str
                  ) -> Change: ...  # fmt: skip

    async def remove(self, workspace: str, key: str, condition: Condition, work: str) -> Change: ...

    async def add(self, workspace: str, key: str, amount: float, ttl: int | None, work: str) -> Change: ...

    async def claim(self, workspace: str, space: str, keys: list[str], ttl: int, work: str) -> list[bool]: ...

"""The verbs that tell an execution something: each makes one signal of the core, and `tell` takes it there.

The service tells the engine; the client of the control socket tells the process that owns the store. So a new verb is
one method here, and the socket carries it as it is.
"""

from abc import ABC, abstractmethod
from typing import Final

from msgspec import Struct

from ropewalk.core import signals
from ropewalk.core.canonical import JSON
from ropewalk.core.signals import PersonSignal

OF_LETTER: Final = ""
"""The node of a signal that names a dead letter: the service takes it, and the item, from the letter."""


class Told(Struct, frozen=True):
    """Which execution was told, and whether that changed anything."""

    execution: str
    changed: bool


class SignalVerbs(ABC):
    """What people may tell an execution."""

    @abstractmethod
    async def tell(self, execution: str | None, signal: PersonSignal, by: str) -> Told:
        """Tell an execution; None is the execution of the dead letter that the signal names."""

    async def cancel(self, execution: str, by: str = "local", reason: str | None = None) -> bool:
        return (await self.tell(execution, signals.Cancel(by, reason), by)).changed

    async def pause(self, execution: str, by: str = "local", reason: str | None = None) -> bool:
        return (await self.tell(execution, signals.Pause(by, reason), by)).changed

    async def resume(self, execution: str, by: str = "local") -> bool:
        return (await self.tell(execution, signals.Resume(by), by)).changed

    async def retry(self, execution: str, by: str = "local") -> bool:
        return (await self.tell(execution, signals.Retry(by), by)).changed

    async def signal(self, execution: str, name: str, payload: JSON = None, by: str = "local") -> bool:
        return (await self.tell(execution, signals.Tell(name, payload), by)).changed

    async def decide(self, execution: str, node: str, *, approved: bool, by: str = "local", payload: JSON = None,
                     item: int | None = None) -> bool:  # fmt: skip
        return (await self.tell(execution, signals.Decide(node, approved, by, payload, item), by)).changed

    async def give_up(self, execution: str, node: str, item: int | None = None, by: str = "local",
                      reason: str | None = None) -> bool:  # fmt: skip
        return (await self.tell(execution, signals.GiveUp(node, by, item, reason), by)).changed

    # Dead letters

    async def requeue(self, letter: str, overrides: dict[str, JSON] | None = None, by: str = "local") -> str:
        return (await self.tell(None, signals.Requeue(OF_LETTER, by, overrides=overrides, letter=letter), by)).execution

    async def fix(self, letter: str, output: JSON, by: str = "local", ports: tuple[str, ...] = ()) -> str:
        return (await self.tell(None, signals.Fix(OF_LETTER, by, output, ports, letter=letter), by)).execution

    async def discard(self, letter: str, by: str = "local", notes: str | None = None) -> None:
        await self.tell(None, signals.Discard(letter, by, notes), by)

"""How nodes speak to executions other than their own: what they ask for; the service answers.

What is said is the work of one run, which its idempotency key names. An attempt that is repeated, since the worker died
before its result was recorded, gets the answer of the first and says nothing again.
"""

from typing import Any, Protocol, TypeAlias

from msgspec import Struct

JSON: TypeAlias = Any


class Speaker(Struct, frozen=True):
    """The run that speaks: its execution, the actors that bound what that one reaches, and the key of its work."""

    workspace: str
    execution: str
    work: str
    bounded_by: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """In whose name it speaks, as the audit log has it."""
        return f"execution:{self.execution}"


class Executions(Protocol):
    """The executions of all workspaces. What is said is durable on return; NodeFailure says what cannot be done."""

    async def start(self, speaker: Speaker, workflow: str, input: JSON, version: int | None, priority: int) -> str:  # noqa: A002
        """Starts a workflow and waits for nothing; the id of the execution."""
        ...

    async def emit(self, speaker: Speaker, subject: str, payload: JSON) -> int:
        """Tells every execution that waits for such an event; how many there were."""
        ...

    async def signal(self, speaker: Speaker, execution: str, name: str, payload: JSON) -> bool:
        """Tells an execution something by name; False if it is over, or takes no more."""
        ...

    async def cancel(self, speaker: Speaker, execution: str, reason: str | None) -> bool:
        """Has an execution end as cancelled; False if it is over in another way."""
        ...

    async def pause(self, speaker: Speaker, reason: str) -> None:
        """Has the speaker's own execution pause, unless it is about to end."""

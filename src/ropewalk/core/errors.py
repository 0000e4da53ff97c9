"""Every error Ropewalk raises or records, branched by what one can do about it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import ClassVar

from msgspec import Struct

from ropewalk.core.state import ExecutionState


class Problem(Struct, frozen=True):
    """One thing wrong with a document, and where."""

    path: tuple[str | int, ...]
    message: str

    @property
    def where(self) -> str:
        """The path as people write it: `nodes[2].with.url`."""
        parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path]
        return "".join(parts).removeprefix(".") or "(document)"

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"


class RopewalkError(Exception):
    """Root of everything we raise on purpose."""


class Invalid(RopewalkError):
    """A document breaks its rules; `problems` names every place, not only the first."""

    def __init__(self, problems: Iterable[Problem] | str) -> None:
        self.problems = (Problem((), problems),) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class InvalidDefinition(Invalid):
    """The author of the workflow has something to mend."""


class InvalidInput(Invalid):
    """The caller who starts the execution has something to mend."""


class InvalidTransition(RopewalkError):
    """The request came too late, or too early, for the state things are in."""


class NotFound(RopewalkError):
    """There is no such thing, or it is not yours to see."""


class Conflict(RopewalkError):
    """Another caller got there first."""


class Unauthenticated(RopewalkError):
    """It is not known who asks."""


class Forbidden(RopewalkError):
    """The caller may look, and no more."""


class Unavailable(RopewalkError):
    """Nothing is wrong with the request; try again."""


class Unreadable(RopewalkError):
    """What is stored of an execution is not what was written; the operator of the store has something to restore."""

    remedy: ClassVar[str] = "`ropewalk check` says what is damaged, a backup has it whole"

    def __init__(self, why: str, execution: str | None = None) -> None:
        self.why = why
        super().__init__(why if execution is None else f"execution {execution} cannot be read: {why}; {self.remedy}")


class UnknownVersion(Unreadable):
    """It was written by a newer Ropewalk."""

    remedy = "upgrade this Ropewalk"


class VersionLost(Unreadable):
    """The version of the workflow that an execution follows is gone, or damaged: it cannot go on, only be ended."""

    remedy = "cancel it, or restore the version from a backup; `ropewalk check` says what else is damaged"


@contextmanager
def reading_of(execution: str) -> Iterator[None]:
    """What cannot be read of an execution in here is Unreadable, by its name and with what to do."""
    try:
        yield
    except Unreadable as error:
        raise type(error)(error.why, execution) from error
    except RopewalkError:
        raise
    except Exception as error:
        raise Unreadable(f"{type(error).__name__}: {error}", execution) from error


class ExecutionEnded(RopewalkError):
    """The execution ended without a result; `state` says how, `detail` is the traceback of the node that failed.

    The detail is a note of the exception too, so that Python prints it below.
    """

    def __init__(self, execution: str, state: ExecutionState, error: str | None, detail: str | None = None) -> None:
        self.execution = execution
        self.state = state
        self.detail = detail
        super().__init__(f"execution {execution} ended {state}" + (f": {error}" if error else ""))
        if detail is not None:
            self.add_note(detail)


class ErrorType(StrEnum):
    """Why a run failed, as far as retrying goes."""

    TRANSIENT = "TRANSIENT"
    PERMANENT = "PERMANENT"
    TIMEOUT = "TIMEOUT"
    CIRCUIT_OPEN = "CIRCUIT_OPEN"


class RunError(Struct, frozen=True, omit_defaults=True, gc=False):
    """What a run reports when it fails. `retry_after` (seconds) is the other side's wish.

    `tokens` is what it had used up of a language model's by then, if its node counted them. `detail` is for people: a
    traceback, or the beginning of an answer. `status` and `body` are what a server answered, for expressions.
    """

    type: ErrorType
    message: str
    detail: str | None = None
    retry_after: float | None = None
    tokens: int | None = None
    status: int | None = None
    body: str | None = None


class Unfinished(Exception):
    """Work that was to be brief takes longer; done again without haste, and elsewhere, it comes to its end."""

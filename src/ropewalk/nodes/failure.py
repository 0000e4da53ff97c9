"""How a node type says that it failed, and what an exception that says nothing counts as."""

import sys
import traceback
from collections.abc import Sequence
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeGuard

from ropewalk.core.canonical import writable
from ropewalk.core.errors import ErrorType, RopewalkError, RunError

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

LONGEST_MESSAGE = 1_000
LONGEST_DETAIL = 8_000

_OURS = str(Path(__file__).parent.parent)


class NodeFailure(RopewalkError):
    """A node cannot go on; `error` says whether trying again can help."""

    def __init__(self, error: RunError) -> None:
        self.error = error
        super().__init__(error.message)

    @classmethod
    def transient(cls, message: str, retry_after: float | None = None, detail: str | None = None,
                  tokens: int | None = None) -> Self:  # fmt: skip
        """A failure that may be gone next time, at the earliest in `retry_after` seconds."""
        return cls(_error(ErrorType.TRANSIENT, message, detail, retry_after, tokens))

    @classmethod
    def permanent(cls, message: str, detail: str | None = None, tokens: int | None = None) -> Self:
        """A failure that the same inputs meet again every time."""
        return cls(_error(ErrorType.PERMANENT, message, detail, tokens=tokens))

    @classmethod
    def timeout(cls, message: str) -> Self:
        """Too much time passed."""
        return cls(_error(ErrorType.TIMEOUT, message))


def _error(kind: ErrorType, message: str, detail: str | None = None, retry_after: float | None = None,
           tokens: int | None = None) -> RunError:  # fmt: skip
    return RunError(
        kind, shortened(message, LONGEST_MESSAGE), detail and shortened(detail, LONGEST_DETAIL), retry_after, tokens
    )


def shortened(text: str, longest: int) -> str:
    """The text as every store keeps it, cut where it gets too long."""
    return writable(text if len(text) <= longest else f"{text[: longest - 1]}…")


def failure_of(raised: BaseException) -> RunError:
    """What a run reports for anything its node raised.

    Code that fails without saying how is worth another attempt: most of what goes wrong outside goes by.
    """
    match raised:
        case NodeFailure():
            return raised.error
        case BaseExceptionGroup():
            return _together([failure_of(each) for each in raised.exceptions])
        case _ if _is_refusal(raised):
            return _error(ErrorType.PERMANENT, describe(raised))
        case TimeoutError():
            return _error(ErrorType.TIMEOUT, _named(raised), _trace(raised))
        case _:
            return _error(ErrorType.TRANSIENT, _named(raised), _trace(raised))


def _together(errors: Sequence[RunError]) -> RunError:
    """What several tasks of one node met, as one: permanent if one of them is, since that one comes again."""
    if len(errors) == 1:
        return errors[0]
    worst = next((each for each in errors if each.type is ErrorType.PERMANENT), errors[0])
    message = "; ".join(each.message for each in errors)
    wishes = [each.retry_after for each in errors if each.retry_after is not None]
    return _error(worst.type, message, worst.detail, max(wishes, default=None), worst.tokens)


def _is_refusal(raised: BaseException) -> "TypeGuard[ValidationError]":
    # Whoever raised one has imported the library, and a worker that never meets any does without.
    library = sys.modules.get("pydantic")
    return library is not None and isinstance(raised, library.ValidationError)


def describe(refusal: "ValidationError", root: str = "") -> str:
    """Every field that does not fit and why, without the values: one of them may be a secret."""
    return "; ".join(
        f"{_field(root, error['loc'])}: {reason(error)}"
        for error in refusal.errors(include_url=False, include_context=False, include_input=False)[:20]
    )


def reason(error: "ErrorDetails") -> str:
    """Why one field does not fit."""
    return error["msg"].removeprefix("Value error, ")


def _field(root: str, steps: tuple[int | str, ...]) -> str:
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps]
    return (root + "".join(parts)).removeprefix(".") or "parameters"


def _named(raised: BaseException) -> str:
    text = _text(raised)
    return f"{type(raised).__name__}: {text}" if text else type(raised).__name__


def _text(raised: BaseException) -> str:
    try:
        return str(raised)
    except Exception as broken:  # noqa: BLE001 -- a node's own exception class may fail to print itself
        return f"(its text cannot be read: {type(broken).__name__})"


def _trace(raised: BaseException) -> str:
    """The frames of the node's own code; those of ours on the way to it tell its author nothing."""
    frames = traceback.extract_tb(raised.__traceback__)
    own = list(dropwhile(lambda frame: frame.filename.startswith(_OURS), frames))
    cause = raised.__cause__
    lines = [*traceback.format_list(own or frames), *([] if cause is None else _caused_by(cause))]
    return "".join(lines)[-LONGEST_DETAIL:]


def _caused_by(cause: BaseException) -> list[str]:
    """What the node turned into another exception, which often says less."""
    return [f"caused by {_named(cause)}\n", *traceback.format_list(traceback.extract_tb(cause.__traceback__))]

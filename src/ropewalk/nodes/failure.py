"""How a node type says that it failed, and what an exception that says nothing counts as."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, TypeGuard

import msgspec

from ropewalk.core.canonical import writable
from ropewalk.core.errors import ErrorType, RopewalkError, RunError
from ropewalk.nodes.tracebacks import BEYOND, LONGEST, Mask, as_it_is, is_from_outside, traceback_of

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

LONGEST_MESSAGE = 1_000
LONGEST_DETAIL = LONGEST
LONGEST_BODY = 4_096
MOST_TOLD = 20
"""Of more tasks that failed together than these, the message names the first."""


class NodeFailure(RopewalkError):
    """A node cannot go on; `error` says whether trying again can help."""

    def __init__(self, error: RunError) -> None:
        self.error = error
        super().__init__(error.message)

    @classmethod
    def transient(cls, message: str, retry_after: float | None = None, detail: str | None = None,
                  tokens: int | None = None, *, status: int | None = None,
                  body: str | None = None) -> Self:  # fmt: skip
        """A failure that may be gone next time, at the earliest in `retry_after` seconds."""
        return cls(_error(ErrorType.TRANSIENT, message, detail, retry_after, tokens, status, body))

    @classmethod
    def permanent(cls, message: str, detail: str | None = None, tokens: int | None = None, *,
                  status: int | None = None, body: str | None = None) -> Self:  # fmt: skip
        """A failure that the same inputs meet again every time."""
        return cls(_error(ErrorType.PERMANENT, message, detail, None, tokens, status, body))

    @classmethod
    def timeout(cls, message: str) -> Self:
        """Too much time passed."""
        return cls(_error(ErrorType.TIMEOUT, message))


def _error(kind: ErrorType, message: str, detail: str | None = None, retry_after: float | None = None,
           tokens: int | None = None, status: int | None = None, body: str | None = None) -> RunError:  # fmt: skip
    return RunError(
        kind, shortened(message, LONGEST_MESSAGE), detail and shortened(detail, LONGEST_DETAIL), retry_after, tokens,
        status, body and shortened(body, LONGEST_BODY),
    )  # fmt: skip


def shortened(text: str, longest: int) -> str:
    """The text as every store keeps it, cut where it gets too long."""
    return writable(text if len(text) <= longest else f"{text[: longest - 1]}…")


def failure_of(raised: BaseException, mask: Mask = as_it_is) -> RunError:
    """What a run reports for anything its node raised; `mask` is applied to texts before they are cut.

    Code that fails without saying how is worth another attempt: most of what goes wrong outside goes by.
    """
    if isinstance(raised, BaseExceptionGroup):
        return _together(_leaves(raised), mask)
    if isinstance(raised, NodeFailure):
        return _located(raised, mask)
    detail = None if _is_refusal(raised) and not is_from_outside(raised) else traceback_of(raised, _named, mask)
    message = _masked(_described(raised), mask)
    return _error(_kind(raised), message, detail)


def _kind(raised: BaseException) -> ErrorType:
    match raised:
        case NodeFailure():
            return raised.error.type
        case _ if _is_refusal(raised):
            return ErrorType.PERMANENT
        case TimeoutError():
            return ErrorType.TIMEOUT
        case _:
            return ErrorType.TRANSIENT


def _located(raised: NodeFailure, mask: Mask) -> RunError:
    """What a node said itself and, if that has no detail, where in the node's own code it was said."""
    error = raised.error
    if not isinstance(error, RunError) or error.detail is not None or not is_from_outside(raised):
        return error
    return msgspec.structs.replace(error, detail=shortened(traceback_of(raised, _named, mask), LONGEST_DETAIL))


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    """The exceptions of a group and of the groups in it, in order, however deep they are."""
    found: list[BaseException] = []
    waiting: list[BaseException] = [group]
    while waiting:
        each = waiting.pop()
        if isinstance(each, BaseExceptionGroup):
            waiting += reversed(each.exceptions)
        else:
            found.append(each)
    return found


def _together(raised: Sequence[BaseException], mask: Mask) -> RunError:
    """What several tasks of one node met, as one: permanent if one of them is, since that one comes again."""
    worst = next((each for each in raised if _kind(each) is ErrorType.PERMANENT), raised[0])
    told = failure_of(worst, mask)
    if len(raised) == 1:
        return told
    message = "; ".join(_masked(_described(each), mask) for each in raised[:MOST_TOLD])
    wishes = [each.error.retry_after for each in raised if isinstance(each, NodeFailure) and each.error.retry_after]
    return msgspec.structs.replace(
        told, message=shortened(message, LONGEST_MESSAGE), retry_after=max(wishes, default=None)
    )


def _is_refusal(raised: BaseException) -> "TypeGuard[ValidationError]":
    # Code that raised one has imported the library, and a worker that never meets any does without.
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


def _described(raised: BaseException) -> str:
    """What the message of a run says of it; a node's own failure in the node's words alone."""
    if isinstance(raised, NodeFailure):
        return str(raised)
    return describe(raised) if _is_refusal(raised) else _named(raised)


def _named(raised: BaseException) -> str:
    text = describe(raised) if _is_refusal(raised) else _text(raised)
    return f"{type(raised).__name__}: {text}" if text else type(raised).__name__


def _masked(text: str, mask: Mask) -> str:
    return shortened(mask(text[: LONGEST_MESSAGE + BEYOND]), LONGEST_MESSAGE)


def _text(raised: BaseException) -> str:
    try:
        return str(raised)
    except Exception as broken:  # noqa: BLE001 -- a node's own exception class may fail to print itself
        return f"(its text cannot be read: {type(broken).__name__})"

"""What a server refuses, raised as the error it was there."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ropewalk.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    InvalidDefinition,
    InvalidInput,
    InvalidTransition,
    NotFound,
    Problem,
    RopewalkError,
    Unauthenticated,
    Unavailable,
    Unreadable,
)

KIND: Final = "urn:ropewalk:problem:"
_KINDS: Final[dict[str, type[RopewalkError]]] = {
    f"{KIND}invalid": Invalid,
    f"{KIND}invalid-definition": InvalidDefinition,
    f"{KIND}invalid-input": InvalidInput,
    f"{KIND}invalid-transition": InvalidTransition,
    f"{KIND}unreadable": Unreadable,
}
"""What the status does not tell."""
_STATUS: Final[dict[int, type[RopewalkError]]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}
_STEP: Final = re.compile(r"\[(\d+)\]|\.?([^.\[]+)")


def refusal_of(status: int, body: bytes) -> RopewalkError:
    """The error a reply tells of: of the same class, or of the one its status stands for."""
    told = _told(body)
    detail = str(told.get("detail") or f"the server answered {status}")
    kind = _KINDS.get(str(told.get("type"))) or _STATUS.get(status) or (Invalid if status < 500 else RopewalkError)
    if kind is RopewalkError:
        # A fault of the server's: its operator finds more under this name.
        return RopewalkError(f"{detail} ({told.get('instance', status)})")
    if issubclass(kind, Invalid):
        return kind(list(_problems(told)) or detail)
    return kind(detail)


def _told(body: bytes) -> dict[str, Any]:
    """The problem in a body; what lies in between may answer with anything."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _problems(told: dict[str, Any]) -> Iterator[Problem]:
    listed = told.get("problems")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict):
            yield Problem(path_of(str(each.get("field", ""))), str(each.get("message", "")))


def path_of(where: str) -> tuple[str | int, ...]:
    """The steps of a place as people write it: `nodes[2].with.url`."""
    if where == "(document)":
        return ()
    return tuple(int(index) if index else name for index, name in _STEP.findall(where))

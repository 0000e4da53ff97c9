"""`?wait=30s`: the answer comes when executions have ended, or with their state then."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Query
from pydantic import BeforeValidator, WithJsonSchema
from starlette.requests import Request

from ropewalk.api.doors.authentication import authenticate
from ropewalk.api.doors.authorization import Call, authorize_in_workspace
from ropewalk.core.duration import MINUTE, SECOND, parse_duration

LONGEST: Final = MINUTE
RECHECKED_AFTER: Final = 1.0
"""After a longer wait (s), the caller's rights are looked up again."""
_ABOUT: Final = (
    "Answer when the execution has ended, and after this long at the latest, with the state it is in then: a duration "
    "such as `30s`, or a number of seconds; at most 60 s."
)


def _seconds(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    is_number = text.replace(".", "", 1).isdecimal() and len(text) < 10
    return parse_duration(float(text) if is_number else text, longest=LONGEST) / SECOND


Wait = Annotated[
    float | None,
    BeforeValidator(_seconds),
    WithJsonSchema({"type": "string", "maxLength": 64, "examples": ["30s"]}),
    Query(description=_ABOUT),
]


async def until_all_ended(call: Call, request: Request, executions: Sequence[str], seconds: float) -> None:
    """Returns when all of them have ended, or the time is over."""
    if seconds:
        ended = asyncio.gather(*map(call.service.engine.watching.ended, executions))
        await _wait(call, request, ended, seconds)


async def once_ended(call: Call, request: Request, execution: str, seconds: float) -> None:
    """Returns when the execution has ended, or the time is over."""
    with call.service.engine.watching.awaiting(execution) as ended:
        # After the watch began, so that no end is missed; before the wait, so that only a reader learns of the end.
        if not await call.has_ended(execution):
            await _wait(call, request, ended, seconds)


async def _wait(call: Call, request: Request, ended: asyncio.Future[Any], seconds: float) -> None:
    """Refused if the caller has lost its rights while it waited."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await call.backend.waiters.wait(request, ended, seconds)
    if loop.time() - began > RECHECKED_AFTER:
        await authorize_in_workspace(call.backend, await authenticate(request), call.workspace, call.right)

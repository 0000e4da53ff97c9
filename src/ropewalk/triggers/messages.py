"""What expressions see of a message of a queue, and the key by which a message is known again."""

import base64
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ropewalk.core.canonical import is_plain, is_text, writable
from ropewalk.core.expression import ExpressionError, Scope, compile_template
from ropewalk.core.instant import rfc3339
from ropewalk.service.triggers.firing import LONGEST_KEY

if TYPE_CHECKING:
    from nats.aio.msg import Msg

LARGEST_MESSAGE: Final = 4 * 1024 * 1024
NAMED: Final = "nats-msg-id"
"""The header in which a publisher names a message, in small letters."""


class Unusable(ValueError):
    """Nothing can be started of the message, whenever it is tried."""


def event_of(message: "Msg", now: int) -> dict[str, Any]:
    """The message as expressions see it."""
    if len(message.data) > LARGEST_MESSAGE:
        raise Unusable(f"the message has {len(message.data):,} bytes, {LARGEST_MESSAGE:,} are allowed")
    about = message.metadata
    return {
        "subject": writable(message.subject),
        **payload_of(message.data),
        "headers": {writable(name): writable(str(value)) for name, value in (message.headers or {}).items()},
        "stream": about.stream,
        "sequence": about.sequence.stream,
        "deliveries": about.num_delivered,
        "receivedAt": rfc3339(now),
    }


def payload_of(data: bytes) -> dict[str, Any]:
    """What was sent: JSON if it is such, else text; bytes that are neither are `payloadBase64`."""
    if not data:
        return {"payload": None}
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass
    else:
        if is_plain(value):
            return {"payload": value}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if is_text(text):
        return {"payload": text}
    return {"payload": None, "payloadBase64": base64.b64encode(data).decode()}


def place_of(message: "Msg") -> str:
    """Where the message is: its stream, its number there, and when the stream took it.

    A stream that is made anew counts from 1 again: the time tells its messages from those before.
    """
    about = message.metadata
    return f"{about.stream}:{about.sequence.stream}@{about.timestamp.isoformat()}"


def key_of(settings: Mapping[str, Any], event: Mapping[str, Any], place: str) -> str:
    """By what the message is known again: what the author says, else what the publisher does, else its place."""
    said = _said(settings, event)
    if said is None:
        said = next((value for name, value in event["headers"].items() if name.lower() == NAMED), "")
    return _bounded(said) if said else place


def _said(settings: Mapping[str, Any], event: Mapping[str, Any]) -> str | None:
    if "dedupeKey" not in settings:
        return None
    scope = Scope()
    scope.event = event
    try:
        value = compile_template(settings["dedupeKey"]).resolve(scope)
    except ExpressionError as error:
        raise Unusable(f"dedupeKey: {error}") from error
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _bounded(key: str) -> str:
    """The key, or its hash if it is too long to be kept, or no text that every store keeps."""
    if len(key) <= LONGEST_KEY and is_text(key):
        return key
    return f"sha256:{hashlib.sha256(key.encode(errors='surrogatepass')).hexdigest()}"

"""Cursors: where a list goes on, sealed: no caller can read one, make one up or use it on another list."""

import base64
import hashlib
import hmac
from typing import Any, Final

import msgspec

from ropewalk.api.shapes.problems import Refused

_SIGNATURE: Final = 16
LONGEST: Final = 8_192
"""A cursor is never longer: the longest name in a list, the target of a breaker, has 1,000 characters, each of which
takes 6 bytes of JSON at the most."""


class Cursors:
    """Writes cursors under one key, and reads those under it and under the keys from before."""

    def __init__(self, key: str, *before: str) -> None:
        self._keys = [each.encode() for each in (key, *before)]

    def write(self, listing: str, place: Any) -> str:
        """The cursor that leads back to this place of this listing."""
        body, key = msgspec.json.encode(place), self._keys[0]
        signature = _sign(key, listing, body)
        return base64.urlsafe_b64encode(signature + _veiled(key, signature, body)).decode().rstrip("=")

    def read(self, listing: str, cursor: str) -> Any:
        """The place a cursor of this listing leads to."""
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except ValueError as error:
            raise _unknown() from error
        signature, veiled = raw[:_SIGNATURE], raw[_SIGNATURE:]
        for key in self._keys:
            body = _veiled(key, signature, veiled)
            if hmac.compare_digest(signature, _sign(key, listing, body)):
                return msgspec.json.decode(body)
        raise _unknown()


def _sign(key: bytes, listing: str, body: bytes) -> bytes:
    return hmac.digest(key, listing.encode() + b"\0" + body, hashlib.sha256)[:_SIGNATURE]


def _veiled(key: bytes, signature: bytes, body: bytes) -> bytes:
    """The body made unreadable, or readable again: a place may be a text that the caller may not see."""
    stream = hashlib.shake_256(b"cursor" + key + signature).digest(len(body))
    return bytes(one ^ other for one, other in zip(body, stream, strict=True))


def _unknown() -> Refused:
    return Refused(422, "this is no cursor of this list: take `next` of a page as it is", "query.cursor")

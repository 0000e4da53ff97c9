"""Cursors: where a list goes on, signed, so that nobody can make one up or use it on another list."""

import base64
import hashlib
import hmac
from typing import Any, Final

import msgspec

from ropewalk.api.problems import Refused

_SIGNATURE: Final = 16
LONGEST: Final = 1_024


class Cursors:
    """Writes and reads cursors under one key."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    def write(self, listing: str, place: Any) -> str:
        """The cursor that leads back to this place of this listing."""
        body = msgspec.json.encode(place)
        return base64.urlsafe_b64encode(self._sign(listing, body) + body).decode().rstrip("=")

    def read(self, listing: str, cursor: str) -> Any:
        """The place a cursor of this listing leads to."""
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except ValueError as error:
            raise _unknown() from error
        signature, body = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if not hmac.compare_digest(signature, self._sign(listing, body)):
            raise _unknown()
        return msgspec.json.decode(body)

    def _sign(self, listing: str, body: bytes) -> bytes:
        return hmac.digest(self._key, listing.encode() + b"\0" + body, hashlib.sha256)[:_SIGNATURE]


def _unknown() -> Refused:
    return Refused(422, "this is no cursor of this list: take `next` of a page as it is", "query.cursor")

"""Whether a delivery comes from the sender that has the key: decided on the bytes that came, before anything is parsed.

Several keys may be good at the same time, so that one can be replaced without losing a delivery. Every comparison takes
the same time wherever two texts differ.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from ropewalk.core.duration import MINUTE, SECOND, parse_duration

DEFAULT_TOLERANCE: Final = 5 * MINUTE
LONGEST_SIGNATURE: Final = 4_096


class Delivery(Struct, frozen=True):
    """What came: its headers by their names in small letters, its body as it is, and when."""

    headers: Mapping[str, str]
    body: bytes
    now: int


class Unverified(Exception):
    """The delivery does not prove where it comes from; the message is for the log of the server alone."""


def verify(delivery: Delivery, settings: Mapping[str, Any], credential: Mapping[str, Any]) -> None:
    """Raises Unverified unless the delivery proves that its sender has the credential."""
    _SCHEMES[settings.get("auth", "hmac")](delivery, settings, credential)


def _keys(credential: Mapping[str, Any]) -> list[str]:
    return [str(key) for field in ("key", "previousKey") if (key := credential.get(field))]


def _standard(delivery: Delivery, settings: Mapping[str, Any], credential: Mapping[str, Any]) -> None:
    """Standard Webhooks: `webhook-id`, `webhook-timestamp`, and one or more signatures over both and the body."""
    name, at = _header(delivery, "webhook-id"), _header(delivery, "webhook-timestamp")
    _require_recent(at, delivery, settings)
    signed = f"{name}.{at}.".encode() + delivery.body
    given = [part.partition(",")[2] for part in _header(delivery, "webhook-signature").split() if part[:3] == "v1,"]
    made = [_base64(_digest(_standard_key(key), signed)) for key in _keys(credential)]
    _require_any(given, made)


def _standard_key(key: str) -> bytes:
    """The key itself: in base64 behind `whsec_`, else as it is written."""
    if not key.startswith("whsec_"):
        return key.encode()
    try:
        return base64.b64decode(key.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        return key.encode()


def _stripe(delivery: Delivery, settings: Mapping[str, Any], credential: Mapping[str, Any]) -> None:
    parts = [part.partition("=") for part in _header(delivery, "stripe-signature").split(",")]
    at = next((value for name, _, value in parts if name == "t"), "")
    _require_recent(at, delivery, settings)
    signed = f"{at}.".encode() + delivery.body
    given = [value for name, _, value in parts if name == "v1"]
    _require_any(given, [_digest(key.encode(), signed).hex() for key in _keys(credential)])


def _slack(delivery: Delivery, settings: Mapping[str, Any], credential: Mapping[str, Any]) -> None:
    at = _header(delivery, "x-slack-request-timestamp")
    _require_recent(at, delivery, settings)
    signed = f"v0:{at}:".encode() + delivery.body
    made = [f"v0={_digest(key.encode(), signed).hex()}" for key in _keys(credential)]
    _require_any([_header(delivery, "x-slack-signature")], made)


def _github(delivery: Delivery, settings: Mapping[str, Any], credential: Mapping[str, Any]) -> None:
    made = [f"sha256={_digest(key.encode(), delivery.body).hex()}" for key in _keys(credential)]
    _require_any([_header(delivery, "x-hub-signature-256")], made)


def _shopify(delivery: Delivery, settings: Mapping[str, Any], credential: Mapping[str, Any]) -> None:
    made = [_base64(_digest(key.encode(), delivery.body)) for key in _keys(credential)]
    _require_any([_header(delivery, "x-shopify-hmac-sha256")], made)


def _any_header(delivery: Delivery, settings: Mapping[str, Any], credential: Mapping[str, Any]) -> None:
    """A header that holds the HMAC of the body, in hex or base64, behind a prefix."""
    algorithm = str(settings.get("algorithm", "sha256"))
    digests = [hmac.new(key.encode(), delivery.body, algorithm).digest() for key in _keys(credential)]
    written = _base64 if settings.get("encoding", "hex") == "base64" else bytes.hex
    given = _header(delivery, str(settings.get("header", "x-signature")).lower())
    prefix = str(settings.get("prefix", ""))
    _require_any([given], [prefix + written(each) for each in digests])


def _bearer(delivery: Delivery, settings: Mapping[str, Any], credential: Mapping[str, Any]) -> None:
    scheme, _, token = _header(delivery, "authorization").partition(" ")
    _require_any([token if scheme.lower() == "bearer" else ""], [str(credential.get("token", ""))])


def _basic(delivery: Delivery, settings: Mapping[str, Any], credential: Mapping[str, Any]) -> None:
    scheme, _, given = _header(delivery, "authorization").partition(" ")
    proof = f"{credential.get('username', '')}:{credential.get('password', '')}"
    _require_any([given if scheme.lower() == "basic" else ""], [_base64(proof.encode())])


def _nothing(delivery: Delivery, settings: Mapping[str, Any], credential: Mapping[str, Any]) -> None:
    """Its author said that any caller may deliver."""


_Scheme = Callable[[Delivery, Mapping[str, Any], Mapping[str, Any]], None]
_SCHEMES: Final[Mapping[str, _Scheme]] = {
    "hmac": _standard,
    "stripe": _stripe,
    "github": _github,
    "slack": _slack,
    "shopify": _shopify,
    "header": _any_header,
    "bearer": _bearer,
    "basic": _basic,
    "none": _nothing,
}


def _header(delivery: Delivery, name: str) -> str:
    found = delivery.headers.get(name)
    if found is None:
        raise Unverified(f"the header {name} is missing")
    if len(found) > LONGEST_SIGNATURE:
        raise Unverified(f"the header {name} is too long")
    return found


def _require_recent(at: str, delivery: Delivery, settings: Mapping[str, Any]) -> None:
    tolerance = parse_duration(settings["replayWindow"]) if "replayWindow" in settings else DEFAULT_TOLERANCE
    if not (at.isascii() and at.isdecimal() and len(at) <= 12):
        raise Unverified("its time is no number of seconds")
    if abs(delivery.now - int(at) * SECOND) > tolerance:
        raise Unverified("its time is too far from ours")


def _require_any(given: Sequence[str], made: Sequence[str]) -> None:
    """One of the signatures that came is one of those that are good; all are compared, whichever fits."""
    fits = [hmac.compare_digest(one.encode(), other.encode()) for one in given for other in made if other]
    if not any(fits):
        raise Unverified("its signature does not fit")


def _digest(key: bytes, signed: bytes) -> bytes:
    return hmac.new(key, signed, hashlib.sha256).digest()


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()

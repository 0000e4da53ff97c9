"""How secrets are encrypted: AES-256-GCM, each for its place alone.

Every workspace has a data key, and a master key, which is in no table, wraps it. What is sealed is bound to its place:
the workspace, the credential and its revision, the field, and everything that stands in plain beside it. Rows that were
swapped, cut short, taken from an earlier revision, or whose neighbours were changed cannot be opened.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.core.errors import RopewalkError, Unavailable

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
FORM: Final = b"\x01"
"""The first byte of all that is sealed; another form begins with another."""


class Unopened(RopewalkError):
    """What is sealed cannot be opened: it was changed, or another key sealed it."""


class WrongMasterKey(Unavailable):
    """None of the master keys of this process wraps what it needs; the message says what to do."""


class MasterKeys(Struct, frozen=True):
    """The master keys of this process by fingerprint: its own, and those from before that are accepted still."""

    own: str
    keys: Mapping[str, bytes]

    def __repr__(self) -> str:
        return f"MasterKeys({self.own!r})"

    def wrap(self, master: str, workspace: str, data_key: bytes) -> bytes:
        """The data key of a workspace, wrapped by the master key with this fingerprint."""
        return _seal(self._key(master), _place("data-key", workspace, master), data_key)

    def unwrap(self, master: str, workspace: str, wrapped: bytes) -> bytes:
        """The data key of a workspace; WrongMasterKey if this process has not the key that wraps it."""
        return _open(self._key(master), _place("data-key", workspace, master), wrapped)

    def _key(self, master: str) -> bytes:
        found = self.keys.get(master)
        if found is None:
            raise WrongMasterKey(
                f"the credentials are encrypted under the master key {master}, and this process has "
                f"{' and '.join(self.keys)}: start it with the right ROPEWALK_KEY (or the right key_file), name that "
                "key as ROPEWALK_KEY_BEFORE while the keys are rotated, or restore the file of the key from a backup; "
                "if the key is lost, remove every credential and set them anew"
            )
        return found


class Place(Struct, frozen=True):
    """Where a secret belongs. `beside` is all that is stored in plain beside it, `fields` all secrets there are."""

    workspace: str
    credential: str
    revision: int
    beside: Sequence[str]
    fields: Sequence[str] = ()


class Sealer:
    """Seals and opens the secrets of one workspace."""

    def __init__(self, data_key: bytes) -> None:
        self._key = data_key

    def seal(self, place: Place, field: str, text: str) -> bytes:
        """The text encrypted for this field of this place."""
        return _seal(self._key, _bound(place, field), text.encode())

    def open(self, place: Place, field: str, sealed: bytes) -> str:
        """The text that was sealed for this very field of this place; Unopened if it was not."""
        return _open(self._key, _bound(place, field), sealed).decode()


def new_data_key() -> bytes:
    """A key for one workspace."""
    return os.urandom(KEY_BYTES)


def _bound(place: Place, field: str) -> bytes:
    about = (place.workspace, place.credential, str(place.revision), field)
    return _place("field", *about, *place.beside, "|", *place.fields)


def _place(*parts: str) -> bytes:
    """The parts as associated data: as JSON, no two lists of parts are the same text."""
    return msgspec.json.encode(parts)


def _seal(key: bytes, place: bytes, secret: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # here: most processes have no credentials

    nonce = os.urandom(NONCE_BYTES)
    return FORM + nonce + AESGCM(key).encrypt(nonce, secret, place)


def _open(key: bytes, place: bytes, sealed: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag  # here, as in `_seal`
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = sealed[1 : 1 + NONCE_BYTES]
    try:
        if sealed[:1] != FORM or len(nonce) < NONCE_BYTES:
            raise InvalidTag
        return AESGCM(key).decrypt(nonce, sealed[1 + NONCE_BYTES :], place)
    except InvalidTag:
        raise Unopened("it was changed in the store, or sealed with another key") from None

"""The secret key of a store. What servers sign (cursors, lease tokens) is signed with a key that is derived from it.
Another one that is derived from it, the master key, wraps the keys that credentials are encrypted with.

It is never in the database, so a reader of the database, or of a backup, can sign and decrypt nothing. It is the
setting `key` (ROPEWALK_KEY); else what is in the file `key_file`, which the first process that needs it makes. Servers
of one database need the same key: a fingerprint in the database tells whether they have.
"""

import hmac
import logging
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ropewalk.core.errors import InvalidInput
from ropewalk.engines.sealing import MasterKeys
from ropewalk.store import private_files
from ropewalk.store import secrets as kept
from ropewalk.store.access import Reader, Store, Transaction

SHORTEST: Final = 32
LONGEST: Final = 1_024
_SALT: Final = "salt"
_FINGERPRINT: Final = "key-fingerprint"
_PLAIN: Final = "cursors"
"""Where the key that signs lay in plain before it was derived."""

_log = logging.getLogger("ropewalk.access")


class SecretKey:
    """A text from which keys are derived, each for one purpose; none of them tells anything of another."""

    def __init__(self, text: str) -> None:
        self._text = text.strip().encode()
        if not SHORTEST <= len(self._text) <= LONGEST:
            raise InvalidInput(
                f"the secret key must have {SHORTEST} to {LONGEST:,} characters, this one has {len(self._text)}: "
                "`openssl rand -hex 32` makes a good one"
            )

    @classmethod
    def random(cls) -> "SecretKey":
        """A key that no other process has."""
        return cls(secrets.token_hex(32))

    def derived(self, purpose: str, salt: str) -> bytes:
        """The key for this purpose on the store with this salt: HKDF of RFC 5869 with SHA-256, for 32 bytes."""
        extracted = hmac.digest(salt.encode(), self._text, "sha256")
        return hmac.digest(extracted, purpose.encode() + b"\x01", "sha256")


def from_file(path: str) -> SecretKey:
    """The key in this file, which is made if it is missing."""
    try:
        return _read(path) or _made(path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be used as `key_file`: {error.strerror}") from error


def in_file(path: str) -> SecretKey | None:
    """The key in this file, if there is one."""
    return _read(path)


def from_file_or_random(path: str) -> SecretKey:
    """The same; where the file cannot be used, a key for this process alone."""
    try:
        return from_file(path)
    except InvalidInput as error:
        _log.warning(
            "%s. Cursors and lease tokens of this server are good for this process alone: set ROPEWALK_KEY to the same "
            "secret on every server of the database", error,
        )  # fmt: skip
        return SecretKey.random()


def _made(path: str) -> SecretKey:
    os.makedirs(os.path.dirname(path) or ".", private_files.FOLDER, exist_ok=True)
    # Another server that starts at the same moment may have made it.
    with suppress(FileExistsError):
        private_files.write(path, f"{secrets.token_hex(32)}\n".encode())
    found = _read(path)
    if found is None:
        raise FileNotFoundError(2, "it was removed at once", path)
    return found


def _read(path: str) -> SecretKey | None:
    private_files.tighten(path)
    if private_files.is_open_to_others(path):
        raise InvalidInput(f"other users may read {path}: make it readable by its owner alone (chmod 600)")
    try:
        with open(path, encoding="utf-8") as file:
            return SecretKey(file.read(LONGEST + 2))
    except FileNotFoundError:
        return None
    except (UnicodeDecodeError, InvalidInput) as error:
        raise InvalidInput(f"{path} cannot be used as `key_file`: {error}") from error


async def signing_key(store: Store, key: SecretKey) -> str:
    """What servers with this key sign with on this store; warns if the last one to start had another key."""
    async with store.transaction() as tx:
        salt = await kept.keep(tx, _SALT, secrets.token_hex(16))
        await kept.drop(tx, _PLAIN)
        await _compare(tx, key.derived("fingerprint", salt).hex())
    return key.derived("signing", salt).hex()


async def signing_keys_before(store: Store, before: Sequence[SecretKey]) -> list[str]:
    """What servers with these keys from before have signed with: it is read while keys are rotated."""
    async with store.transaction() as tx:
        salt = await kept.keep(tx, _SALT, secrets.token_hex(16))
    return [each.derived("signing", salt).hex() for each in before]


async def _compare(tx: Transaction, fingerprint: str) -> None:
    if await kept.keep(tx, _FINGERPRINT, fingerprint) == fingerprint:
        return
    await kept.replace(tx, _FINGERPRINT, fingerprint)
    _log.warning(
        "the server that started before on this store had another secret key: cursors and lease tokens that were made "
        "with one key are refused by servers with the other; set ROPEWALK_KEY to the same secret on every server"
    )


async def master_keys(store: Store, own: SecretKey, before: Sequence[SecretKey] = ()) -> MasterKeys:
    """The keys that wrap the data keys of the store's workspaces: the own one, and those from before."""
    async with store.transaction() as tx:
        salt = await kept.keep(tx, _SALT, secrets.token_hex(16))
    named = {_named(each, salt): each.derived("credentials", salt) for each in (own, *before)}
    return MasterKeys(_named(own, salt), named)


async def fingerprints(reader: Reader, keys: Sequence[SecretKey]) -> list[str]:
    """The fingerprints of these keys as master keys of the store; none if it has never had any."""
    salt = await kept.get(reader, _SALT)
    return [] if salt is None else [_named(each, salt) for each in keys]


def _named(key: SecretKey, salt: str) -> str:
    """A short name of a key that tells nothing of it."""
    return key.derived("credentials-fingerprint", salt).hex()[:16]

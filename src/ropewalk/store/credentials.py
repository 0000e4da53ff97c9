"""Credentials as they are stored: what is no secret as it is, each secret sealed, and the wrapped keys they need.

Nothing here can read a secret: `engines/sealing.py` does that, with a key that is in no table.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from ropewalk.core.errors import Conflict
from ropewalk.store.access import Reader, Store, Transaction, json_list

LAST_USE: Final = 60_000_000
"""How long a credential is used before its last use is written down again (µs)."""


class Credential(Struct, frozen=True):
    """A credential without its secrets; `plain` and `hosts` are JSON."""

    id: str
    workspace: str
    name: str
    type: str
    plain: str
    hosts: str
    revision: int
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    last_used_at: int | None = None
    token: bytes | None = None
    token_until: int | None = None
    token_serial: int = 0


class DataKey(Struct, frozen=True):
    """The key of a workspace, wrapped by the master key with this fingerprint."""

    workspace: str
    wrapped: bytes
    master: str


class Permit(Struct, frozen=True):
    """A subject that may use one credential."""

    workspace: str
    credential: str
    subject: str
    created_at: int
    created_by: str


class UsingVersion(Struct, frozen=True):
    """A published version that names credentials."""

    workflow: str
    name: str
    version: int
    document: str


async def insert(tx: Transaction, new: Credential, sealed: Mapping[str, bytes]) -> None:
    """Keeps a new credential; Conflict if its name is taken."""
    if await get(tx, new.workspace, new.name) is not None:
        raise Conflict(f"there is a credential {new.name!r} already")
    about = (new.id, new.workspace, new.name, new.type, new.plain, new.hosts, new.revision)
    await tx.execute("insert_credential", *about, new.created_at, new.created_by)
    await _put_fields(tx, new.id, sealed)


async def update(tx: Transaction, new: Credential, sealed: Mapping[str, bytes]) -> None:
    """Keeps the next revision of a credential; Conflict if another caller changed it meanwhile."""
    about = (new.plain, new.hosts, new.revision, new.updated_at, new.updated_by, new.workspace, new.id)
    if not await tx.execute("update_credential", *about):
        raise Conflict(f"the credential {new.name!r} was changed meanwhile: read it again")
    await tx.execute("delete_credential_fields", new.id)
    await _put_fields(tx, new.id, sealed)


async def _put_fields(tx: Transaction, credential: str, sealed: Mapping[str, bytes]) -> None:
    await tx.execute_many("put_credential_field", [(credential, field, text) for field, text in sealed.items()])


async def remove(tx: Transaction, workspace: str, credential: str) -> bool:
    """Forgets a credential, its secrets and its shares; whether there was one."""
    await tx.execute("delete_credential_fields", credential)
    await tx.execute("delete_credential_shares", workspace, credential)
    is_gone = await tx.execute("delete_credential", workspace, credential) == 1
    # With the last credential its key goes too: what was encrypted under a master key that is lost holds up nothing.
    await tx.execute("delete_idle_data_key", workspace)
    return is_gone


async def get(reader: Reader, workspace: str, name: str) -> Credential | None:
    """The credential of this name."""
    row = await reader.fetch_one("get_credential", workspace, name)
    return None if row is None else Credential(*row)


async def listed(reader: Reader, workspace: str, *, after: str = "", limit: int = 50) -> list[Credential]:
    """The credentials of a workspace by name, after a cursor."""
    return [Credential(*row) for row in await reader.fetch("list_credentials", workspace, after, limit)]


async def types_of(reader: Reader, workspace: str, names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The type and the id of each of these credentials, by name; those that do not exist are left out."""
    rows = await reader.fetch("types_of_credentials", json_list(names), workspace)
    return {name: (kind, key) for name, kind, key in rows}


async def published_with_credentials(store: Store, workspace: str, *, after: str = "", limit: int = 50
                                     ) -> list[UsingVersion]:  # fmt: skip
    """The published versions of a workspace whose nodes name credentials, by name after a cursor."""
    rows = await store.scan("published_with_credentials", workspace, after, limit)
    return [UsingVersion(*row) for row in rows]


async def fields(reader: Reader, credential: str) -> dict[str, bytes]:
    """The sealed secrets of a credential, by field."""
    return {field: bytes(sealed) for field, sealed in await reader.fetch("credential_fields", credential)}


async def use(tx: Transaction, credential: str, now: int) -> None:
    """Notes that a credential was used, to the minute."""
    await tx.execute("use_credential", now, credential, now - LAST_USE)


# The token that all workers share


async def claim_renewal(tx: Transaction, found: Credential, until: int, now: int, worker: str) -> bool:
    """Whether this worker renews the token of a credential now: no other does, and it is still the one it read."""
    about = (worker, until, found.id, found.revision, now, found.token_serial)
    return await tx.execute("claim_renewal", *about) == 1


async def keep_token(tx: Transaction, found: Credential, token: bytes, until: int | None, worker: str) -> bool:
    """Keeps the token that this worker has renewed; whether the credential is still the same."""
    return await tx.execute("keep_token", token, until, found.id, found.revision, worker) == 1


async def end_renewal(tx: Transaction, credential: str, worker: str) -> None:
    """Another worker may renew the token: this one could not."""
    await tx.execute("end_renewal", credential, worker)


# The keys of workspaces


async def data_key(reader: Reader, workspace: str) -> DataKey | None:
    """The wrapped key of a workspace, if it has one yet."""
    row = await reader.fetch_one("get_data_key", workspace)
    return None if row is None else DataKey(workspace, bytes(row[0]), row[1])


async def keep_data_key(tx: Transaction, proposed: DataKey, now: int) -> DataKey:
    """The wrapped key of a workspace; the proposed one if there was none."""
    await tx.execute("keep_data_key", proposed.workspace, proposed.wrapped, proposed.master, now)
    kept = await data_key(tx, proposed.workspace)
    assert kept is not None, "it was inserted, or there"
    return kept


async def wrapped_otherwise(reader: Reader, master: str, *, after: str = "", limit: int = 100) -> list[DataKey]:
    """The keys that another master key wraps than the one with this fingerprint, by workspace after a cursor."""
    return [
        DataKey(row[0], bytes(row[1]), row[2]) for row in await reader.fetch("list_data_keys", after, master, limit)
    ]


async def masters(reader: Reader) -> dict[str, int]:
    """How many data keys each master key wraps, by its fingerprint."""
    return {str(row[0]): int(row[1]) for row in await reader.fetch("count_data_keys")}


async def rewrap(tx: Transaction, key: DataKey, wrapped: bytes, master: str) -> bool:
    """Keeps a key that another master key wraps from now on; whether it was still wrapped as it was read."""
    return await tx.execute("rewrap_data_key", wrapped, master, key.workspace, key.master) == 1


# Shares


async def permit(tx: Transaction, new: Permit) -> bool:
    """Lets a subject use a credential; whether it could not before."""
    about = (new.workspace, new.credential, new.subject)
    return await tx.execute("put_credential_acl", *about, new.created_at, new.created_by) == 1


async def permit_of(reader: Reader, workspace: str, credential: str, subject: str) -> Permit | None:
    """The permit of a subject to use a credential, if it has one."""
    row = await reader.fetch_one("get_credential_acl", workspace, credential, subject)
    return None if row is None else Permit(*row)


async def permits(reader: Reader, workspace: str, credential: str, *, after: str = "", limit: int = 50
                  ) -> list[Permit]:  # fmt: skip
    """Who may use a credential, by subject after a cursor."""
    return [Permit(*row) for row in await reader.fetch("list_credential_acl", workspace, credential, after, limit)]


async def withdraw(tx: Transaction, workspace: str, credential: str, subject: str) -> bool:
    """Lets a subject use a credential no more; whether it could."""
    return await tx.execute("delete_credential_acl", workspace, credential, subject) == 1

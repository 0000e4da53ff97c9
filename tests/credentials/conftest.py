"""A store of each kind with a vault of its own, and what is done with credentials there."""

from collections.abc import AsyncIterator, Callable

import pytest

from ropewalk.access.reach import SharedReach
from ropewalk.access.secret_key import SecretKey, master_keys
from ropewalk.engines.credentials import StoredCredentials
from ropewalk.engines.references import References
from ropewalk.engines.vault import Vault
from ropewalk.service.credentials import CredentialVerbs
from ropewalk.store.access import Store
from ropewalk.store.sqlite import SqliteStore
from tests.store.conftest import path, postgres_store, sqlite_store, store

__all__ = ["path", "postgres_store", "sqlite_store", "store"]

OLD = SecretKey("an old master key, made long ago, 1")
NEW = SecretKey("a new master key, made just now, 22")
Opened = Callable[..., CredentialVerbs]


def verbs_on(store: Store, key: SecretKey = OLD, *before: SecretKey, references: References | None = None,
             workspace: str = "default") -> CredentialVerbs:  # fmt: skip
    """What a process with these master keys does with the credentials of a store."""
    vault = Vault(store, lambda: master_keys(store, key, before))
    return CredentialVerbs(store, StoredCredentials(store, vault, SharedReach(store), references), workspace)


@pytest.fixture
def verbs(store: Store) -> CredentialVerbs:
    return verbs_on(store)


@pytest.fixture
async def other_store(tmp_path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(str(tmp_path / "other.db"))
    yield opened
    await opened.close()

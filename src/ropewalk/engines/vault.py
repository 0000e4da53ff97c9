"""The secrets of credentials between the store, which has them sealed, and the callers that need them open."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.engines.sealing import MasterKeys, Place, Sealer, Unopened, new_data_key
from ropewalk.store import credentials
from ropewalk.store import secrets as agreed
from ropewalk.store.access import Reader, Store, Transaction
from ropewalk.store.credentials import Credential, DataKey

MASTER: Final = "master-key"
"""What names the fingerprint of the master key that new data keys are wrapped with, among what all servers agree on."""
TOKEN: Final = ":token"
"""The field that a kept token is sealed for; no field of a type has a colon."""
BATCH: Final = 100


class Plain(Struct, frozen=True):
    """What stands in plain of a credential: its fields that are no secrets, and the references to secrets elsewhere."""

    values: dict[str, object] = {}
    references: dict[str, str] = {}


_plains: Final = msgspec.json.Decoder(Plain)
plain_of: Final[Callable[[str], Plain]] = _plains.decode


class Vault:
    """Seals and opens what one store keeps. The master keys are loaded when a secret is first needed."""

    def __init__(self, store: Store, load_keys: Callable[[], Awaitable[MasterKeys]]) -> None:
        self._store = store
        self._load_keys = load_keys
        self._keys: MasterKeys | None = None

    async def keys(self) -> MasterKeys:
        """The master keys of this process; to be asked for once before a transaction seals anything."""
        if self._keys is None:
            self._keys = await self._load_keys()
        return self._keys

    async def opened(self, reader: Reader, found: Credential) -> dict[str, str]:
        """The secrets of a credential by field; Unopened if a row is not what was sealed, WrongMasterKey if so."""
        sealed = await credentials.fields(reader, found.id)
        if not sealed:
            return {}
        sealer = await self._sealer(reader, found.workspace)
        place = place_of(found, sealed)
        return {field: sealer.open(place, field, each) for field, each in sealed.items()}

    async def sealed(self, tx: Transaction, new: Credential, secret: Mapping[str, str]) -> dict[str, bytes]:
        """The secrets of a credential as the store keeps them; its workspace gets a data key if it has none."""
        if not secret:
            return {}
        sealer = await self._sealer_for_writing(tx, new.workspace)
        place = place_of(new, secret)
        return {field: sealer.seal(place, field, text) for field, text in secret.items()}

    async def open_token(self, reader: Reader, found: Credential) -> str | None:
        """The kept token of a credential, as it was given to `seal_token`."""
        if found.token is None:
            return None
        sealer = await self._sealer(reader, found.workspace)
        return sealer.open(place_of(found, ()), TOKEN, bytes(found.token))

    async def seal_token(self, tx: Transaction, found: Credential, text: str) -> bytes:
        """A token of a credential as the store keeps it."""
        sealer = await self._sealer_for_writing(tx, found.workspace)
        return sealer.seal(place_of(found, ()), TOKEN, text)

    async def _sealer(self, reader: Reader, workspace: str) -> Sealer:
        key = await credentials.data_key(reader, workspace)
        if key is None:
            raise Unopened("the key of its workspace is missing in the store")
        return await self._unwrapped(key)

    async def _sealer_for_writing(self, tx: Transaction, workspace: str) -> Sealer:
        kept = await credentials.data_key(tx, workspace)
        return await self._unwrapped(kept or await self._new_key(tx, workspace))

    async def _unwrapped(self, key: DataKey) -> Sealer:
        return Sealer((await self.keys()).unwrap(key.master, key.workspace, key.wrapped))

    async def _new_key(self, tx: Transaction, workspace: str) -> DataKey:
        keys = await self.keys()
        # The key that all processes agree on: while keys are rotated, some of them have the old one alone.
        master = await agreed.keep(tx, MASTER, keys.own)
        if master not in keys.keys and not await credentials.wrapped_otherwise(tx, keys.own, limit=1):
            # The last secret under a key that was lost is gone: nothing needs that key any more.
            await agreed.replace(tx, MASTER, master := keys.own)
        proposed = DataKey(workspace, keys.wrap(master, workspace, new_data_key()), master)
        return await credentials.keep_data_key(tx, proposed, self._store.now())

    async def rotate(self) -> int:
        """Wraps every data key with the process's own master key; how many were wrapped otherwise.

        Each is one transaction: what a crash leaves is wrapped by either key, and the next call goes on.
        """
        keys = await self.keys()
        await self._require_known(keys)
        async with self._store.transaction() as tx:
            await agreed.keep(tx, MASTER, keys.own)
            await agreed.replace(tx, MASTER, keys.own)
        count = 0
        while found := await credentials.wrapped_otherwise(self._store, keys.own, limit=BATCH):
            for key in found:
                count += await self._rewrap(keys, key)
        return count

    async def _require_known(self, keys: MasterKeys) -> None:
        """WrongMasterKey, before anything is changed, if a data key cannot be unwrapped here."""
        after = ""
        while found := await credentials.wrapped_otherwise(self._store, keys.own, after=after, limit=BATCH):
            for key in found:
                keys.unwrap(key.master, key.workspace, key.wrapped)
            after = found[-1].workspace

    async def _rewrap(self, keys: MasterKeys, key: DataKey) -> bool:
        wrapped = keys.wrap(keys.own, key.workspace, keys.unwrap(key.master, key.workspace, key.wrapped))
        async with self._store.transaction() as tx:
            return await credentials.rewrap(tx, key, wrapped, keys.own)


def place_of(found: Credential, fields: "Mapping[str, object] | tuple[str, ...]") -> Place:
    """What the secrets of a credential are bound to; the token alone is bound to no list of fields."""
    beside = (found.name, found.type, found.plain, found.hosts)
    return Place(found.workspace, found.id, found.revision, beside, sorted(fields))

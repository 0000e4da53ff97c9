"""The credentials of the store of a worker, opened for its nodes; the tokens that all workers share."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

import msgspec
import uuid_utils

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import RopewalkError
from ropewalk.core.reach import credential_remedy, refusal
from ropewalk.engines.base import Reaches
from ropewalk.engines.references import References
from ropewalk.engines.sealing import Unopened, WrongMasterKey
from ropewalk.engines.vault import Vault, plain_of
from ropewalk.nodes.credentials import Credential, Token
from ropewalk.nodes.failure import NodeFailure
from ropewalk.store import credentials
from ropewalk.store.access import Store

RENEWAL: Final = 30 * SECOND
"""How long one worker may take to renew a token before another one tries."""
PAUSE: Final = 0.1
"""How long a worker waits before it looks again whether another has renewed the token (s)."""
EARLY: Final = 30.0
"""How long before its end a token is renewed (s); of a short-lived one a tenth of its time."""
LONG_LINE: Final = 16
MOST_NOTED: Final = 10_000

_tokens: Final = msgspec.json.Decoder(Token)
_log = logging.getLogger("ropewalk.engine")


class StoredCredentials:
    """The credentials of one store, as `nodes/credentials.py` asks for them."""

    def __init__(self, store: Store, vault: Vault, reaches: Reaches, references: References | None = None) -> None:
        self._store = store
        self.vault = vault
        self._reaches = reaches
        self.references = references or References()
        self._renewing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # By what this process is told apart while it renews a token.
        self._me = str(uuid_utils.uuid7())
        # When the use of a credential was last written down.
        self._noted: dict[str, int] = {}

    async def get(self, workspace: str, name: str) -> Credential:
        async with _reached(name):
            found = await self._row(workspace, name)
            opened = await self.vault.opened(self._store, found)
            kept = await self._kept(found)
            await self._note_use(found)
        plain = plain_of(found.plain)
        secrets = opened | {field: self.references.resolve(each) for field, each in plain.references.items()}
        if kept is not None and kept.refresh is not None:
            secrets |= {"refreshToken": kept.refresh}
        hosts = tuple(msgspec.json.decode(found.hosts, type=list[str]))
        return Credential(name, found.type, plain.values | secrets, hosts, found.id, _concealed(secrets.values()))

    async def require(self, workspace: str, name: str, actors: Sequence[str]) -> None:
        async with _reached(name):
            found = await self._row(workspace, name)
            outside = [each for each in actors if not await self._reaches.may_use(each, workspace, found.id)]
        if outside:
            raise NodeFailure.permanent(refusal(f"the credential {name!r}", outside, credential_remedy(name)))

    async def token(
        self, workspace: str, credential: Credential, renew: Callable[[], Awaitable[Token]], refused: str = ""
    ) -> str:
        # One at a time in this process, so that its other runs wait here and not at the store.
        async with self._renewing.setdefault(credential.id, asyncio.Lock()):
            for _ in range(int(RENEWAL / SECOND / PAUSE) + 1):
                async with _reached(credential.name):
                    found = await self._row(workspace, credential.name)
                    kept = await self._kept(found)
                    if kept is not None and self._is_good(found) and kept.value != refused:
                        return kept.value
                    is_mine = await self._claim(found)
                if is_mine:
                    return await self._renewed(found, renew)
                await asyncio.sleep(PAUSE)
        raise NodeFailure.transient(f"the token of the credential {credential.name!r} was not renewed in time")

    async def _row(self, workspace: str, name: str) -> credentials.Credential:
        found = await credentials.get(self._store, workspace, name)
        if found is None:
            raise NodeFailure.permanent(f"there is no credential {name!r}: `ropewalk credentials set` makes one")
        return found

    async def _kept(self, found: credentials.Credential) -> Token | None:
        text = await self.vault.open_token(self._store, found)
        return None if text is None else _tokens.decode(text)

    def _is_good(self, found: credentials.Credential) -> bool:
        return found.token_until is None or found.token_until > self._store.now()

    async def _claim(self, found: credentials.Credential) -> bool:
        now = self._store.now()
        async with self._store.transaction() as tx:
            return await credentials.claim_renewal(tx, found, now + RENEWAL, now, self._me)

    async def _renewed(self, found: credentials.Credential, renew: Callable[[], Awaitable[Token]]) -> str:
        try:
            made = await renew()
            async with _reached(found.name):
                await self._keep(found, made)
        except BaseException:
            await self._give_up(found)
            raise
        return made.value

    async def _keep(self, found: credentials.Credential, made: Token) -> None:
        if made.refresh is None and (before := await self._kept(found)) is not None:
            made = msgspec.structs.replace(made, refresh=before.refresh)
        until = None if made.lifetime is None else self._store.now() + _good_for(made.lifetime)
        await self.vault.keys()
        async with self._store.transaction() as tx:
            sealed = await self.vault.seal_token(tx, found, msgspec.json.encode(made).decode())
            await credentials.keep_token(tx, found, sealed, until, self._me)

    async def _give_up(self, found: credentials.Credential) -> None:
        try:
            async with self._store.transaction() as tx:
                await credentials.end_renewal(tx, found.id, self._me)
        except RopewalkError as error:
            _log.warning("the token of a credential is renewed later: %s", error)

    async def _note_use(self, found: credentials.Credential) -> None:
        now = self._store.now()
        if now - self._noted.get(found.id, 0) < credentials.LAST_USE:
            return
        if len(self._noted) >= MOST_NOTED:
            self._noted.clear()
        self._noted[found.id] = now
        async with self._store.transaction() as tx:
            await credentials.use(tx, found.id, now)


def _good_for(lifetime: float) -> int:
    """How long a token is used that is good for so many seconds (µs)."""
    return round((lifetime - min(EARLY, lifetime / 10)) * SECOND)


def _concealed(secrets: Iterable[str]) -> tuple[str, ...]:
    """The texts to conceal: the secrets, and each long line of those that have several."""
    texts = list(secrets)
    lines = [line for text in texts if "\n" in text for line in text.splitlines() if len(line) >= LONG_LINE]
    return tuple(dict.fromkeys([*texts, *lines]))


@asynccontextmanager
async def _reached(name: str) -> AsyncIterator[None]:
    """What keeps a credential from being read, as a failure that says what to do; a store may be back later."""
    try:
        yield
    except NodeFailure:
        raise
    except WrongMasterKey as error:
        raise NodeFailure.permanent(f"the credential {name!r} cannot be read: {error}") from error
    except Unopened as error:
        raise NodeFailure.permanent(
            f"the credential {name!r} cannot be read: {error}; set it anew, or restore the store from a backup"
        ) from error
    except RopewalkError as error:
        raise NodeFailure.transient(f"the credential {name!r} cannot be reached: {error}") from error

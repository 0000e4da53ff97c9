"""What the handlers work with: the store, a service per workspace, and the caches of actors and rights."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ropewalk.access.actor import Actor
from ropewalk.access.keys import PREFIX, KeyRing
from ropewalk.access.rates import SESSIONS, Buckets
from ropewalk.access.rights_cache import RightsCache
from ropewalk.access.secret_key import SecretKey, signing_key, signing_keys_before
from ropewalk.access.sessions import Sessions
from ropewalk.access.settings import AccessSettings
from ropewalk.api.doors.document_queue import DocumentQueue
from ropewalk.api.shapes.cursors import Cursors
from ropewalk.api.streaming.downloads import Downloads
from ropewalk.api.streaming.waiters import Waiters
from ropewalk.service import Service
from ropewalk.service.stream_limits import StreamLimits
from ropewalk.store.access import Store

if TYPE_CHECKING:
    from ropewalk.api.nouns.metrics import ServerMetrics

MOST_SERVICES: Final = 1_000


class Backend:
    """One server's view of everything behind it. `serve` makes the service of a workspace."""

    def __init__(
        self,
        store: Store,
        serve: Callable[[str], Service],
        cursors: Cursors,
        access: AccessSettings,
        stream_limits: StreamLimits | None = None,
    ) -> None:
        self.store = store
        self.cursors = cursors
        self.access = access
        self.stream_limits = stream_limits or StreamLimits()
        self.keys = KeyRing(store)
        self.sessions = Sessions(store, self.keys)
        self.rights_cache = RightsCache(store)
        self.rate_limits = RateLimits(access)
        self.documents = DocumentQueue()
        self.downloads = Downloads()
        self.waiters = Waiters()
        self.metrics: ServerMetrics | None = None
        # How large a file may be that is brought.
        self.file_bytes = 2**30
        # Whether the process is about to end: it still answers, and is not ready for more requests.
        self.is_leaving = False
        self._serve = serve
        self._services: dict[str, Service] = {}
        self._tokens = None
        if access.issuers:
            # Imported here: the libraries slow down every start of a server, and many servers have no issuer.
            from ropewalk.access.tokens import Tokens

            self._tokens = Tokens(store.now, access.issuers)

    @classmethod
    async def open(
        cls,
        store: Store,
        serve: Callable[[str], Service],
        access: AccessSettings | None = None,
        stream_limits: StreamLimits | None = None,
        key: SecretKey | None = None,
        before: Sequence[SecretKey] = (),
    ) -> "Backend":
        """Servers with the same secret key take each other's cursors; without one, a server takes only its own.

        What was signed with the keys from before is taken too.
        """
        signed_with = await signing_key(store, key or SecretKey.random())
        cursors = Cursors(signed_with, *await signing_keys_before(store, before))
        return cls(store, serve, cursors, access or AccessSettings(), stream_limits)

    def service(self, workspace: str) -> Service:
        """The service of a workspace."""
        found = self._services.get(workspace)
        if found is None:
            if len(self._services) >= MOST_SERVICES:
                self._services.clear()
            found = self._services[workspace] = self._serve(workspace)
        return found

    async def actor(self, token: str) -> Actor | None:
        """Whose token this is: one of our keys, or what an issuer says."""
        if token.startswith(PREFIX):
            return await self.keys.actor(token)
        return None if self._tokens is None else await self._tokens.actor(token)

    def cached_actor(self, token: str) -> Actor | None:
        """The actor of this token if it is in the cache; nothing is looked up."""
        if token.startswith(PREFIX):
            return self.keys.believed(token)
        return None if self._tokens is None else self._tokens.believed(token)

    def has_known(self, token: str) -> bool:
        """Whether this token was valid before, so that the caller does not guess."""
        return self.keys.has_known(token) or (self._tokens is not None and self._tokens.has_known(token))

    def forget(self) -> None:
        """Rights were changed here: this server looks everything up again, the others within seconds."""
        self.keys.forget()
        self.sessions.forget()
        self.rights_cache.forget()


class RateLimits:
    """How often actors, addresses, failed proofs and new sessions may come."""

    def __init__(self, access: AccessSettings) -> None:
        self.actors = Buckets(access.limits.per_actor)
        self.addresses = Buckets(access.limits.per_address)
        self.failures = Buckets(access.limits.failures)
        self.sessions = Buckets(SESSIONS)

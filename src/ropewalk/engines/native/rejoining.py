"""After the lease is lost: others may have everything this worker had, so it lets go of all and comes back as another.

The same if the database went back in time; then nothing that was read before is believed, and people are told.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from itertools import chain, repeat

import uuid_utils

from ropewalk.core.errors import RopewalkError
from ropewalk.engines.background import Background
from ropewalk.engines.native.claims import Claims
from ropewalk.engines.native.deciding import Deciding
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.versions import Versions
from ropewalk.engines.watching import Watching
from ropewalk.store import audit
from ropewalk.store.access import Rewind, Store

PAUSES = (0.1, 0.5, 1, 2)

_log = logging.getLogger("ropewalk.engine")


class Rejoining:
    """Comes back under another name."""

    def __init__(self, store: Store, background: Background, versions: Versions, watching: Watching, memory: Memory,
                 deciding: Deciding, claims: Claims, changed: Callable[[], None]) -> None:  # fmt: skip
        self._store = store
        self._background = background
        self._versions = versions
        self._watching = watching
        self._memory = memory
        self._deciding = deciding
        self._claims = claims
        # Told that workflows may be others than before.
        self._changed = changed
        self._is_rejoining = False
        # How many times the database went back that people were told of.
        self._rewinds = 0

    def lost_the_lease(self, why: str) -> None:
        """Other workers may have everything this one had: let go of all of it, and come back under another name."""
        if not self._is_rejoining:
            self._is_rejoining = True
            _log.error("worker %s has lost its lease, its executions go on elsewhere: %s", self._store.worker, why)
            self._background.spawn(self._rejoin())

    async def _rejoin(self) -> None:
        store, memory = self._store, self._memory
        memory.is_away = True
        self._claims.forget()
        for live in list(memory.lives.values()):
            self._deciding.drop(live)
        for pause in chain(PAUSES, repeat(PAUSES[-1])):
            try:
                await store.rejoin()
                break
            except RopewalkError as error:
                _log.warning("cannot come back yet: %s", error)
            except Exception:  # noqa: BLE001 -- a fault of ours must not keep this worker away for good
                _log.exception("coming back failed; it is tried again")
            await asyncio.sleep(pause)
        self._is_rejoining = memory.is_away = False
        _log.warning("back as worker %s", store.worker)
        self._claims.asked()
        if len(store.rewinds) > self._rewinds:
            await self._begin_anew(store.rewinds[self._rewinds :])

    async def _begin_anew(self, rewinds: Sequence[Rewind]) -> None:
        """The database went back in time: nothing of what was read before is to be believed, and people must know."""
        self._rewinds += len(rewinds)
        self._versions.forget()
        self._changed()
        self._watching.begin_anew()
        for rewind in rewinds:
            _log.error("worker %s: %s; see docs/operations.md, and run `ropewalk check`", rewind.worker, rewind.why)
        try:
            async with self._store.transaction() as tx:
                for rewind in rewinds:
                    await audit.note_rewind(tx, str(uuid_utils.uuid7()), rewind)
        except RopewalkError as error:
            _log.error("that the database went back in time cannot be noted in its audit log: %s", error)

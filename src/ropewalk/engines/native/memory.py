"""The executions in this worker's memory, and how they get there: by acceptance, or by folding their log."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import uuid_utils

from ropewalk.core import log
from ropewalk.core.acceptance import first_events
from ropewalk.core.errors import RopewalkError, Unavailable, reading_of
from ropewalk.core.events import ExecutionAccepted
from ropewalk.engines.base import StartRequest
from ropewalk.engines.computing import Computing
from ropewalk.engines.held_values import HeldValues
from ropewalk.engines.native.folding import Folding
from ropewalk.engines.native.live import Live, Written
from ropewalk.engines.native.ownership import OwnedElsewhere, Ownership
from ropewalk.engines.native.record import MOST_BYTES, in_pieces, recorded
from ropewalk.engines.native.stored import count
from ropewalk.engines.versions import Versions
from ropewalk.store import log as stored_log
from ropewalk.store.access import Store
from ropewalk.store.queue import Claimed

GoOn = Callable[[list[Live]], Awaitable[None]]
# What the claim has written for one that was never parked: an owner, a slot; unlike what is written next.
_CLAIMED = ("", None, 1, 0)

_log = logging.getLogger("ropewalk.engine")


def _unheard() -> None:
    """No caller wants to hear."""


class Memory:
    """Loads executions, each once."""

    def __init__(self, store: Store, ownership: Ownership, computing: Computing, versions: Versions) -> None:
        self._store = store
        self._ownership = ownership
        self.values = HeldValues(store.blobs, computing)
        self._versions = versions
        self._folding = Folding(store, versions)
        self._loading: dict[str, asyncio.Future[Any]] = {}
        # Those whose last commit gives them away: no caller may have them back before it is through.
        self._leaving: dict[str, asyncio.Future[None] | None] = {}
        self.lives: dict[str, Live] = {}
        # Whether the lease is lost: what was ours when its loading began is not ours any more.
        self.is_away = False
        # Whether the store may say that something is ours that is not here.
        self.may_have_strays = False
        # Those that left since the last claim began, for a worker that claims.
        self.departed: dict[str, None] | None = None
        # What was read for a caller that has gone away: kept in memory, a parked one would be woken by no worker.
        self.on_unwanted: Callable[[Live], None] = lambda live: None

    def owns(self, live: Live) -> bool:
        return self.lives.get(live.id) is live

    def knows(self, execution: str) -> bool:
        """Whether it is in memory, or on its way in or out."""
        return execution in self.lives or execution in self._loading or execution in self._leaving

    def lets_go(self, execution: str) -> bool:
        """Whether the store alone knows where it stands, which it does of what is idle here."""
        live = self.lives.get(execution)
        if live is not None and live.is_idle:
            self.forget(live)
        return not self.knows(execution)

    def is_under_way(self, execution: str) -> bool:
        """Whether its end, if it comes, will be told from here."""
        return self.under_way(execution) is not None

    def under_way(self, execution: str) -> ExecutionAccepted | None:
        """How it was accepted, if it is under way here."""
        live = self.lives.get(execution)
        return None if live is None or live.execution.is_ended else live.accepted

    def forget(self, live: Live) -> bool:
        """It is not here any more; False if it was not."""
        if self.lives.get(live.id) is not live:
            return False
        del self.lives[live.id]
        if self.departed is not None:
            self.departed[live.id] = None
        return True

    def leaves(self, live: Live) -> None:
        """The commit that is made now says that the execution has no owner."""
        if self.forget(live):
            self._leaving[live.id] = None

    def left(self, live: Live) -> None:
        """That commit is through, or has failed; the store says whose the execution is."""
        leaving = self._leaving.pop(live.id, None)
        if leaving is not None:
            leaving.set_result(None)

    def _departure(self, execution: str) -> asyncio.Future[None]:
        """What is done when the execution has left; made when a caller waits for it, since few do."""
        leaving = self._leaving[execution]
        if leaving is None:
            leaving = self._leaving[execution] = asyncio.get_running_loop().create_future()
        return leaving

    # Accepting

    async def accept(self, request: StartRequest, now: int) -> Live:
        """A new execution in memory, with its first event; durable with the next commit."""
        live = self.new(request, now)
        if request.carried:
            # What another has done may be large results from the beginning.
            count(live, 0, live.events)
        self.lives[live.id] = live
        return live

    def new(self, request: StartRequest, now: int) -> Live:
        """A new execution, with its first event."""
        accepted, events = first_events(request, request.execution or str(uuid_utils.uuid7()), now)
        live = Live(request.version, accepted)
        live.events = events
        live.execution.apply(live.events)
        return live

    # Loading

    async def load(self, execution: str, *, is_ours: bool = False) -> Live:
        """The execution, from memory or from its log; ended ones too. OwnedElsewhere if another worker has it.

        `is_ours`: the store says so already.
        """
        # Looked up again after every wait: what was loaded may have been used and forgotten by someone faster, and two
        # copies of an execution would write two histories.
        while (live := self.lives.get(execution)) is None:
            if execution not in self._loading:
                loading = self._loading[execution] = asyncio.ensure_future(self._load(execution, is_ours))
                loading.add_done_callback(_heard)
            await self._wait_for(execution, self._loading[execution])
        return live

    async def _wait_for(self, execution: str, loading: asyncio.Future[None]) -> None:
        """A load goes on though no caller waits for it; then no caller may have use for it either."""
        try:
            await asyncio.shield(loading)
        except asyncio.CancelledError:
            loading.add_done_callback(lambda _: self._unwanted(execution))
            raise

    def _unwanted(self, execution: str) -> None:
        if live := self.lives.get(execution):
            self.on_unwanted(live)

    async def loaded(self) -> None:
        """Nothing is on its way into memory any more."""
        await asyncio.gather(*self._loading.values(), return_exceptions=True)

    async def _load(self, execution: str, is_ours: bool) -> None:
        """Fold its log; no other caller does so meanwhile."""
        try:
            if execution in self._leaving:
                await self._departure(execution)
                is_ours = False
            if not is_ours:
                await self._acquire(execution)
            live = await self._fold_or_release(execution)
            self._take_in(live, live.owner)
        finally:
            del self._loading[execution]

    async def load_together(self, executions: Sequence[str], heard: Callable[[], None] = _unheard) -> list[Live]:
        """Executions of which the store says already that they are ours; their logs are read together.

        Left out is what another caller is at, and what there is trouble with, which `load` tells. `heard` is
        called whenever there was an answer.
        """
        lives: list[Live] = []

        async def keep(piece: list[Live]) -> None:
            lives.extend(piece)

        await self.load_in_pieces(executions, keep, heard)
        return [live for live in lives if self.owns(live)]

    async def load_in_pieces(
        self, executions: Sequence[str], go_on: GoOn, heard: Callable[[], None] = _unheard
    ) -> dict[str, None]:
        """The same for executions that may leave again before the next are read: `go_on` is told of each piece.

        A piece is as many as there are of a few megabytes of logs. The ids of all that were loaded are given back.
        """
        new = [execution for execution in executions if not self.knows(execution)]
        if not new:
            return {}
        loading = asyncio.ensure_future(self._load_in_pieces(new, go_on, heard))
        loading.add_done_callback(_heard)
        self._loading.update(dict.fromkeys(new, loading))
        return await asyncio.shield(loading)

    async def _load_in_pieces(self, executions: list[str], go_on: GoOn, heard: Callable[[], None]) -> dict[str, None]:
        loaded: dict[str, None] = {}
        try:
            found = await recorded(self._store, executions)
            heard()
            await self._versions.load({each.version: execution for execution, each in found.items()}, heard)
            for piece in in_pieces(found):
                is_long = found[piece[0]].size > MOST_BYTES
                logs = {} if is_long else await stored_log.whole(self._store, piece)
                heard()
                lives = []
                for execution in piece:
                    entries = None if is_long else logs.pop(execution, [])
                    if live := await self._fold_one(execution, found[execution].written, entries):
                        lives.append(live)
                    heard()
                    # Folding many takes a while, which is not to be everyone's.
                    await asyncio.sleep(0)
                loaded.update((live.id, None) for live in lives)
                await go_on(lives)
            return loaded
        finally:
            for execution in executions:
                del self._loading[execution]

    async def _fold_one(self, execution: str, written: Written, entries: list[bytes] | None) -> Live | None:
        """One of several is in memory from now on, if it can be; a log that is long has yet to be read."""
        try:
            live = await self._folding.folded(execution, written, entries)
            return self._take_in(live, live.owner)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 -- what one is ill with keeps no other waiting; by itself it is told
            _log.debug("left out: %s", error)
            return None

    async def _acquire(self, execution: str) -> None:
        try:
            await self._ownership.acquire(execution)
        except Unavailable:
            self.may_have_strays = True
            raise

    def _take_in(self, live: Live, owner: str | None) -> Live:
        """It is in memory from now on, unless the lease it was ours under was lost meanwhile."""
        if self._store.is_shared and (self.is_away or owner != self._store.worker):
            raise OwnedElsewhere(live.id, owner or "unknown")
        self.lives[live.id] = live
        return live

    async def _fold_or_release(self, execution: str) -> Live:
        """What we cannot fold another may try to."""
        try:
            return await self._folding.fold(execution)
        except RopewalkError:
            await self._release(execution)
            raise

    async def _release(self, execution: str, was_ours: bool = False) -> None:
        if not was_ours:
            self.may_have_strays = True
            with suppress(RopewalkError):  # the first error tells more
                await self._ownership.release(execution)

    def suspect_strays(self) -> None:
        """A transaction that gives us executions may be through, though no answer came."""
        self.may_have_strays = True

    async def release(self, execution: str) -> None:
        """Let go of an execution that was dropped and is not to be taken up again."""
        try:
            await self._ownership.release(execution)
        except RopewalkError as error:
            _log.warning("execution %s is let go of later: %s", execution, error)
            self.may_have_strays = True

    async def load_claimed(self, claimed: Claimed, owner: str) -> Live:
        """The same for one that was claimed under this name; what there is of a new one came with the claim."""
        execution, entry = claimed.execution, claimed.first_entry
        if entry is None or self._was_here(execution):
            return await self.load(execution, is_ours=True)
        with reading_of(execution):
            _, events = log.decode(entry)
            accepted = log.acceptance(events)
            version = await self._versions.followed(accepted)
        # One with more than its acceptance took over what another has done, perhaps large results.
        if not len(events) == claimed.last_seq == 1 or self._was_here(execution):
            return await self.load(execution, is_ours=True)
        live = Live(version, accepted)
        live.execution.apply(events)
        live.ledger.add(events)
        live.ledger.take()
        count(live, len(entry), ())
        state = live.execution.state
        live.written = Written((state.value, None, None, None), _CLAIMED, "CLAIMED", {}, state, log.seal_of(entry), 1)
        live.is_unconfirmed = True
        return self._take_in(live, owner)

    def _was_here(self, execution: str) -> bool:
        """Whether another caller may have moved it since it was claimed, or be about to."""
        return self.knows(execution) or self.departed is None or execution in self.departed

    async def end_without_plan(self, execution: str, end: Callable[[Live], object], *, is_ours: bool = False) -> Live:
        """An execution whose version is lost, as `end` leaves it in the turn it comes in, before anyone else has it."""
        while execution in self._loading:
            await asyncio.gather(self._loading[execution], return_exceptions=True)
        ending = self._loading[execution] = asyncio.ensure_future(self._end_bones(execution, end, is_ours))
        ending.add_done_callback(_heard)
        return await asyncio.shield(ending)

    async def _end_bones(self, execution: str, end: Callable[[Live], object], is_ours: bool) -> Live:
        live = None
        try:
            if not is_ours:
                await self._acquire(execution)
            live = self._take_in(bones := await self._folding.bones(execution), bones.owner)
            end(live)
            return live
        finally:
            del self._loading[execution]
            if live is None or (not live.is_dirty and self.forget(live)):
                await self._release(execution, is_ours)


def _heard(loading: asyncio.Future[Any]) -> None:
    """The caller may have gone away before there is anything to tell."""
    if not loading.cancelled():
        loading.exception()

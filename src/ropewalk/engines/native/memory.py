"""The executions in this worker's memory, and how they get there: by acceptance, or by folding their log."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import uuid_utils

from ropewalk.core import log
from ropewalk.core.errors import NotFound, RopewalkError, Unavailable, VersionLost, reading_of
from ropewalk.core.events import RULES, ExecutionAccepted
from ropewalk.core.plan import Plan, load_plan
from ropewalk.core.skeleton import skeleton
from ropewalk.engines.base import StartRequest, Version
from ropewalk.engines.computing import Computing
from ropewalk.engines.native.held_values import HeldValues
from ropewalk.engines.native.live import Fold, Live, Written
from ropewalk.engines.native.ownership import OwnedElsewhere, Ownership
from ropewalk.engines.native.process import in_short_pauses
from ropewalk.engines.native.record import MOST_BYTES, in_pieces, recorded
from ropewalk.engines.native.stored import count
from ropewalk.store import log as stored_log
from ropewalk.store import workflows
from ropewalk.store.access import Store
from ropewalk.store.queue import Claimed

GoOn = Callable[[list[Live]], Awaitable[None]]
MOST_VERSIONS = 1_000
LARGE_DOCUMENT = 64 * 1024
"""One with more bytes is compiled beside the loop, and whole."""
VERSIONS_AT_ONCE = 20
"""How many are read together: each may be some megabytes."""
# What the claim has written for one that was never parked: an owner, a slot; unlike whatever is written next.
_CLAIMED = ("", None, 1, 0)

_log = logging.getLogger("ropewalk.engine")


def _nobody() -> None:
    """Nobody wants to know."""


class Memory:
    """Loads executions and the versions they execute, each once."""

    def __init__(self, store: Store, ownership: Ownership, computing: Computing) -> None:
        self._store = store
        self._computing = computing
        self._ownership = ownership
        self.values = HeldValues(store.blobs, computing)
        self._versions: OrderedDict[tuple[str, int], Version] = OrderedDict()
        self._loading: dict[str, asyncio.Future[Any]] = {}
        # Those whose last commit gives them away: nobody may have them back before it is through.
        self._leaving: dict[str, asyncio.Future[None] | None] = {}
        self.lives: dict[str, Live] = {}
        # Whether the lease is lost: what was ours when its loading began is not ours any more.
        self.is_away = False
        # Whether the store may say that something is ours that is not here.
        self.may_have_strays = False
        # Those that left since the last claim began, for a worker that claims.
        self.departed: dict[str, None] | None = None
        # Whoever was read for somebody who has gone away: kept in our hands, a parked one would be woken by no one.
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
        """The commit that is made now says that the execution is nobody's."""
        if self.forget(live):
            self._leaving[live.id] = None

    def left(self, live: Live) -> None:
        """That commit is through, or has failed; the store says whose the execution is."""
        leaving = self._leaving.pop(live.id, None)
        if leaving is not None:
            leaving.set_result(None)

    def _departure(self, execution: str) -> asyncio.Future[None]:
        """What is done when the execution has left; made when somebody waits for it, since hardly anybody does."""
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
            await self._load_final(live)
        self.lives[live.id] = live
        return live

    def new(self, request: StartRequest, now: int) -> Live:
        """A new execution, with its first event."""
        version, bounded_by = request.version, request.bounds()
        accepted = ExecutionAccepted(
            now,
            request.execution or str(uuid_utils.uuid7()),
            request.workspace,
            version.workflow,
            version.version,
            version.hash,
            request.trigger,
            request.payload,
            request.input,
            {**version.plan.definition.vars, **request.vars},
            {} if bounded_by else dict(request.env),
            request.parent,
            request.priority,
            request.concurrency_key(),
            request.trace,
            request.once,
            RULES,
            bounded_by,
        )
        live = Live(version, accepted)
        # Taken over now, whenever that was looked up: time does not go back within a log.
        live.events = [accepted, *[msgspec.structs.replace(event, at=now) for event in request.carried]]
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
        """A load goes on though nobody waits for it; then nobody may have use for it either."""
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
        """Fold its log; nobody else does so meanwhile."""
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

    async def load_together(self, executions: Sequence[str], heard: Callable[[], None] = _nobody) -> list[Live]:
        """Executions of which the store says already that they are ours; their logs are read together.

        Left out is whatever somebody else is at, and whatever there is trouble with, which `load` tells. `heard` is
        called whenever there was an answer.
        """
        lives: list[Live] = []

        async def keep(piece: list[Live]) -> None:
            lives.extend(piece)

        await self.load_in_pieces(executions, keep, heard)
        return [live for live in lives if self.owns(live)]

    async def load_in_pieces(
        self, executions: Sequence[str], go_on: GoOn, heard: Callable[[], None] = _nobody
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
            await self._load_versions({each.version: execution for execution, each in found.items()}, heard)
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

    async def _load_versions(self, wanted: dict[tuple[str, int], str], heard: Callable[[], None]) -> None:
        """Have those at hand that are not, each by an execution of it; what cannot be read is told by who needs it."""
        missing = [execution for version, execution in wanted.items() if version not in self._versions]
        for some in range(0, len(missing), VERSIONS_AT_ONCE):
            for found in await workflows.versions_of(self._store, missing[some : some + VERSIONS_AT_ONCE]):
                try:
                    await self._keep_stored(found)
                except Exception as error:  # noqa: BLE001 -- as below: whoever is of it is left out, and no other
                    _log.debug("version %d of %s cannot be read: %s", found.version, found.workflow, error)
            heard()

    async def _fold_one(self, execution: str, written: Written, entries: list[bytes] | None) -> Live | None:
        """One of several is in memory from now on, if it can be; a log that is long has yet to be read."""
        try:
            live = await self._folded(execution, written, entries)
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
            return await self._fold(execution)
        except RopewalkError:
            await self._release(execution)
            raise

    async def _release(self, execution: str, was_ours: bool = False) -> None:
        if not was_ours:
            self.may_have_strays = True
            with suppress(RopewalkError):  # the first error tells more
                await self._ownership.release(execution)

    async def load_claimed(self, claimed: Claimed, owner: str) -> Live:
        """The same for one that was claimed under this name; what there is of a new one came with the claim."""
        execution, entry = claimed.execution, claimed.first_entry
        if entry is None or self._was_here(execution):
            return await self.load(execution, is_ours=True)
        with reading_of(execution):
            _, events = log.decode(entry)
            accepted = log.acceptance(events)
            version = await self._version_of(accepted)
        # One with more than its acceptance took over what another has done, perhaps large results.
        if not len(events) == claimed.last_seq == 1 or self._was_here(execution):
            return await self.load(execution, is_ours=True)
        live = Live(version, accepted)
        live.execution.apply(events)
        live.ledger.add(events)
        live.ledger.take()
        count(live, len(entry), ())
        state = live.execution.state
        live.written = Written((state.value, None, None, None), _CLAIMED, "CLAIMED", {}, state, log.seal_of(entry))
        live.is_unconfirmed = True
        return self._take_in(live, owner)

    def _was_here(self, execution: str) -> bool:
        """Whether somebody else may have moved it since it was claimed, or be about to."""
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
            live = self._take_in(bones := await self._bones(execution), bones.owner)
            end(live)
            return live
        finally:
            del self._loading[execution]
            if live is None or (not live.is_dirty and self.forget(live)):
                await self._release(execution, is_ours)

    async def _bones(self, execution: str) -> Live:
        """An execution without its version: all of its log at once, since the log alone tells which nodes there are."""
        written = await self._written(execution)
        with reading_of(execution):
            entries = (await stored_log.whole(self._store, [execution])).get(execution, [])
            events = list(log.decode_all(entries))
            accepted = log.acceptance(events)
            version = Version(accepted.workflow, accepted.version, accepted.hash, skeleton(accepted, events))
            fold = Fold(version, accepted)
            fold.add(events, sum(map(len, entries)))
            written.seal = log.seal_of(entries[-1])
            return fold.done(written)

    async def _fold(self, execution: str) -> Live:
        # Whose it is comes first: of one that is ours the log read afterwards is whole.
        written = await self._written(execution)
        with reading_of(execution):
            return await self._folded(execution, written, None)

    async def _written(self, execution: str) -> Written:
        found = await recorded(self._store, [execution])
        if execution not in found:
            raise NotFound(f"there is no execution {execution}")
        return found[execution].written

    async def _folded(self, execution: str, written: Written, entries: list[bytes] | None) -> Live:
        """The execution as its log leaves it; the log is read a few megabytes at a time if it is not given."""
        fold: Fold | None = None
        pages = stored_log.pages(self._store, execution)
        page = await pages.next() if entries is None else entries
        while page:
            for entry in page:
                _, events = log.decode(entry)
                if fold is None:
                    accepted = log.acceptance(events)
                    fold = Fold(await self._version_of(accepted), accepted)
                fold.add(events, len(entry))
                written.seal = log.seal_of(entry)
            page = await pages.next() if entries is None else []
        if fold is None:
            log.acceptance(())
        assert fold is not None, "an empty log has no acceptance"
        live = fold.done(written)
        await self._load_final(live)
        return live

    async def _load_final(self, live: Live) -> None:
        """The large results an execution's output is made of must be at hand when its last node ends."""
        if live.has_large and not live.execution.is_ended:
            await live.load_output_blobs(self.values.load)

    async def _version_of(self, accepted: ExecutionAccepted) -> Version:
        """The version an execution follows, which was there when it was accepted."""
        try:
            return await self.version(accepted.workflow, accepted.version)
        except NotFound as error:
            raise VersionLost(f"version {accepted.version} of workflow {accepted.workflow} is missing") from error

    async def version(self, workflow: str, version: int) -> Version:
        """A version of a workflow, compiled once."""
        key = (workflow, version)
        if key not in self._versions:
            found = await workflows.get_version(self._store, workflow, version)
            if found is None:
                raise NotFound(f"there is no version {version} of workflow {workflow}")
            await self._keep_stored(found)
        self._versions.move_to_end(key)
        return self._versions[key]

    def version_at_hand(self, workflow: str, version: int) -> Version | None:
        """The same if nothing need be read for it."""
        return self._versions.get((workflow, version))

    async def _keep_stored(self, found: workflows.Version) -> None:
        document = found.document.encode()
        if len(document) <= LARGE_DOCUMENT:
            plan = load_plan(document)
        else:
            plan = await self._computing.of_caller(
                found.workflow, "", partial(in_short_pauses, partial(_compiled, document))
            )
        self.keep(Version(found.workflow, found.version, found.hash, plan, found.bounded_by))

    def forget_versions(self) -> None:
        """They are read again: of a database that went back, the same number may be another version."""
        self._versions.clear()

    def keep(self, version: Version) -> None:
        self._versions[version.workflow, version.version] = version
        while len(self._versions) > MOST_VERSIONS:
            self._versions.popitem(last=False)

    async def published(self, workspace: str, name: str, version: int | None) -> Version:
        """The version a start of this id or name takes: the one asked for, else the one published."""
        found = await workflows.find(self._store, workspace, name)
        if found is None or found.archived_at is not None:
            raise NotFound(f"there is no workflow {name!r}")
        wanted = found.published if version is None else version
        if wanted is None:
            raise NotFound(f"workflow {name!r} has no published version")
        return await self.version(found.id, wanted)


def _compiled(document: bytes) -> Plan:
    """The plan with every expression compiled, so that no node has to wait for that on the loop."""
    plan = load_plan(document)
    for node in range(len(plan)):
        plan.with_template(node)
    return plan


def _heard(loading: asyncio.Future[Any]) -> None:
    """Whoever asked may have gone away before there is anything to tell."""
    if not loading.cancelled():
        loading.exception()

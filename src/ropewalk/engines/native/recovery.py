"""Going on after a loss: of a process, of a commit (`setbacks.py`), of its answer, or of the lease (`rejoining.py`).

It is the same each time: what is in memory is thrown away, the log is folded, the attempts that were under way are told
to be lost, and what is outstanding is carried out. Where only a commit failed, and the worker is the same, nothing is
lost: what was reported is told again, and what was under way is handed back.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress

from ropewalk.core.errors import InvalidTransition, RopewalkError, Unavailable, UnknownVersion
from ropewalk.core.execution.resuming import handed_back, lost
from ropewalk.core.signals import Cancel, Discard, Resume, Signal
from ropewalk.engines.native.claims import Claims
from ropewalk.engines.native.commit import GroupCommit
from ropewalk.engines.native.deciding import Deciding, GiveUp
from ropewalk.engines.native.letters import Letters
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.memory import Memory
from ropewalk.engines.native.offers import Offers
from ropewalk.engines.native.ownership import OwnedElsewhere, Ownership
from ropewalk.store import live as owned
from ropewalk.store import offers as stored_offers
from ropewalk.store import suspicion
from ropewalk.store.access import Store
from ropewalk.store.rows import LiveRow, Suspect

EVERY = 1.0
BATCH = 100
"""How many are taken up together."""

_log = logging.getLogger("ropewalk.engine")


def _unheard() -> None:
    """No caller wants to hear."""


class Recovery:
    """Takes executions up again."""

    def __init__(self, store: Store, ownership: Ownership, memory: Memory, commit: GroupCommit, deciding: Deciding,
                 letters: Letters, offers: Offers, claims: Claims, give_up: GiveUp) -> None:  # fmt: skip
        self._store = store
        self._ownership = ownership
        self._memory = memory
        self._commit = commit
        self._deciding = deciding
        self._letters = letters
        self._offers = offers
        self._claims = claims
        self._give_up = give_up
        # Those that are taken up again from their logs as soon as the store lets us (`setbacks.py`).
        self.lost: set[str] = set()

    async def watch(self) -> None:
        """On a shared store also a worker that claims nothing may come to own something unawares: look for it."""
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self.find_strays()
            except RopewalkError as error:
                _log.warning("what may be ours cannot be looked for now: %s", error)
            except Exception:  # noqa: BLE001 -- a fault of ours must not end the search
                _log.exception("looking for what may be ours failed; it is tried again")

    async def take_up_left(self) -> None:
        """Go on with everything that is ours by the store, since we come back under the name of one who is gone."""
        store, after = self._store, ""
        suspects: list[Suspect] = []
        while left := await owned.owned(store, store.worker, after=after, limit=BATCH):
            executions = [row.execution for row in left]
            async with store.transaction() as tx:
                await suspicion.raise_for(tx, executions)
            suspects += await self._take_up_harmless(executions, _unheard)
            after = left[-1].execution
        for suspect in suspects:
            await self._try(suspect)

    async def take_up(self, executions: Sequence[str], heard: Callable[[], None] = _unheard) -> None:
        """Go on with executions whose last owner is gone and which are ours now; what one is ill with stops no other.

        `heard` is called whenever the store has answered. Those that may be what the last owners died of come last.
        """
        for suspect in await self._take_up_harmless(executions, heard):
            await self._try(suspect)
            heard()

    async def _take_up_harmless(self, executions: Sequence[str], heard: Callable[[], None]) -> list[Suspect]:
        """Go on with those that no worker dies of; the others, which are to be taken up one by one."""
        suspects = await suspicion.suspects(self._store, executions)
        heard()
        aside = {each.execution for each in suspects}
        await self._take_up_together([each for each in executions if each not in aside], heard)
        return suspects

    async def _try(self, suspect: Suspect) -> None:
        """Take up a suspect alone, when everything else here is written down; set it aside if that was done before."""
        execution = suspect.execution
        await self._commit.settled()
        async with self._store.transaction() as tx:
            if suspect.on_trial:
                await suspicion.set_aside(tx, execution, tx.worker, self._store.now())
            else:
                await suspicion.put_on_trial(tx, execution)
        if suspect.on_trial:
            self._ownership.set_aside(execution)
            _log.error(
                "execution %s is set aside: it was under way in %d deaths of its worker, one after the other, the last "
                "time alone; find out why, then resume or cancel it", execution, suspect.deaths,
            )  # fmt: skip
            return
        _log.info("execution %s has stored much and was under way when its worker died (%d): it is taken up alone",
                  execution, suspect.deaths)  # fmt: skip
        with suppress(OwnedElsewhere):
            await self._take_up_alone(execution)
        await self._commit.settled()

    async def _take_up_together(self, executions: Sequence[str], heard: Callable[[], None]) -> None:
        lives = await self._memory.load_together(executions, heard)
        await self.find_offers(lives)
        heard()
        for live in lives:
            self.go_on(live)
        taken = {live.id for live in lives}
        for execution in executions:
            if execution not in taken:
                with suppress(OwnedElsewhere):  # told something, and over or let go of, before its turn came
                    await self._take_up_alone(execution)
                heard()

    async def _take_up_alone(self, execution: str) -> None:
        """The same for one that is here already, or cannot be read."""
        try:
            live = await self._memory.load(execution, is_ours=True)
            await self.find_offers([live])
        except (Unavailable, OwnedElsewhere):
            raise
        except UnknownVersion as error:
            # A newer Ropewalk has written it. It stays ours, and so in sight of a newer worker once we leave.
            _log.warning("execution %s goes on when this worker is replaced by a newer one: %s", execution, error)
            self._memory.suspect_strays()
            return
        except Exception as error:  # noqa: BLE001 -- its log is at fault, and the others have a right to go on
            await self._let_lie(execution, error)
            return
        self.go_on(live)

    async def _let_lie(self, execution: str, error: Exception) -> None:
        """What cannot be read has no owner and no slot: it keeps no other execution from going on."""
        fault = None if isinstance(error, RopewalkError) else error
        _log.error("execution %s cannot be taken up, and lies as it is: %s", execution, error, exc_info=fault)
        async with self._store.transaction() as tx:
            await owned.abandon(tx, tx.worker, execution)

    async def find_offers(self, lives: Sequence[Live]) -> None:
        """What others carry out of them goes on; only the dead owner's own runs are lost.

        Asked after their logs were read: an offer of our own may have been on its way until then.
        """
        running = [live for live in lives if live.found_running]
        found = await stored_offers.of_executions(self._store, [live.id for live in running]) if running else {}
        for live in running:
            live.offered |= found.get(live.id, set())

    def go_on(self, live: Live, reports: list[Signal] | None = None) -> None:
        """Take it up, unless it was let go of since it was loaded, or goes on already."""
        if not self._memory.owns(live) or live.has_slot:
            return
        try:
            self._take_up(live, reports)
        except Exception as error:  # noqa: BLE001 -- a fault of ours concerns one execution, not its neighbours
            _log.exception("execution %s cannot be taken up", live.id)
            self._give_up([live], error)

    def _take_up(self, live: Live, reports: list[Signal] | None) -> None:
        """What it ran is lost, what was ready starts; one that has no slot is let go of.

        With `reports` nothing is lost: they are what the attempts said that have ended, the others are handed back.
        """
        if reports is None:
            live.rows.append(("delete_suspicion", (live.id,)))
        if live.offered:
            self._offers.watch()
        if live.written.live and live.written.live[2]:
            live.has_slot = True
            live.unwritten = [*live.unwritten, *(reports or ())]
            self._deciding.resume(live, [*(reports or ()), *_ends_of_attempts(live, is_lost=reports is None)])
        self._commit.add(live)

    async def release_set_aside(self, execution: str, signal: Signal | Discard, by: str) -> None:
        """A person wants an execution back that is set aside: to go on, or to be cancelled."""
        if not isinstance(signal, Resume | Cancel):
            raise InvalidTransition(
                "the execution is set aside, since its worker died whenever it was taken up: resume or cancel it first"
            )
        async with self._store.transaction() as tx:
            is_released = await suspicion.release(tx, execution, tx.worker)
        self._ownership.take_back(execution)
        if is_released:
            _log.warning("execution %s was set aside, and is taken up again by %s", execution, by)
            await self._take_up_together([execution], _unheard)
            await self._letters.catch_up()

    # An answer was lost

    async def find_strays(self) -> None:
        """Take up what the store says is ours and we know nothing of, and tell what was written down and not told."""
        if not self._memory.may_have_strays:
            return
        # Those that come up meanwhile are for the next time.
        self._memory.may_have_strays = False
        try:
            after = ""
            while rows := await owned.owned(self._store, self._store.worker, after=after, limit=BATCH):
                await self.take_up([row.execution for row in rows if not self._is_in_hand(row)])
                after = rows[-1].execution
            await self._letters.catch_up()
        except RopewalkError:
            self._memory.suspect_strays()
            raise

    def _is_in_hand(self, row: LiveRow) -> bool:
        """Whether this worker sees to it. One that was only loaded, and has a slot or nothing to do, is not."""
        memory = self._memory
        if row.execution in self.lost or self._claims.owes(row.execution):
            return True
        live = memory.lives.get(row.execution)
        if live is None and memory.knows(row.execution):
            self._memory.suspect_strays()  # on its way in or out: looked at again
            return True
        return live is not None and (live.has_slot or not (row.has_slot or live.is_idle))


def _ends_of_attempts(live: Live, *, is_lost: bool) -> list[Signal]:
    """How those attempts ended that were under way when the log was read, except those that others carry out.

    Only those: others may have told the execution something since, and so have started more.
    """
    ended = [attempt for attempt in live.found_running if attempt not in live.offered]
    live.found_running = []
    return [lost(attempt, random.random()) if is_lost else handed_back(attempt) for attempt in ended]

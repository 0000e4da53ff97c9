"""Going on after a loss: of a process, of a commit's answer, or of the lease.

It is the same each time: what is in memory is thrown away, the log is folded, the attempts that were under way are told
to be lost, and what is outstanding is carried out. Where only a commit failed, and the worker is the same, nothing is
lost: what was reported is told again, and what was under way is handed back.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain, repeat
from typing import TYPE_CHECKING

import uuid_utils

from ropewalk.core.commands import RunNode, WakeAt
from ropewalk.core.errors import InvalidTransition, NotFound, RopewalkError, Unavailable, UnknownVersion
from ropewalk.core.signals import Cancel, Discard, Due, Lost, Resume, Returned, Signal
from ropewalk.engines.native.live import Live
from ropewalk.engines.native.ownership import OwnedElsewhere
from ropewalk.store import audit, offers, suspicion
from ropewalk.store import live as owned
from ropewalk.store.access import Rewind
from ropewalk.store.errors import StaleWriter
from ropewalk.store.rows import Suspect

if TYPE_CHECKING:
    from ropewalk.engines.native.engine import NativeEngine

EVERY = 1.0
BATCH = 100
"""How many are taken up together."""
REJOINING = (0.1, 0.5, 1, 2)
PAUSES = (0.1, 0.5, 1, 2, 5, 5, 10, 10, 10, 30)
"""How long to wait at most before one whose commit failed is taken up, after the first failure, the second … (s)."""

_log = logging.getLogger("ropewalk.engine")


def _nobody() -> None:
    """Nobody wants to know."""


class Recovery:
    """Takes executions up again."""

    def __init__(self, engine: "NativeEngine") -> None:
        self._engine = engine
        self._is_rejoining = False
        # How many times the database went back that people were told of.
        self._rewinds = 0
        # What is taken up again from its log as soon as the store lets us.
        self._lost: set[str] = set()

    def open(self) -> None:
        """On a shared store also a worker that claims nothing may come to own something unawares: look for it."""
        if not self._engine.settings.claims:
            self._engine.children.spawn(self._watch())

    async def _watch(self) -> None:
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
        store, after = self._engine.store, ""
        suspects: list[Suspect] = []
        while left := await owned.owned(store, store.worker, after=after, limit=BATCH):
            executions = [row.execution for row in left]
            async with store.transaction() as tx:
                await suspicion.raise_for(tx, executions)
            suspects += await self._take_up_harmless(executions, _nobody)
            after = left[-1].execution
        for suspect in suspects:
            await self._try(suspect)

    async def take_up(self, executions: Sequence[str], heard: Callable[[], None] = _nobody) -> None:
        """Go on with executions whose last owner is gone and which are ours now; what one is ill with stops no other.

        `heard` is called whenever the store has answered. Those that may be what the last owners died of come last.
        """
        for suspect in await self._take_up_harmless(executions, heard):
            await self._try(suspect)
            heard()

    async def _take_up_harmless(self, executions: Sequence[str], heard: Callable[[], None]) -> list[Suspect]:
        """Go on with those that no worker dies of; the others, which are to be taken up one by one."""
        suspects = await suspicion.suspects(self._engine.store, executions)
        heard()
        aside = {each.execution for each in suspects}
        await self._take_up_together([each for each in executions if each not in aside], heard)
        return suspects

    async def _try(self, suspect: Suspect) -> None:
        """Take up a suspect alone, when whatever else is here is written down; set it aside if that was done before."""
        engine, execution = self._engine, suspect.execution
        await engine.commit.settled()
        async with engine.store.transaction() as tx:
            if suspect.on_trial:
                await suspicion.set_aside(tx, execution, tx.worker, engine.store.now())
            else:
                await suspicion.put_on_trial(tx, execution)
        if suspect.on_trial:
            engine.ownership.set_aside(execution)
            _log.error(
                "execution %s is set aside: it was under way in %d deaths of its worker, one after the other, the last "
                "time alone; find out why, then resume or cancel it", execution, suspect.deaths,
            )  # fmt: skip
            return
        _log.info("execution %s has stored much and was under way when its worker died (%d): it is taken up alone",
                  execution, suspect.deaths)  # fmt: skip
        with suppress(OwnedElsewhere):
            await self._take_up_alone(execution)
        await engine.commit.settled()

    async def _take_up_together(self, executions: Sequence[str], heard: Callable[[], None]) -> None:
        lives = await self._engine.memory.load_together(executions, heard)
        await self._find_offers(lives)
        heard()
        for live in lives:
            self._go_on(live)
        taken = {live.id for live in lives}
        for execution in executions:
            if execution not in taken:
                with suppress(OwnedElsewhere):  # told something, and over or let go of, before its turn came
                    await self._take_up_alone(execution)
                heard()

    async def _take_up_alone(self, execution: str) -> None:
        """The same for one that is here already, or cannot be read."""
        try:
            live = await self._engine.memory.load(execution, is_ours=True)
            await self._find_offers([live])
        except (Unavailable, OwnedElsewhere):
            raise
        except UnknownVersion as error:
            # A newer Ropewalk has written it. It stays ours, and so in sight of a newer worker once we leave.
            _log.warning("execution %s goes on when this worker is replaced by a newer one: %s", execution, error)
            self.suspect_strays()
            return
        except Exception as error:  # noqa: BLE001 -- whatever is wrong with its log, the others have a right to go on
            await self._let_lie(execution, error)
            return
        self._go_on(live)

    async def _let_lie(self, execution: str, error: Exception) -> None:
        """What cannot be read is nobody's, and has no slot: it keeps nobody else from going on."""
        fault = None if isinstance(error, RopewalkError) else error
        _log.error("execution %s cannot be taken up, and lies as it is: %s", execution, error, exc_info=fault)
        async with self._engine.store.transaction() as tx:
            await owned.abandon(tx, tx.worker, execution)

    async def _find_offers(self, lives: Sequence[Live]) -> None:
        """What others carry out of them goes on; only the dead owner's own runs are lost.

        Asked after their logs were read: an offer of our own may have been on its way until then.
        """
        running = [live for live in lives if live.found_running]
        found = await offers.of_executions(self._engine.store, [live.id for live in running]) if running else {}
        for live in running:
            live.offered |= found.get(live.id, set())

    def _go_on(self, live: Live, reports: list[Signal] | None = None) -> None:
        """Take it up, unless it was let go of since it was loaded, or goes on already."""
        if not self._engine.memory.owns(live) or live.has_slot:
            return
        try:
            self._take_up(live, reports)
        except Exception as error:  # noqa: BLE001 -- a fault of ours concerns one execution, not its neighbours
            _log.exception("execution %s cannot be taken up", live.id)
            self.lost_the_store([live], error)

    def _take_up(self, live: Live, reports: list[Signal] | None) -> None:
        """What it ran is lost, what was ready starts; one that has no slot is let go of.

        With `reports` nothing is lost: they are what the attempts said that have ended, the others are handed back.
        """
        engine, x = self._engine, live.execution
        if reports is None:
            live.rows.append(("delete_suspicion", (live.id,)))
        if live.offered:
            engine.offers.watch()
        has_slot = bool(live.written.live and live.written.live[2])
        if has_slot:
            live.has_slot = True
            self._end_attempts(live, reports)
            alarms = [command for command in x.outstanding() if isinstance(command, WakeAt)]
            live.commands = [*live.commands, *alarms]
            engine.signal(live, Due())
            if x.needs_slot:  # it was claimed, and never began
                engine.take_slot(live)
        engine.commit.add(live)

    def _end_attempts(self, live: Live, reports: list[Signal] | None) -> None:
        live.unwritten = [*live.unwritten, *(reports or ())]
        for report in reports or ():
            self._engine.signal(live, report)
        # Only those: others may have told it something since it was loaded, and so have started more.
        for node, item, attempt in live.found_running:
            if (node, item, attempt) not in live.offered:
                lost = Lost(node, attempt, item, random.random())
                self._engine.signal(live, lost if reports is None else Returned(node, attempt, item))
        live.found_running = []

    async def release_set_aside(self, execution: str, signal: Signal | Discard, by: str) -> None:
        """A person wants an execution back that is set aside: to go on, or to be cancelled."""
        engine = self._engine
        if not isinstance(signal, Resume | Cancel):
            raise InvalidTransition(
                "the execution is set aside, since its worker died whenever it was taken up: resume or cancel it first"
            )
        async with engine.store.transaction() as tx:
            is_released = await suspicion.release(tx, execution, tx.worker)
        engine.ownership.take_back(execution)
        if is_released:
            _log.warning("execution %s was set aside, and is taken up again by %s", execution, by)
            await self._take_up_together([execution], _nobody)
            await engine.letters.catch_up()

    # A commit failed

    def lost_the_store(self, lives: list[Live], error: Exception) -> None:
        """Forget what was decided on top of a commit that failed; the log knows better."""
        engine = self._engine
        lives = engine.commit.with_bound(lives)
        if isinstance(error, StaleWriter) and engine.store.is_shared:
            for live in lives:
                self.drop(live)
            self.lost_the_lease(str(error))
            return
        _log.error("a commit failed; its %d executions are taken up again from their logs: %s", len(lives), error)
        for live in lives:
            # What is no fault of the store may be one of what was reported: that is not told a second time.
            reports = [*live.unwritten, *live.reports] if isinstance(error, Unavailable) else None
            self.drop(live)
            # Whoever is about to go leaves it to the next: nobody would end what is begun now.
            if live.id not in self._lost and not engine.is_closing:
                self._lost.add(live.id)
                engine.children.spawn(self._recover(live.id, live.setbacks, reports))

    def drop(self, live: Live) -> None:
        """Forget an execution and stop what it runs; the store says whose it is."""
        engine = self._engine
        live.is_dropped = True
        engine.hands.drop(live)
        engine.commit.forget(live)
        engine.hands.promised -= sum(1 for command in live.commands if type(command) is RunNode)
        # What a commit under way has taken along comes back with it, and is counted then.
        live.commands = ()
        engine.memory.forget(live)
        engine.memory.left(live)
        asyncio.get_running_loop().call_soon(engine.feed)

    async def release(self, execution: str) -> None:
        """Let go of an execution that was dropped and is not to be taken up again."""
        try:
            await self._engine.ownership.release(execution)
        except RopewalkError as error:
            _log.warning("execution %s is let go of later: %s", execution, error)
            self.suspect_strays()

    async def _recover(self, execution: str, setbacks: int, reports: list[Signal] | None) -> None:
        """Take an execution up again from its log, unless it is another's by now."""
        try:
            live = await self._loaded_again(execution, setbacks, reports or [])
        finally:
            self._lost.discard(execution)
        if live is not None:
            self._go_on(live, reports)

    async def _loaded_again(self, execution: str, setbacks: int, reports: list[Signal]) -> Live | None:
        """The execution as soon as the store lets us, asked the less often the more often its commits have failed.

        What can be read need not be written yet: of a store that is full one could ask it without end.
        """
        engine = self._engine
        while True:
            # Not all at the same moment: whoever was refused for another's sake comes apart from it.
            await asyncio.sleep(PAUSES[min(setbacks, len(PAUSES) - 1)] * random.uniform(0.5, 1))
            setbacks += 1
            try:
                await engine.letters.catch_up()
                live = await engine.memory.load(execution)
                await self._find_offers([live])
                await self._expect_blobs(live, reports)
                await engine.followers.catch_up(execution)
            except (NotFound, OwnedElsewhere):
                return None  # never accepted, or another's by now
            except RopewalkError as error:
                _log.warning("execution %s cannot be taken up yet: %s", execution, error)
                continue
            except Exception:  # noqa: BLE001 -- a fault of ours must not leave it lying
                _log.exception("taking up execution %s failed; it is tried again", execution)
                continue
            if not live.is_dropped:  # others may have told it something meanwhile, and have lost that
                live.setbacks = setbacks
                return live

    async def _expect_blobs(self, live: Live, reports: list[Signal]) -> None:
        """Large results must be at hand before they are reported."""
        for report in reports:
            await live.expect(self._engine.memory.values.load, report)

    # An answer was lost

    def suspect_strays(self) -> None:
        """A transaction that gives us executions may be through, though nobody told us."""
        self._engine.memory.may_have_strays = True

    async def find_strays(self) -> None:
        """Take up what the store says is ours and we know nothing of, and tell what was written down and not told."""
        engine = self._engine
        if not engine.memory.may_have_strays:
            return
        # Those that come up meanwhile are for the next time.
        engine.memory.may_have_strays = False
        try:
            after = ""
            while rows := await owned.owned(engine.store, engine.store.worker, after=after, limit=BATCH):
                await self.take_up([row.execution for row in rows if not self._is_in_hand(row)])
                after = rows[-1].execution
            await engine.letters.catch_up()
        except RopewalkError:
            self.suspect_strays()
            raise

    def _is_in_hand(self, row: owned.Live) -> bool:
        """Whether somebody here sees to it. One that was only loaded, and has a slot or nothing to do, is not."""
        memory = self._engine.memory
        if row.execution in self._lost or self._engine.claims.owes(row.execution):
            return True
        live = memory.lives.get(row.execution)
        if live is None and memory.knows(row.execution):
            self.suspect_strays()  # on its way in or out: looked at again
            return True
        return live is not None and (live.has_slot or not (row.has_slot or live.is_idle))

    # The lease is lost

    def lost_the_lease(self, why: str) -> None:
        """Others may have everything we had: let go of all of it, and come back as somebody else."""
        if not self._is_rejoining:
            self._is_rejoining = True
            _log.error(
                "worker %s has lost its lease, its executions go on elsewhere: %s", self._engine.store.worker, why
            )
            self._engine.children.spawn(self._rejoin())

    async def _rejoin(self) -> None:
        engine = self._engine
        engine.memory.is_away = True
        engine.claims.forget()
        for live in list(engine.memory.lives.values()):
            self.drop(live)
        for pause in chain(REJOINING, repeat(REJOINING[-1])):
            try:
                await engine.store.rejoin()
                break
            except RopewalkError as error:
                _log.warning("cannot come back yet: %s", error)
            except Exception:  # noqa: BLE001 -- a fault of ours must not keep this worker away for good
                _log.exception("coming back failed; it is tried again")
            await asyncio.sleep(pause)
        self._is_rejoining = engine.memory.is_away = False
        _log.warning("back as worker %s", engine.store.worker)
        engine.claims.asked()
        if len(engine.store.rewinds) > self._rewinds:
            await self._begin_anew(engine.store.rewinds[self._rewinds :])

    async def _begin_anew(self, rewinds: Sequence[Rewind]) -> None:
        """The database went back in time: nothing of what was read before is to be believed, and people must know."""
        engine = self._engine
        self._rewinds += len(rewinds)
        engine.memory.forget_versions()
        engine.workflow_changes += 1
        engine.followers.begin_anew()
        for rewind in rewinds:
            _log.error("worker %s: %s; see docs/operations.md, and run `ropewalk check`", rewind.worker, rewind.why)
        try:
            async with engine.store.transaction() as tx:
                for rewind in rewinds:
                    await audit.note_rewind(tx, str(uuid_utils.uuid7()), rewind)
        except RopewalkError as error:
            _log.error("that the database went back in time cannot be noted in its audit log: %s", error)

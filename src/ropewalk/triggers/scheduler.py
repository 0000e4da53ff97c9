"""Fires schedules when they are due. Any number of servers may do so: each takes those that no other is at.

A server that dies while it is at a trigger loses nothing: the due time was not moved on, and another server takes the
trigger when `CLAIMED_FOR` is over.
"""

import asyncio
import logging
from functools import lru_cache
from typing import Final

import msgspec

from ropewalk.core.duration import SECOND
from ropewalk.core.errors import RopewalkError
from ropewalk.core.instant import rfc3339
from ropewalk.core.schedule import Schedule
from ropewalk.service import Service
from ropewalk.service.triggers.firing import Firing, Moved, settings_of
from ropewalk.store import triggers
from ropewalk.store.triggers import Fire, Trigger
from ropewalk.triggers.planning import MISSED, Planned, next_time, plan

CLAIMED_FOR: Final = 10 * SECOND
AT_ONCE: Final = 500
LONGEST_PAUSE: Final = 1.0
"""How long (s) a server sleeps at most: a trigger may be new, and the question costs next to nothing."""
RETRY: Final = 0.1
"""How long (s) to wait while another server is at what is due."""
RECHECK: Final = SECOND
"""How often a schedule that queues looks whether its last execution has ended."""

_log = logging.getLogger("ropewalk.triggers")


class Scheduler:
    """The loop of one server."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._store = service.store
        self._firing = Firing(service)

    async def run(self) -> None:
        """Fire what is due, for ever."""
        while True:
            await asyncio.sleep(await self._step())

    async def _step(self) -> float:
        """Fire what is due; how long until something may be due again (s)."""
        try:
            while await self.fire_due():
                pass
            following = await triggers.next_time(self._store)
        except RopewalkError as error:
            _log.warning("schedules cannot be looked at for now: %s", error)
            return LONGEST_PAUSE
        left = LONGEST_PAUSE if following is None else (following - self._store.now()) / SECOND
        # What is due and could not be claimed is in the hands of another server, or of one that died.
        return min(LONGEST_PAUSE, left if left > 0 else RETRY)

    async def fire_due(self) -> int:
        """Fire those whose time has come; how many there were."""
        now = self._store.now()
        due = await triggers.next_time(self._store)
        if due is None or due > now:
            return 0
        async with self._store.transaction() as tx:
            claimed = await triggers.claim_due(tx, now, now + CLAIMED_FOR, AT_ONCE)
        await asyncio.gather(*[self._look(each) for each in claimed])
        return len(claimed)

    async def _look(self, trigger: Trigger) -> None:
        try:
            await self._decide(trigger)
        except RopewalkError as error:
            # It is looked at again when the claim is over, by this server or another.
            _log.warning("trigger %s of workflow %s cannot fire for now: %s", trigger.name, trigger.workflow, error)
        except Exception:  # noqa: BLE001 -- a fault of ours about one trigger keeps no other from firing
            _log.exception("trigger %s of workflow %s failed", trigger.id, trigger.workflow)

    async def _decide(self, trigger: Trigger) -> None:
        schedule = schedule_of(trigger)
        now = self._store.now()
        if trigger.cursor_at is None:
            await self._move(trigger, (), Moved(now, next_time(schedule, trigger.id, now)))
            return
        planned = plan(schedule, settings_of(trigger), trigger.id, trigger.cursor_at, now)
        if planned.due is not None and await self._firing.is_held_up(trigger):
            await self._postpone(trigger, now + RECHECK)
            return
        await self._carry_out(trigger, planned)

    async def _carry_out(self, trigger: Trigger, planned: Planned) -> None:
        if planned.missed:
            next_at = planned.next_at if planned.due is None else self._store.now()
            await self._move(trigger, planned.missed, Moved(planned.cursor, next_at))
        if planned.due is not None:
            event = {"dueAt": rfc3339(planned.due), "trigger": trigger.name}
            moved = Moved(planned.due, planned.next_at)
            await self._firing.fire(trigger, rfc3339(planned.due), event, moved=moved)
        elif not planned.missed:
            await self._move(trigger, (), Moved(planned.cursor, planned.next_at))

    async def _move(self, trigger: Trigger, missed: tuple[int, ...], moved: Moved) -> None:
        """Record what was missed, and where the trigger goes on."""
        now = self._store.now()
        late = "no server was there in time"
        rows = [Fire(trigger.id, rfc3339(due), trigger.workspace, now, due, None, MISSED, late) for due in missed]
        async with self._store.transaction() as tx:
            await triggers.write(tx, rows)
            await tx.execute("move_trigger", moved.cursor, moved.next_at, trigger.id)

    async def _postpone(self, trigger: Trigger, until: int) -> None:
        async with self._store.transaction() as tx:
            await tx.execute("postpone_trigger", until, trigger.id)


def schedule_of(trigger: Trigger) -> Schedule:
    """The schedule of a trigger, made once for the same settings."""
    return _schedule(trigger.settings, trigger.changed_at)


@lru_cache(maxsize=20_000)
def _schedule(settings: str, anchor: int) -> Schedule:
    return Schedule(msgspec.json.decode(settings), anchor)

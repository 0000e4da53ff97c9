"""One happening becomes one start, or one recorded reason why not: I-34.

The start, the row of the fire and the place where the trigger goes on are one commit. A fire that is known already, by
another server or before a crash, is answered with what became of it then.
"""

import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from ropewalk.core.acceptance import StartRequest, Version
from ropewalk.core.errors import (
    Conflict,
    InvalidInput,
    InvalidTransition,
    NotFound,
    RopewalkError,
    Unavailable,
    VersionLost,
)
from ropewalk.core.expression import ExpressionError, Scope, compile_template, is_true
from ropewalk.core.signals import Cancel
from ropewalk.core.state import TriggerType
from ropewalk.service.starting import alone
from ropewalk.service.triggers.backlog import MOST_WAITING
from ropewalk.store import triggers
from ropewalk.store.access import Row
from ropewalk.store.triggers import Fire, Trigger

LONGEST_KEY: Final = 512
LONGEST_DETAIL: Final = 500
DEEPEST: Final = 8
"""How many executions may follow from each other by events before a trigger starts no more."""

_COME_AGAIN: Final = (TriggerType.WEBHOOK, TriggerType.QUEUE)
"""What is delivered again if it was not taken."""

if TYPE_CHECKING:
    from ropewalk.service.verbs import Service

_log = logging.getLogger("ropewalk.triggers")


class Reason(StrEnum):
    """Why a happening started nothing."""

    OVERLAP = "OVERLAP"
    MISFIRE = "MISFIRE"
    FILTERED = "FILTERED"
    DISABLED = "DISABLED"
    BACKLOG = "BACKLOG"
    INVALID = "INVALID"
    MISSING = "MISSING"
    LOOP = "LOOP"
    POISON = "POISON"


class Fired(Struct, frozen=True):
    """What became of a happening; `is_new` is false if it had been decided before."""

    execution: str | None
    reason: str | None = None
    detail: str | None = None
    is_new: bool = True


class Moved(Struct, frozen=True):
    """Where a trigger by the clock goes on: the due time that is decided, and when to look again."""

    cursor: int
    next_at: int | None


class Skipped(RopewalkError):
    """Nothing is started; `reason` says why."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Firing:
    """Starts what triggers ask for, in any workspace."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._store = service.store
        self._engine = service.engine

    async def fire(self, trigger: Trigger, key: str, event: Mapping[str, Any], *, moved: Moved | None = None,
                   is_asked: bool = False, depth: int = 0) -> Fired:  # fmt: skip
        """Start what the trigger asks for, once for the key; what became of it.

        `is_asked`: a person asked for it, so it is started also if the trigger is switched off, or one is under way.
        `depth` is how many executions led to it.
        """
        name = (trigger.workspace, f"trigger {trigger.id}", key)
        async with alone(self._engine, self._service.keys_under_way, name):
            known = await triggers.fire_of(self._store, trigger.id, key)
            if known is not None:
                return await self._known(trigger, known, moved)
            return await self._fire(trigger, key, event, moved, is_asked, depth)

    async def _fire(self, trigger: Trigger, key: str, event: Mapping[str, Any], moved: Moved | None, is_asked: bool,
                    depth: int) -> Fired:  # fmt: skip
        try:
            request = msgspec.structs.replace(await self.request(trigger, event), depth=depth)
            if depth > DEEPEST:
                raise Skipped(Reason.LOOP, f"more than {DEEPEST} executions follow from each other by events")
            if not is_asked:
                await self._require_place(trigger)
        except Skipped as skipped:
            if skipped.reason is Reason.BACKLOG and trigger.kind in _COME_AGAIN:
                # Not recorded: the sender or the stream tries again, and the same delivery is to start then.
                raise Unavailable(str(skipped)) from None
            return await self.skip(trigger, key, skipped.reason, str(skipped), moved)
        return await self._start(trigger, key, request, moved)

    async def _start(self, trigger: Trigger, key: str, request: StartRequest, moved: Moved | None) -> Fired:
        now = self._store.now()

        def remember(execution: str) -> list[tuple[str, Row]]:
            due = None if moved is None else moved.cursor
            fire = Fire(trigger.id, key, trigger.workspace, now, due, execution, None, None)
            return [("insert_fire", fire), *_move(trigger, execution, moved)]

        try:
            return Fired(await self._engine.start(request, remember=remember))
        except InvalidInput as error:
            return await self.skip(trigger, key, Reason.INVALID, str(error), moved)
        except (Unavailable, Conflict):
            # Another server may have been faster, or the answer was lost: then the row of the fire says so.
            known = await triggers.fire_of(self._store, trigger.id, key)
            if known is None:
                raise
            return await self._known(trigger, known, moved)

    async def _known(self, trigger: Trigger, known: Fire, moved: Moved | None) -> Fired:
        """What became of it before; a server that died in between has not moved the trigger on."""
        if moved is not None:
            async with self._store.transaction() as tx:
                await tx.execute("move_trigger", moved.cursor, moved.next_at, trigger.id)
        return Fired(known.execution, known.reason, known.detail, is_new=False)

    async def skip(self, trigger: Trigger, key: str, reason: Reason, detail: str, moved: Moved | None = None) -> Fired:
        """Record why nothing is started."""
        detail, due = detail[:LONGEST_DETAIL], None if moved is None else moved.cursor
        fire = Fire(trigger.id, key, trigger.workspace, self._store.now(), due, None, reason, detail)
        async with self._store.transaction() as tx:
            known = await triggers.fire_of(tx, trigger.id, key)
            if known is None:
                await triggers.write(tx, [fire])
            if moved is not None:
                await tx.execute("move_trigger", moved.cursor, moved.next_at, trigger.id)
        _log.info("trigger %s of workflow %s starts nothing: %s (%s)", trigger.name, trigger.workflow, reason, detail)
        found = fire if known is None else known
        return Fired(found.execution, found.reason, found.detail, is_new=known is None)

    # What is started

    async def request(self, trigger: Trigger, event: Mapping[str, Any]) -> StartRequest:
        """What the trigger starts with this happening."""
        settings, version = settings_of(trigger), await self._version(trigger)
        definition = version.plan.definition
        scope = Scope(vars=definition.vars)
        scope.event = event
        self._require_true(settings, scope)
        given = _evaluated("input", settings["input"], scope) if "input" in settings else default_input(trigger, event)
        try:
            definition.check_input(given)
        except InvalidInput as error:
            raise Skipped(Reason.INVALID, str(error)) from error
        return StartRequest(
            version=version,
            workspace=trigger.workspace,
            input=given,
            env=self._service.env,
            trigger=TriggerType(trigger.kind),
            payload=dict(event),
            priority=settings.get("priority", 5),
            actor=f"trigger:{trigger.id}",
            bounded_by=() if trigger.bounded_by is None else (trigger.bounded_by,),
        )

    def _require_true(self, settings: Mapping[str, Any], scope: Scope) -> None:
        if "when" in settings and not is_true(_evaluated("when", settings["when"], scope)):
            raise Skipped(Reason.FILTERED, "`when` is not true")

    async def _version(self, trigger: Trigger) -> Version:
        """The version that the trigger starts."""
        if trigger.removed_at is not None:
            raise Skipped(Reason.MISSING, "the trigger was removed")
        found = await self._service.of(trigger.workspace).workflow_cache.get(trigger.workflow)
        if found is None:
            raise Skipped(Reason.MISSING, "its workflow is not there")
        try:
            return await self._engine.versions.startable(found, trigger.version)
        except (NotFound, InvalidTransition, VersionLost) as error:
            raise Skipped(Reason.MISSING, str(error)) from error

    # Whether there is a place for it

    async def _require_place(self, trigger: Trigger) -> None:
        if not trigger.is_enabled:
            raise Skipped(Reason.DISABLED, "the trigger is switched off")
        if await self._service.backlog.is_full(trigger.workspace):
            raise Skipped(Reason.BACKLOG, f"{MOST_WAITING:,} executions wait in the workspace already")
        last, overlap = trigger.last_execution, overlap_of(trigger)
        if last is None or overlap == "allow" or not await self._is_full(trigger, last):
            return
        if overlap == "cancel":
            await self._cancel(trigger, last)
        elif overlap == "skip":
            raise Skipped(Reason.OVERLAP, f"execution {last} is still under way")

    async def _is_full(self, trigger: Trigger, last: str) -> bool:
        """Whether as many of its executions are under way as it may have."""
        most: int = settings_of(trigger).get("concurrency", 1)
        if most == 1:
            return await triggers.is_under_way(self._store, last)
        return await triggers.under_way(self._store, trigger.id) >= most

    async def _cancel(self, trigger: Trigger, execution: str) -> None:
        by = f"trigger:{trigger.id}"
        try:
            await self._engine.tell(execution, Cancel(by, f"trigger {trigger.name} starts the next one"), by)
        except (InvalidTransition, NotFound):
            return  # it has ended meanwhile

    async def is_held_up(self, trigger: Trigger) -> bool:
        """Whether the next one has to wait until the last has ended."""
        last = trigger.last_execution
        return overlap_of(trigger) == "queue" and last is not None and await self._is_full(trigger, last)


def settings_of(trigger: Trigger) -> dict[str, Any]:
    """What its author wrote."""
    return msgspec.json.decode(trigger.settings, type=dict[str, Any])


def overlap_of(trigger: Trigger) -> str:
    """What it does while its last execution is under way: a schedule starts nothing, deliveries do not wait."""
    default = "skip" if trigger.kind == TriggerType.CRON else "allow"
    return str(settings_of(trigger).get("overlap", default))


def default_input(trigger: Trigger, event: Mapping[str, Any]) -> Any:
    """The input of a trigger that names none: what was sent; a schedule has nothing."""
    return event.get("body") if trigger.kind == TriggerType.WEBHOOK else event.get("payload")


def _evaluated(field: str, written: Any, scope: Scope) -> Any:
    try:
        return compile_template(written).resolve(scope)
    except ExpressionError as error:
        raise Skipped(Reason.INVALID, f"{field}: {error}") from error


def _move(trigger: Trigger, execution: str, moved: Moved | None) -> list[tuple[str, Row]]:
    if moved is not None:
        return [("move_trigger_on", (moved.cursor, moved.next_at, execution, trigger.id))]
    # Where no start asks for the one before, none waits for another at the row of the trigger.
    return [] if overlap_of(trigger) == "allow" else [("set_last_execution", (execution, trigger.id))]

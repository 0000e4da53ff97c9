"""What callers do with triggers: make, switch, fire, try out, fill in a range, remove; each with its audit row."""

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import uuid_utils

from ropewalk.core.canonical import JSON, json_problems
from ropewalk.core.definition.report import Report
from ropewalk.core.definition.triggers import TRIGGER, check_triggers, kind_of
from ropewalk.core.errors import Conflict, InvalidInput, InvalidTransition, NotFound, Problem
from ropewalk.core.instant import rfc3339
from ropewalk.core.schedule import Schedule, ScheduleError, moment_of
from ropewalk.core.state import TriggerType
from ropewalk.service.credential_checks import MayUse, require_credential_of
from ropewalk.service.triggers import events, reading
from ropewalk.service.triggers.declaring import first_look, new_trigger
from ropewalk.service.triggers.firing import Fired, Firing, Skipped, settings_of
from ropewalk.store import audit, triggers, workflows
from ropewalk.store.access import Transaction
from ropewalk.store.rows import AuditEntry
from ropewalk.store.triggers import Trigger

if TYPE_CHECKING:
    from ropewalk.service.verbs import Service

MOST_BACKFILLED: Final = 100_000
SHOWN: Final = 100
LONGEST_NAME: Final = 200


ACTIONS: Final = ("create", "remove", "enable", "disable", "fire", "test", "backfill")


class HasTriggers:
    """What a service offers for triggers."""

    @property
    def triggers(self: "Service") -> "TriggerVerbs":  # type: ignore[misc]  # a part of that class alone
        """What is done with the triggers of the workspace."""
        return TriggerVerbs(self)

    async def publish(self: "Service", subject: str, payload: JSON = None, by: str = "local") -> int:  # type: ignore[misc]  # as above
        """Publish an event: executions that wait for it are told, triggers fired. How many were told; durable."""
        return (await events.publish(self, subject, payload, by)).told

    async def trigger(self: "Service", action: str, arguments: Mapping[str, JSON], by: str = "local") -> JSON:  # type: ignore[misc]  # as above
        """Do one of `ACTIONS` with these arguments; what came of it, as JSON."""
        return await TriggerVerbs(self).do(action, arguments, by)


class TriggerVerbs:
    """The verbs for the triggers of one workspace."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._store = service.store

    async def do(self, action: str, arguments: Mapping[str, JSON], by: str) -> JSON:
        """One of `ACTIONS`, by name, for callers that are another process."""
        match action:
            case "create":
                return await self.create(arguments["workflow"], arguments["settings"], by)
            case "remove":
                return await self.remove(arguments["trigger"], by)
            case "enable" | "disable":
                return await self.switch(arguments["trigger"], on=action == "enable", by=by)
            case "fire":
                fired = await self.fire(arguments["trigger"], arguments.get("event"), by)
                return {"executionId": fired.execution, "reason": fired.reason, "detail": fired.detail}
            case "test":
                return await self.try_out(arguments["trigger"], arguments.get("event"))
            case "backfill":
                about = (arguments["trigger"], arguments["since"], arguments["until"], by)
                how = {"concurrency": arguments["concurrency"], "dry_run": arguments["dryRun"]}
                return await self.backfill(*about, **how)
        raise InvalidInput([Problem(("action",), f"must be one of {', '.join(ACTIONS)}")])

    async def create(self, workflow: str, settings: Mapping[str, Any], by: str, bounded_by: str | None = None,
                     may_use: MayUse | None = None) -> dict[str, Any]:  # fmt: skip
        """Make a trigger of a workflow (its id or name); it starts the published version."""
        _require_sound(settings)
        await require_credential_of(self._store, self._service.workspace, settings, may_use)
        now = self._store.now()
        async with self._store.transaction() as tx:
            found = await workflows.find(tx, self._service.workspace, workflow)
            if found is None:
                raise NotFound(f"there is no workflow {workflow!r}")
            taken = {each.name: each for each in await triggers.of_workflow(tx, found.id)}
            name = settings.get("name") or _free_name(settings, taken)
            if name in taken and taken[name].removed_at is None:
                raise Conflict(f"workflow {found.name!r} has a trigger {name!r} already: change or remove that one")
            if name in taken:
                await tx.execute("rename_trigger", f"{name[:150]} (removed {uuid_utils.uuid7()})", taken[name].id)
            row = new_trigger(found, name, settings, by, now, bounded_by=bounded_by)
            await tx.execute("insert_trigger", *row)
            await self._note(tx, by, "create-trigger", row.id, None, name)
        self._service.changed()
        return await reading.get_trigger(self._store, self._service.workspace, row.id)

    async def switch(self, trigger: str, *, on: bool, by: str) -> bool:
        """Let it fire or not, from now on; whether that changed anything. What was due meanwhile is not fired."""
        found, now = await self.find(trigger), self._store.now()
        if bool(found.is_enabled) == on:
            return False
        async with self._store.transaction() as tx:
            await tx.execute("switch_trigger", int(on), None, first_look(found.kind, on, now), found.id)
            await self._note(tx, by, "enable-trigger" if on else "disable-trigger", found.id, None, found.name)
        self._service.changed()
        return True

    async def remove(self, trigger: str, by: str) -> bool:
        """Take away one that was made by hand; false if it was gone."""
        found = await reading.find(self._store, self._service.workspace, trigger, is_removed=True)
        if found.removed_at is not None:
            return False
        if found.is_declared:
            raise InvalidTransition(
                f"trigger {found.name!r} is part of the definition: publish a version without it, or disable it"
            )
        async with self._store.transaction() as tx:
            await tx.execute("remove_trigger", self._store.now(), found.id)
            await self._note(tx, by, "remove-trigger", found.id, found.name, None)
        self._service.changed()
        return True

    async def fire(self, trigger: str, event: JSON, by: str, key: str | None = None) -> Fired:
        """Start what it asks for now, whether or not it is switched on."""
        found = await self.find(trigger)
        about = f"manual:{by}:{uuid_utils.uuid7() if key is None else key}"
        return await self._firing.fire(found, about, _happening(found, event, self._store.now()), is_asked=True)

    async def try_out(self, trigger: str, event: JSON) -> dict[str, Any]:
        """What it would start with this happening, or why nothing; nothing is started."""
        found = await self.find(trigger)
        try:
            request = await self._firing.request(found, _happening(found, event, self._store.now()))
        except Skipped as skipped:
            return {"starts": False, "reason": skipped.reason, "detail": str(skipped), "input": None, "version": None}
        return {
            "starts": True, "reason": None, "detail": None, "input": request.input, "version": request.version.version,
        }  # fmt: skip

    async def backfill(self, trigger: str, since: str, until: str, by: str, *, concurrency: int = 1,
                       dry_run: bool = False) -> dict[str, Any]:  # fmt: skip
        """Start what was due from one moment up to the other: a trigger of its own that ends with the last of them.

        It is durable, told of like any other, and removed to stop it. A second one of the same range starts nothing
        that is under way under the same name.
        """
        found = await self.find(trigger)
        if found.kind != TriggerType.CRON:
            raise InvalidInput([Problem(("trigger",), "only a schedule has due times")])
        begin, end, schedule = _range(found, since, until, self._store.now())
        dues = list(islice(schedule.between(begin - 1, end), MOST_BACKFILLED + 1))
        if len(dues) > MOST_BACKFILLED:
            raise InvalidInput([Problem(("until",), f"the range has more than {MOST_BACKFILLED:,} due times")])
        told = {"count": len(dues), "times": [rfc3339(each) for each in dues[:SHOWN]]}
        if dry_run or not dues:
            return {**told, "trigger": None}
        settings = {
            **{name: value for name, value in settings_of(found).items() if name not in ("enabled", "jitter")},
            "name": f"backfill of {found.name} from {rfc3339(begin)} to {rfc3339(end)}"[:LONGEST_NAME],
            "start": rfc3339(begin), "end": rfc3339(end), "misfire": "all", "overlap": "queue",
            "concurrency": concurrency,
        }  # fmt: skip
        made = await self.create(found.workflow, settings, by, found.bounded_by)
        await self._begin_at(made["id"], begin - 1)
        return {**told, "trigger": made["id"]}

    async def _begin_at(self, trigger: str, cursor: int) -> None:
        async with self._store.transaction() as tx:
            await tx.execute("move_trigger", cursor, self._store.now(), trigger)

    async def find(self, trigger: str) -> Trigger:
        """The trigger of this id, or the only one of this name."""
        return await reading.find(self._store, self._service.workspace, trigger)

    @property
    def _firing(self) -> Firing:
        return Firing(self._service)

    async def _note(self, tx: Transaction, by: str, verb: str, trigger: str, before: str | None, after: str | None
                    ) -> None:  # fmt: skip
        about = (self._service.workspace, by, verb, trigger, before, after, None)
        await audit.append(tx, AuditEntry(str(uuid_utils.uuid7()), self._store.now(), *about))


def _require_sound(settings: Mapping[str, Any]) -> None:
    problems = json_problems(dict(settings), ("settings",))
    report = Report(100)
    if not problems:
        TRIGGER.check(dict(settings), ("triggers", 0), report)
        check_triggers([dict(settings)], report)
        problems = [Problem(("settings", *each.path[2:]), each.message) for each in report.result()]
    if problems:
        raise InvalidInput(problems)


def _free_name(settings: Mapping[str, Any], taken: Mapping[str, Trigger]) -> str:
    kind = str(settings.get("webhook") or kind_of(settings).lower())
    return next(name for number in range(1, len(taken) + 2) if (name := f"{kind}-{number}") not in taken)


def _happening(trigger: Trigger, event: JSON, now: int) -> dict[str, Any]:
    """What has happened, as a person says it; of a schedule that it is due now."""
    if event is None:
        return {"dueAt": rfc3339(now), "trigger": trigger.name} if trigger.kind == TriggerType.CRON else {}
    if not isinstance(event, dict):
        raise InvalidInput([Problem(("event",), "must be an object")])
    if problems := json_problems(event, ("event",)):
        raise InvalidInput(problems)
    return event


def _range(trigger: Trigger, since: str, until: str, now: int) -> tuple[int, int, Schedule]:
    try:
        begin, end = moment_of(since), moment_of(until)
    except ScheduleError as error:
        raise InvalidInput([Problem(("since",), str(error))]) from error
    if not begin < end <= now:
        raise InvalidInput([Problem(("until",), "must be after since, and not in the future")])
    settings = {name: value for name, value in settings_of(trigger).items() if name not in ("start", "end", "jitter")}
    return begin, end, Schedule(settings, trigger.changed_at)

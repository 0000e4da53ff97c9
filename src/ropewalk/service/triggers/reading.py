"""What is told of triggers: how they stand, when they are due next, what became of them, and why nothing starts."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from ropewalk.core.duration import DAY
from ropewalk.core.errors import NotFound
from ropewalk.core.instant import moment, rfc3339
from ropewalk.core.schedule import Schedule
from ropewalk.core.state import TriggerType
from ropewalk.service.triggers.firing import overlap_of
from ropewalk.service.triggers.firing import settings_of as settings_of
from ropewalk.store import triggers, workflows
from ropewalk.store.access import Reader
from ropewalk.store.triggers import Fire, Trigger

HOOKS: Final = "/hooks"
MOST_TIMES: Final = 1_000
RECENT: Final = 20
"""Among so many fires the last execution is looked for, if the trigger's row does not say it."""
LATELY: Final = DAY
"""What an explanation counts."""
WORDS: Final = {
    "OVERLAP": "the execution before was still under way",
    "MISFIRE": "no server was there in time",
    "FILTERED": "`when` was not true",
    "DISABLED": "the trigger was switched off",
    "BACKLOG": "too many executions waited in the workspace",
    "INVALID": "the input could not be made, or does not fit the workflow",
    "MISSING": "there was no version to start",
    "POISON": "deliveries of the message failed as often as the trigger allows",
    "LOOP": "too many executions followed from each other by events",
}


async def find(reader: Reader, workspace: str, named: str, *, is_removed: bool = False) -> Trigger:
    """The trigger of this id, also one that `is_removed`, or the only one of this name; NotFound if there is none."""
    found = await triggers.get(reader, workspace, named)
    if found is not None and (is_removed or found.removed_at is None):
        return found
    alike = [each for each in await _all(reader, workspace) if each.name == named]
    if len(alike) == 1:
        return alike[0]
    several = f"there are {len(alike)} triggers {named!r}: name one by its id" if alike else None
    raise NotFound(several or f"there is no trigger {named!r}")


async def _all(reader: Reader, workspace: str) -> list[Trigger]:
    found: list[Trigger] = []
    while page := await triggers.listed(reader, workspace, after=found[-1].id if found else "", limit=500):
        found += page
    return found


async def list_triggers(
    reader: Reader, workspace: str, workflow: str = "", *, after: str = "", limit: int = 50
) -> list[dict[str, Any]]:
    """The triggers of a workspace, of one workflow (its id) or of all, after a cursor."""
    found = await triggers.listed(reader, workspace, workflow, after=after, limit=limit)
    names: dict[str, str] = {}
    for each in found:
        if each.workflow not in names:
            known = await workflows.get(reader, workspace, each.workflow)
            names[each.workflow] = "" if known is None else known.name
    return [trigger_of(each, names[each.workflow]) for each in found]


async def get_trigger(reader: Reader, workspace: str, named: str) -> dict[str, Any]:
    """One trigger as people read it."""
    found = await find(reader, workspace, named)
    workflow = await workflows.get(reader, workspace, found.workflow)
    told = trigger_of(found, "" if workflow is None else workflow.name)
    if found.last_execution is None:
        latest = await triggers.fires(reader, found.id, limit=RECENT)
        told["lastExecution"] = next((each.execution for each in latest if each.execution), None)
    return told


def trigger_of(trigger: Trigger, workflow: str) -> dict[str, Any]:
    """The trigger as people read it."""
    return {
        "id": trigger.id,
        "name": trigger.name,
        "kind": trigger.kind,
        "workflowId": trigger.workflow,
        "workflow": workflow,
        "version": trigger.version,
        "settings": settings_of(trigger),
        "enabled": bool(trigger.is_enabled),
        "declared": bool(trigger.is_declared),
        "words": words_of(trigger),
        "path": None if trigger.token is None else f"{HOOKS}/{trigger.token}",
        "nextAt": moment(next_due(trigger)),
        "lastExecution": trigger.last_execution,
        "createdAt": rfc3339(trigger.created_at),
        "createdBy": trigger.created_by,
    }


def words_of(trigger: Trigger) -> str:
    """When it fires, in words."""
    settings = settings_of(trigger)
    if trigger.kind == TriggerType.CRON:
        return Schedule(settings, trigger.changed_at).in_words()
    if trigger.kind == TriggerType.EVENT:
        return f"event {settings['event']}"
    if trigger.kind == TriggerType.WEBHOOK:
        return f"webhook, {', '.join(settings.get('methods', ['POST']))}"
    return f"queue {settings['queue']}"


def next_due(trigger: Trigger) -> int | None:
    """When a schedule is due next."""
    if trigger.kind != TriggerType.CRON or not trigger.is_enabled:
        return None
    after = trigger.changed_at if trigger.cursor_at is None else trigger.cursor_at
    return Schedule(settings_of(trigger), trigger.changed_at).after(after)


def times(settings: Mapping[str, Any], after: int, count: int, anchor: int = 0) -> dict[str, Any]:
    """A schedule in words, and its next due times in UTC."""
    schedule = Schedule(settings, anchor)
    found = islice(schedule.between(after, 2**62), min(count, MOST_TIMES))
    return {"words": schedule.in_words(), "times": [rfc3339(each) for each in found]}


def fire_of(fire: Fire) -> dict[str, Any]:
    """What became of one due time, delivery or message."""
    return {
        "key": fire.key,
        "at": rfc3339(fire.at),
        "dueAt": moment(fire.due_at),
        "executionId": fire.execution,
        "reason": fire.reason,
        "detail": fire.detail,
    }


async def explain(reader: Reader, trigger: Trigger, now: int, trouble: str | None = None) -> dict[str, Any]:
    """Why it starts nothing, or when it will; `trouble` is what keeps a server from its queue now."""
    tallies = await triggers.tallies(reader, trigger.id, now - LATELY)
    started = tallies.pop(None, 0)
    reasons = [*await _standing(reader, trigger, trouble), *_lately(started, tallies)]
    skipped = {reason: count for reason, count in tallies.items() if reason is not None}
    return {"trigger": trigger.id, "name": trigger.name, "reasons": reasons, "started": started, "skipped": skipped}


async def _standing(reader: Reader, trigger: Trigger, trouble: str | None) -> list[str]:
    if not trigger.is_enabled:
        return [f"it is switched off: ropewalk triggers enable {trigger.id}"]
    if trouble is not None:
        return [f"it takes no messages for now: {trouble}"]
    last = trigger.last_execution
    if last is not None and overlap_of(trigger) == "queue" and await triggers.is_under_way(reader, last):
        return [f"it waits for the end of execution {last}, since it says `overlap: queue`"]
    if trigger.kind != TriggerType.CRON:
        return [f"it waits: {words_of(trigger)}"]
    due = next_due(trigger)
    return ["it is never due again"] if due is None else [f"next at {rfc3339(due)} ({words_of(trigger)})"]


def _lately(started: int, tallies: Mapping[str | None, int]) -> list[str]:
    total = started + sum(tallies.values())
    return [
        f"skipped {count} of {total} in the last day because {WORDS.get(str(reason), str(reason))}"
        for reason, count in sorted(tallies.items(), key=lambda each: -each[1])
    ]

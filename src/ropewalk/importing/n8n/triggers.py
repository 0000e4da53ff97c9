"""What starts a workflow."""

import re
from typing import Any

from ropewalk.importing.n8n.flows import Flow
from ropewalk.importing.n8n.reading import whole
from ropewalk.importing.n8n.table import Desk, Made, Out, credential_name, shown, translates

INPUT = Flow("input")
_CRON = re.compile(r"\S+(?: +\S+){4,5}")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def trigger(desk: Desk, triggers: list[dict[str, Any]]) -> Made:
    """A node that does nothing but begin: what starts the workflow stands among its triggers."""
    node = {"id": desk.id, "type": "noop", "name": shown(desk.source.name)}
    return Made([node], {0: Out(INPUT, desk.id)}, triggers=triggers)


@translates("manualTrigger", "start", "executeWorkflowTrigger")
def by_hand(desk: Desk) -> Made:
    return trigger(desk, [])


@translates("scheduleTrigger")
def schedule(desk: Desk) -> Made:
    rules = desk.rows("rule", "interval") or [{}]
    crons = [_cron_of(desk, rule) for rule in rules]
    return trigger(desk, [{"cron": each} for each in crons if each])


@translates("cron")
def cron(desk: Desk) -> Made:
    crons = [_old_cron_of(desk, rule) for rule in desk.rows("triggerTimes", "item")]
    return trigger(desk, [{"cron": each} for each in crons if each])


@translates("interval")
def interval(desk: Desk) -> Made:
    unit, every = desk.get("unit", default="seconds"), whole(desk.get("interval"), 1, 10_000, 1)
    if unit == "seconds":
        desk.differs("it fires every minute, since a schedule has no seconds here")
        return trigger(desk, [{"cron": "* * * * *"}])
    return trigger(
        desk, [{"cron": f"0 */{min(every, 23)} * * *" if unit == "hours" else f"*/{min(every, 59)} * * * *"}]
    )


def _cron_of(desk: Desk, rule: dict[str, Any]) -> str | None:
    """A rule of a schedule as five fields."""
    minute = whole(rule.get("triggerAtMinute"), 0, 59, 0)
    hour = whole(rule.get("triggerAtHour"), 0, 23, 0)
    match rule.get("field", "days"):
        case "cronExpression":
            return _own_cron(desk, rule.get("expression"))
        case "seconds":
            desk.differs("it fires every minute, since a schedule has no seconds here")
            return "* * * * *"
        case "minutes":
            return f"*/{whole(rule.get('minutesInterval'), 1, 59, 5)} * * * *"
        case "hours":
            return f"{minute} {_every(whole(rule.get('hoursInterval'), 1, 23, 1))} * * *"
        case "weeks":
            return _weekly(desk, rule, minute, hour)
        case "months":
            day = whole(rule.get("triggerAtDayOfMonth"), 1, 31, 1)
            return f"{minute} {hour} {day} {_every(whole(rule.get('monthsInterval'), 1, 11, 1))} *"
        case _:
            return _daily(desk, rule, minute, hour)


def _every(count: int) -> str:
    return "*" if count == 1 else f"*/{count}"


def _daily(desk: Desk, rule: dict[str, Any], minute: int, hour: int) -> str:
    days = whole(rule.get("daysInterval"), 1, 31, 1)
    if days > 1:
        desk.differs("the count of days begins anew each month")
    return f"{minute} {hour} {_every(days)} * *"


def _weekly(desk: Desk, rule: dict[str, Any], minute: int, hour: int) -> str:
    if whole(rule.get("weeksInterval"), 1, 52, 1) > 1:
        desk.differs("it fires every week, since a schedule cannot leave weeks out")
    given = rule.get("triggerAtDay")
    found = {whole(each, 0, 7, 0) % 7 for each in given} if isinstance(given, list) and given else {0}
    return f"{minute} {hour} * * {','.join(map(str, sorted(found)))}"


def _own_cron(desk: Desk, given: Any) -> str | None:
    text = given.removeprefix("=").strip() if isinstance(given, str) else ""
    fields = text.split()
    if len(fields) == 6:
        desk.differs("the seconds of its schedule are left out")
        fields = fields[1:]
    if len(fields) != 5 or not _CRON.fullmatch(" ".join(fields)):
        desk.differs(f"its schedule {text[:50]!r} is none here: give it a trigger")
        return None
    return " ".join(fields)


def _old_cron_of(desk: Desk, rule: dict[str, Any]) -> str | None:
    minute, hour = whole(rule.get("minute"), 0, 59, 0), whole(rule.get("hour"), 0, 23, 14)
    match rule.get("mode", "everyDay"):
        case "everyMinute":
            return "* * * * *"
        case "everyHour":
            return f"{minute} * * * *"
        case "everyWeek":
            day = rule.get("weekday")
            return f"{minute} {hour} * * {day if isinstance(day, str) and day in '0123456' and day else 1}"
        case "everyMonth":
            return f"{minute} {hour} {whole(rule.get('dayOfMonth'), 1, 31, 1)} * *"
        case "everyX":
            every = whole(rule.get("value"), 1, 59, 2)
            return f"*/{every} * * * *" if rule.get("unit") == "minutes" else f"0 */{min(every, 23)} * * *"
        case "custom":
            return _own_cron(desk, rule.get("cronExpression"))
        case _:
            return f"{minute} {hour} * * *"


@translates("webhook", "formTrigger")
def webhook(desk: Desk) -> Made:
    method = desk.get("httpMethod", default="GET" if desk.source.kind == "webhook" else "POST")
    methods = [each for each in (method if isinstance(method, list) else [method]) if each in _METHODS]
    hook: dict[str, Any] = {"webhook": credential_name(str(desk.get("path") or desk.source.name))}
    hook["methods"] = methods or ["POST"]
    hook["auth"] = "none" if desk.get("authentication", default="none") == "none" else "bearer"
    if hook["auth"] == "bearer":
        hook["credential"] = credential_name(next(iter(desk.source.credentials.values()), "webhook"))
        desk.differs(f"callers prove themselves by a token, in the credential {hook['credential']!r}")
    mode = {"lastNode": "result", "responseNode": "respond"}.get(str(desk.get("responseMode")), "accepted")
    hook["answer"] = mode
    desk.differs("the path of the hook is another; what starts it is {headers, params, query, body}")
    return trigger(desk, [hook])


@translates("chatTrigger")
def chat(desk: Desk) -> Made:
    desk.differs("there is no chat window: start it with {chatInput, sessionId}")
    return trigger(desk, [])

"""What a document may say of triggers: their fields as tables, their kinds and names, and what is wrong with them."""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_network
from typing import Any, Final

from ropewalk.core.canonical import JSON, Path, shown
from ropewalk.core.definition.kinds import (
    Anything,
    Choice,
    Duration,
    Either,
    Field,
    Flag,
    ListOf,
    OneOf,
    Record,
    Text,
    Whole,
)
from ropewalk.core.definition.report import Report
from ropewalk.core.duration import DAY, HOUR, MINUTE, SECOND
from ropewalk.core.schedule import LONGEST_JITTER, LONGEST_PERIOD, MOST_RULES, Schedule
from ropewalk.core.state import TriggerType
from ropewalk.core.subject import is_pattern

_title = Text(200, r"[^\x00-\x1f\x7f]+", "a line of text")
_name = Text(128, r"[A-Za-z0-9_.:/-]+", "a name of letters, digits, _ . : / -")
_expression = Text(4_096)
_moment = Text(64)
_place = Text(128, r"[A-Za-z0-9_-]+", "a name of letters, digits, _ -")
_rule = Text(200, r"\S+(?: +\S+){4,5}|@[a-z]+", "five or six fields, or a word like @daily")

_any_trigger = {
    "name": Field(_title, "What people call the trigger; by default its kind and its place."),
    "enabled": Field(Flag(), "Whether it fires. Default true."),
    "when": Field(_expression, "An {{ expression }} over `event`; where it is not true, nothing is started."),
    "input": Field(
        Anything(), "The input it starts with; strings may hold {{ expressions }} over `event`. Default: what was sent."
    ),
    "priority": Field(Whole(0, 9), "Order within the workspace, 9 first. Default 5."),
}

_any_schedule = {
    "zone": Field(Text(64, r"[A-Za-z0-9_+/-]+", "an IANA zone"), "The time zone, like Europe/Berlin. Default UTC."),
    "start": Field(_moment, "Not before this moment, like 2026-11-15T12:00:00Z."),
    "end": Field(_moment, "Not after this moment."),
    "overlap": Field(
        Choice("skip", "queue", "cancel", "allow"),
        "While its last execution is under way: start nothing, wait for its end, cancel it, or start another. Default "
        "skip.",
    ),
    "concurrency": Field(
        Whole(1, 1_000), "How many of its executions may be under way before `overlap` decides. Default 1."
    ),
    "misfire": Field(
        Choice("skip", "latest", "all"),
        "What becomes of due times that were missed: none, the latest, or each is started. Default latest.",
    ),
    "grace": Field(Duration(longest=31 * DAY), "How late a due time may be met and not be missed. Default 1m."),
    "jitter": Field(
        Duration(longest=LONGEST_JITTER), "Delay of each due time, at most this; the same at every server."
    ),
    **_any_trigger,
}

CRON = Record(
    {
        "cron": Field(
            Either(list, ListOf(_rule, longest=MOST_RULES), _rule),
            "When it is due: five fields, six with seconds first, a word like @daily, or a list of such.",
            is_required=True,
        ),
        **_any_schedule,
    }
)

EVERY = Record(
    {
        "every": Field(Duration(SECOND, LONGEST_PERIOD), "How often it is due.", is_required=True),
        "aligned": Field(
            Flag(),
            "Whether it is due at multiples of that by the clock of UTC, or counts from its start. Default true.",
        ),
        **_any_schedule,
    }
)

EVENT = Record(
    {
        "event": Field(Text(256, r"\S+", "a subject pattern"), "The subjects listened to.", is_required=True),
        "filter": Field(_expression, "An {{ expression }} over `event` that must be true for it to listen."),
        "source": Field(Choice("api", "nats"), "Where the events come from. Default api."),
        **_any_trigger,
    }
)

WEBHOOK = Record(
    {
        "webhook": Field(_name, "The name of the hook; its address is made when it is published.", is_required=True),
        "methods": Field(
            ListOf(Choice("GET", "POST", "PUT", "PATCH", "DELETE"), longest=5), "Methods answered. Default POST."
        ),
        "path": Field(
            Text(256, r"[A-Za-z0-9_.{}/-]*", "a path like orders/{id}"),
            "What follows the address; a step in braces is a parameter, in `event.params`. Default: nothing.",
        ),
        "auth": Field(
            Choice("hmac", "stripe", "github", "slack", "shopify", "header", "bearer", "basic", "none"),
            "How senders prove themselves: `hmac` is Standard Webhooks, `header` the HMAC of the body in a header. "
            "Default hmac.",
        ),
        "credential": Field(_name, "The credential that holds the keys, the token, or name and password."),
        "header": Field(_name, "The header of `auth: header`. Default X-Signature."),
        "algorithm": Field(Choice("sha256", "sha512", "sha1"), "The hash of `auth: header`. Default sha256."),
        "encoding": Field(Choice("hex", "base64"), "How `auth: header` writes the HMAC. Default hex."),
        "prefix": Field(Text(32), "What stands before the HMAC of `auth: header`, like `sha256=`."),
        "replayWindow": Field(Duration(longest=HOUR), "How old a signed call may be. Default 5m."),
        "dedupeKey": Field(_expression, "An expression over `event`; a second call with its value starts nothing."),
        "answer": Field(
            Choice("accepted", "result", "respond"),
            "At once, with the result when it is done, or with what a `respond` node says. Default accepted.",
        ),
        "timeout": Field(Duration(SECOND, MINUTE), "How long a caller waits for `result` or `respond`. Default 30s."),
        "allowFrom": Field(
            ListOf(Text(64, r"[0-9a-fA-F:./]+", "an address or a network"), longest=100),
            "The addresses and networks that may deliver. Default: any.",
        ),
        "cors": Field(
            ListOf(Text(256), longest=50), "The origins whose pages may call it; `*` for any. Default: none."
        ),
        "maxBody": Field(Whole(1, 4 * 1024 * 1024), "How many bytes a body may have. Default 1 MiB."),
        **_any_trigger,
    }
)

QUEUE = Record(
    {
        "queue": Field(_place, "The JetStream stream to consume.", is_required=True),
        "credential": Field(_name, "The credential of type `nats` that says where the stream is."),
        "subject": Field(Text(256, r"\S+", "a subject pattern"), "Which of its subjects. Default: all."),
        "consumer": Field(_place, "The durable consumer to use. Default: one of the trigger's own."),
        "dedupeKey": Field(
            _expression,
            "An expression over `event`; a second message with its value starts nothing. Default: its Nats-Msg-Id, "
            "else its place in the stream.",
        ),
        "maxPending": Field(Whole(1, 10_000), "How many messages may be delivered and not yet started. Default 100."),
        "maxDeliveries": Field(
            Whole(1, 1_000), "After how many deliveries that failed a message is given up as POISON. Default 5."
        ),
        "ackWait": Field(
            Duration(SECOND, HOUR),
            "After how long a message that was not acknowledged is delivered again. Default 30s.",
        ),
        **_any_trigger,
    }
)

TRIGGER = OneOf({"cron": CRON, "every": EVERY, "event": EVENT, "webhook": WEBHOOK, "queue": QUEUE})

_KINDS: Final = {
    "cron": TriggerType.CRON,
    "every": TriggerType.CRON,
    "event": TriggerType.EVENT,
    "webhook": TriggerType.WEBHOOK,
    "queue": TriggerType.QUEUE,
}


def kind_of(trigger: Mapping[str, Any]) -> TriggerType:
    """What kind of trigger these settings describe."""
    return next(kind for field, kind in _KINDS.items() if field in trigger)


def names_of(declared: Sequence[Mapping[str, Any]]) -> list[str]:
    """What each is called: as its author says, else by its kind and how many of that kind come before it."""
    counts: dict[str, int] = {}
    return [_name_of(trigger, counts) for trigger in declared]


def _name_of(trigger: Mapping[str, Any], counts: dict[str, int]) -> str:
    kind = kind_of(trigger).lower()
    counts[kind] = counts.get(kind, 0) + 1
    return str(trigger.get("name") or trigger.get("webhook") or f"{kind}-{counts[kind]}")


def check_triggers(triggers: JSON, report: Report) -> None:
    """Reports schedules that are none, patterns that nothing fits, and names that are taken twice."""
    before = report.count
    sound = [each for each in triggers if _is_sound(each)] if isinstance(triggers, list) else []
    for i, trigger in enumerate(triggers if isinstance(triggers, list) else ()):
        if _is_sound(trigger):
            _check(("triggers", i), trigger, report)
    if report.count == before and isinstance(triggers, list) and len(sound) == len(triggers):
        _check_names(names_of(sound), report)


def _is_sound(trigger: JSON) -> bool:
    """Whether it can be looked at: what is wrong with its fields is told by their tables."""
    return isinstance(trigger, dict) and sum(field in trigger for field in _KINDS) == 1


def _check(path: Path, trigger: Mapping[str, Any], report: Report) -> None:
    known = report.count
    TRIGGER.check(trigger, path, quiet := Report(1))
    if quiet.count:
        return
    if kind_of(trigger) is TriggerType.CRON:
        try:
            Schedule(trigger)
        except ValueError as error:
            report.add((*path, _field_of(trigger, str(error))), str(error))
    if "webhook" in trigger:
        _check_webhook(path, trigger, report)
    if "queue" in trigger:
        _check_queue(path, trigger, report)
    if "event" in trigger and not is_pattern(trigger["event"]) and report.count == known:
        report.add(
            (*path, "event"), f"{shown(trigger['event'])} is no pattern; write it like order.paid, order.* or order.>"
        )


def _check_webhook(path: Path, trigger: Mapping[str, Any], report: Report) -> None:
    if trigger.get("auth", "hmac") != "none" and "credential" not in trigger:
        report.add(path, "needs the field 'credential', which holds the key of its senders, or `auth: none`")
    for i, each in enumerate(trigger.get("allowFrom", ())):
        try:
            ip_network(each, strict=False)
        except ValueError:
            report.add((*path, "allowFrom", i), f"{shown(each)} is no address and no network")


def _check_queue(path: Path, trigger: Mapping[str, Any], report: Report) -> None:
    if "credential" not in trigger:
        report.add(path, "needs the field 'credential', of type nats, which says where the stream is")
    subject = trigger.get("subject", ">")
    if not is_pattern(subject):
        report.add((*path, "subject"), f"{shown(subject)} is no pattern; write it like order.paid, order.* or order.>")


def _field_of(trigger: Mapping[str, Any], message: str) -> str:
    """The field that the message is about."""
    if "zone" in trigger and "no zone" in message and "names no zone" not in message:
        return "zone"
    named = (field for field in ("start", "end") if field in trigger and repr(trigger[field]) in message)
    return next(named, "end" if message.startswith("end ") else "cron" if "cron" in trigger else "every")


def _check_names(names: Iterable[str], report: Report) -> None:
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if first.setdefault(name, i) != i:
            report.add(("triggers", i, "name"), f"{shown(name)} is the name of triggers[{first[name]}] already")


def credential_types(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The types of credentials that can hold what the sender has, or lead to the queue; none, if none is needed."""
    if "queue" in settings:
        return ("nats",)
    auth = settings.get("auth", "hmac")
    return {"none": (), "bearer": ("http.bearer",), "basic": ("http.basic",)}.get(auth, ("webhook",))

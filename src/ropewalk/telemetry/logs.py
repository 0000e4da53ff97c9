"""Structured logs: one line a time, JSON for programs or text for people, each with the ids it is about."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from structlog.typing import EventDict, Processor, WrappedLogger

ROOT: Final = "ropewalk"
FAILURES: Final = "failure"
"""The logger of what failed; all it says is worth a line, also what is no warning."""
DETAIL: Final = "errorDetail"
"""The field of a traceback: for programs alone, since it would be a very long line for people."""
_DRIVER: Final = "asyncpg"

# What a reader of lines may take for the end of one, or a terminal for a command.
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

Identify = Callable[[str, str, int | None, int], dict[str, str]]
"""What else is known of an attempt, by its execution, node, item and number: its run and its trace."""


def on_one_line(text: str) -> str:
    """The text with every control character escaped as JSON does it: one event, one line, with any payload."""
    return _CONTROLS.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04x}"


class Format(StrEnum):
    """Who reads the log."""

    JSON = "json"
    CONSOLE = "console"


def _no_names(execution: str, node: str, item: int | None, attempt: int) -> dict[str, str]:
    return {}


@contextmanager
def logs_to(stream: TextIO, form: Format, identify: Identify = _no_names) -> Iterator[None]:
    """Everything Ropewalk logs goes to this stream, ours and what nodes write alike."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_OneLine(_formatter(form, identify)))
    with handled_by(handler, {ROOT: logging.INFO}):
        yield


@contextmanager
def handled_by(handler: logging.Handler, levels: Mapping[str, int]) -> Iterator[None]:
    """Everything Ropewalk logs goes to this handler alone, from these levels on, and what others log too; afterwards
    all is as it was."""
    root, others = logging.getLogger(ROOT), logging.getLogger()
    # A server that is away is told of by the engine, in a line and not in a traceback a second.
    wanted = {**levels, _DRIVER: logging.CRITICAL}
    before = {name: logging.getLogger(name).level for name in wanted}
    propagates, root.propagate = root.propagate, False
    for each in (root, others):
        each.addHandler(handler)
    _set_levels(wanted)
    try:
        yield
    finally:
        for each in (root, others):
            each.removeHandler(handler)
        root.propagate = propagates
        _set_levels(before)
        handler.close()


def _set_levels(levels: Mapping[str, int]) -> None:
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


class EventLogger:
    """Logs events: a name, and what it is about. A record has a sentence for people and these for programs."""

    def __init__(self, name: str) -> None:
        self._wrapped = logging.getLogger(f"{ROOT}.{name}")
        self.isEnabledFor = self._wrapped.isEnabledFor

    def info(self, event: str, **about: Any) -> None:
        self.log(logging.INFO, event, None, about)

    def warning(self, event: str, **about: Any) -> None:
        self.log(logging.WARNING, event, None, about)

    def error(self, event: str, **about: Any) -> None:
        self.log(logging.ERROR, event, None, about)

    def log(self, level: int, event: str, sentence: str | None, about: Mapping[str, Any]) -> None:
        """One record; without a sentence, people read the name and what it is about."""
        if self.isEnabledFor(level):
            said = " ".join((event, *(f"{name}={value}" for name, value in about.items())))
            self._wrapped.log(level, "%s", sentence or said, extra={"event": event, "facts": dict(about)})


def logger(name: str) -> EventLogger:
    """The logger of this name."""
    return EventLogger(name)


class _OneLine(logging.Formatter):
    """Formats as another does, on one line: names, fields and tracebacks too."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        return on_one_line(self._inner.format(record))


def _formatter(form: Format, identify: Identify) -> logging.Formatter:
    # Here, since plain lines do without it, and it takes a tenth of a server's start.
    import structlog

    shared: list[Processor] = [
        _with_record,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        _About(identify),
        structlog.processors.format_exc_info,
        *([] if form is Format.JSON else [_without_detail]),
    ]
    last: Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
        if form is Format.JSON
        else structlog.dev.ConsoleRenderer(colors=False, timestamp_key="at")
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.contextvars.merge_contextvars],
        processors=[*shared, last],
    )


def _with_record(_: "WrappedLogger", __: str, event: "EventDict") -> "EventDict":
    """What an event is called and is about, and what a node says about itself, come as extras of the record."""
    record = event["_record"]
    event.update({name: value for name, value in getattr(record, "facts", {}).items() if name not in event})
    event["event"] = getattr(record, "event", event["event"])
    event["about"], event["fields"] = getattr(record, "about", None), getattr(record, "fields", None)
    return event


def _without_detail(_: "WrappedLogger", __: str, event: "EventDict") -> "EventDict":
    event.pop(DETAIL, None)
    return event


class _About:
    """Puts the ids of an attempt where programs look for them, and never its fields over ours."""

    def __init__(self, identify: Identify) -> None:
        self._identify = identify

    def __call__(self, _: "WrappedLogger", __: str, event: "EventDict") -> "EventDict":
        about: dict[str, Any] | None = event.pop("about", None)
        fields: dict[str, Any] | None = event.pop("fields", None)
        if about:
            attempt = {
                "executionId": about["execution"],
                "workspaceId": about["workspace"],
                "node": about["node"],
                "attempt": about["attempt"],
                **({} if about["item"] is None else {"item": about["item"]}),
            }
            event.update(attempt)
            event.update(self._identify(about["execution"], about["node"], about["item"], about["attempt"]))
        if fields:
            event["fields"] = fields
        return event

"""The retry that a node type brings along, checked where the type is made known."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ropewalk.core.definition.fields import RETRY
from ropewalk.core.definition.report import Report
from ropewalk.core.duration import format_duration


def own_retry(name: str, defaults: Mapping[str, Any]) -> dict[str, Any] | None:
    """The retry of nodes of a type that say none, as a document has it; ValueError if it could not be in one."""
    given = defaults.get("retry")
    if given is None:
        return None
    retry = {key: _plain(value) for key, value in given.items()} if isinstance(given, Mapping) else given
    report = Report()
    RETRY.check(retry, ("retry",), report)
    for problem in report.result():
        raise ValueError(f"{name}: {problem}")
    assert isinstance(retry, dict), "it has been checked"
    return retry


def _plain(value: Any) -> Any:
    return format_duration(value // timedelta(microseconds=1)) if isinstance(value, timedelta) else value

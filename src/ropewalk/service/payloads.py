"""What only those see who may read payloads; the others get null in its place, or nothing, and are told so."""

from collections.abc import Iterable
from typing import Any, Final

Json = dict[str, Any]

EXECUTION: Final = ("input", "vars", "triggerPayload", "concurrencyKey", "output", "outputHash", "errorDetail")
RUN: Final = ("inputs", "inputsHash", "output", "errorDetail")
LETTER: Final = ("inputs", "inputsReference")

_PAYLOADS: Final = frozenset(
    {
        "input",
        "vars",
        "env",
        "payload",
        "output",
        "outputs",
        "inputs",
        "inputsBlob",
        "blob",
        "overrides",
        "concurrencyKey",
    }
)
_IN_ERRORS: Final = frozenset({"detail"})
_IN_WAITS: Final = frozenset({"title", "details", "input", "filter"})


def shown(answer: Json, hidden: Iterable[str], *, may_read: bool) -> Json:
    """The answer as its reader may see it; `payloads` says whether anything was left out."""
    return {**answer, **({} if may_read else dict.fromkeys(hidden)), "payloads": may_read}


def shown_node(node: Json, *, may_read: bool) -> Json:
    """The same for a node, whose error has a detail of its own."""
    error = node["error"]
    hidden = error if may_read or error is None else {**error, "detail": None}
    return {**node, "error": hidden, "payloads": may_read}


def without_payloads(envelope: dict[str, Any]) -> dict[str, Any]:
    """The same event without what was given, made or asked; `payloads` says so."""
    data = _without(envelope["data"], _PAYLOADS)
    for field, hidden in (("error", _IN_ERRORS), ("wait", _IN_WAITS)):
        if isinstance(data.get(field), dict):
            data[field] = _without(data[field], hidden)
    return {**envelope, "data": data, "payloads": False}


def _without(data: dict[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in hidden}

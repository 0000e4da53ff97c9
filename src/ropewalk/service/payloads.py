"""Events for those who may see that something happened, and not with what."""

from typing import Any, Final

_PAYLOADS: Final = frozenset(
    {"input", "vars", "env", "payload", "output", "outputs", "inputs", "blob", "overrides", "concurrencyKey"}
)
_IN_ERRORS: Final = frozenset({"detail"})
_IN_WAITS: Final = frozenset({"title", "details", "input", "filter"})


def without_payloads(envelope: dict[str, Any]) -> dict[str, Any]:
    """The same event without what was given, made or asked; `payloads` says so."""
    data = _without(envelope["data"], _PAYLOADS)
    for field, hidden in (("error", _IN_ERRORS), ("wait", _IN_WAITS)):
        if isinstance(data.get(field), dict):
            data[field] = _without(data[field], hidden)
    return {**envelope, "data": data, "payloads": False}


def _without(data: dict[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in hidden}

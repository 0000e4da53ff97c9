"""What of an answer only those see who may read payloads; the others get null in its place, and are told so."""

from collections.abc import Iterable
from typing import Any, Final

Json = dict[str, Any]

EXECUTION: Final = ("input", "vars", "triggerPayload", "concurrencyKey", "output", "outputHash", "errorDetail")
RUN: Final = ("inputs", "inputsHash", "output", "errorDetail")
LETTER: Final = ("inputs",)


def shown(answer: Json, hidden: Iterable[str], *, may_read: bool) -> Json:
    """The answer as its reader may see it; `payloads` says whether anything was left out."""
    return {**answer, **({} if may_read else dict.fromkeys(hidden)), "payloads": may_read}


def shown_node(node: Json, *, may_read: bool) -> Json:
    """The same for a node, whose error has a detail of its own."""
    error = node["error"]
    hidden = error if may_read or error is None else {**error, "detail": None}
    return {**node, "error": hidden, "payloads": may_read}

"""Trace ids as the W3C has them: an execution continues the trace it was started in, or is one of its own."""

import re
from hashlib import sha256
from typing import Final

_HEADER: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_HEX: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
LONGEST_HEADER: Final = 256


def read_traceparent(header: str | None) -> str | None:
    """The trace a `traceparent` header continues, in the form that is kept; None for a text that is no such header."""
    if header is None or len(header) > LONGEST_HEADER:
        return None
    found = _HEADER.fullmatch(header.strip())
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    is_known = version != "ff" and (version != "00" or more is None)
    return f"00-{trace}-{span}-{flags}" if is_known and int(trace, 16) and int(span, 16) else None


def trace_id(execution: str, continued: str | None) -> str:
    """The 32 digits of an execution's trace: of the one it continues, else its own id's."""
    if continued is not None:
        return continued[3:35]
    digits = execution.replace("-", "").lower()
    return digits if _HEX.fullmatch(digits) else sha256(execution.encode()).hexdigest()[:32]


def span_id(name: str) -> str:
    """The 16 digits of the span of an execution or a run; the same for every worker that tells of it."""
    return sha256(b"span\0" + name.encode()).hexdigest()[:16]

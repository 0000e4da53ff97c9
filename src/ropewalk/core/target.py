"""What a call is aimed at, as one text: the node type, a blank, and the endpoint; and patterns of hosts.

The endpoint is an origin (`https://shop.example:8443`), a host with or without a port, or any other name.
"""

import re
from typing import Final

PATTERN: Final = r"\*|(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?(:[0-9]{1,5})?|\[[0-9a-f:.]+\](:[0-9]{1,5})?"
"""A host, `*.` before one for every host below it, or `*` for any; a port if only that one is meant."""
PATTERN_IN_WORDS: Final = "a host like shop.example or shop.example:8080, *.shop.example for those below it, or *"
_HOST: Final = re.compile(r"(?P<host>\[[^\]]*\]|[^:/]*)(?P<port>:[0-9]+)?")
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}


def type_of(target: str) -> str:
    """The node type that calls the target."""
    return target.partition(" ")[0]


def host_of(target: str) -> tuple[str, str | None]:
    """The host of the target in lower case, and its port if the target tells one; an empty host if it has none."""
    scheme, is_origin, rest = target.partition(" ")[2].partition("://")
    found = _HOST.match((rest if is_origin else scheme).lower())
    assert found is not None, "both parts may be empty"
    port = found["port"]
    return found["host"], port[1:] if port else _DEFAULT_PORTS.get(scheme) if is_origin else None


def is_host_pattern(text: str) -> bool:
    """Whether `matches` understands the text."""
    return re.fullmatch(PATTERN, text) is not None


def matches(pattern: str, target: str) -> bool:
    """Whether the target's host is one that the pattern means."""
    host, port = host_of(target)
    if pattern == "*":
        return bool(host)
    wanted, _, only = pattern.rpartition(":") if not pattern.endswith("]") else (pattern, "", "")
    if not wanted:
        wanted, only = only, ""
    if only and only != port:
        return False
    return host.endswith(wanted[1:]) if wanted.startswith("*.") else host == wanted

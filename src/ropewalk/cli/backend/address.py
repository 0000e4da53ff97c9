"""The address of a store as people give it, and as it may be shown: never with a password in it."""

import re
from typing import Final
from urllib.parse import urlsplit

from ropewalk.core.errors import InvalidInput
from ropewalk.store.address import is_shared, path_of

_HIDDEN: Final = "***"
_SECRET: Final = re.compile(r"(?i)([?&](?:ssl)?password=)[^&#]*")
_HOST: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:\d+)?")
_REMEDY: Final = "write it as postgresql://user:password@host/database, with / ? # @ in a password as %2F %3F %23 %40"


def address(given: str) -> str:
    """The file, or the server's address if it can be taken apart; one that cannot is refused and not repeated."""
    if is_shared(given) and not _is_readable(given):
        raise InvalidInput(f"the address of the database cannot be read: {_REMEDY}")
    return path_of(given)


def _is_readable(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    hosts = parts.netloc.rpartition("@")[2].split(",")
    # A password that was not quoted ends the host too early: what is left of it would be taken for a database.
    return all(map(_HOST.fullmatch, hosts)) and "@" not in parts.path and not parts.fragment


def shown(db: str) -> str:
    """The address without its password."""
    if not is_shared(db):
        return db
    scheme, _, rest = db.partition("://")
    access, at, place = rest.rpartition("@")
    user, colon, _ = access.partition(":")
    secret = f":{_HIDDEN}" if colon else ""
    return f"{scheme}://{user}{secret}{at}{_SECRET.sub(_hidden, place)}"


def _hidden(found: re.Match[str]) -> str:
    return f"{found[1]}{_HIDDEN}"

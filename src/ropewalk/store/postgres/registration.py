"""What the other workers of a shared store are told of one."""

import os
import re
import secrets
import socket
from typing import Final

from msgspec import Struct

from ropewalk.core.canonical import writable
from ropewalk.store.access import Value

_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,200}")


class Registration(Struct, frozen=True):
    """A worker as the others see it."""

    id: str
    version: str
    pool: str
    slots: int

    def row(self, now: int) -> tuple[Value, ...]:
        """Everything but its name, as the statement that registers a worker takes it."""
        return writable(socket.gethostname()), os.getpid(), self.version, self.pool, self.slots, now


def unique_name() -> str:
    """A name that no other worker has had or will have."""
    host = re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname())[:100]
    return f"{host}-{os.getpid()}-{secrets.token_hex(3)}"


def checked_name(name: str) -> str:
    """The name of a worker as it was said; ValueError if it is none."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"a worker's name is of letters, digits and _.:- only: {name[:80]!r}")
    return name

"""Where a database is and how it is spoken to, as a credential says."""

import ssl
from typing import Any

from msgspec import Struct

from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.databases.tls import context_for
from ropewalk.nodes.failure import NodeFailure

PORTS = {"postgres": 5432, "mysql": 3306}


class Server(Struct, frozen=True):
    """A database server."""

    host: str
    port: int
    database: str
    user: str
    password: str
    tls: ssl.SSLContext | None

    @property
    def place(self) -> str:
        return f"the database {self.database} at {self.host}:{self.port}"


def server_of(credential: Credential) -> Server:
    """What the credential says; a permanent failure if it is bound to other hosts."""
    values = credential.values
    host = str(values["host"])
    credential.require_host(host)
    return Server(
        host,
        int(values.get("port") or PORTS[credential.type]),
        str(_required(credential, "database")),
        str(_required(credential, "username")),
        str(values.get("password") or ""),
        context_for(host, str(values.get("tls") or "verify"), values.get("ca")),
    )


def _required(credential: Credential, field: str) -> Any:
    value = credential.values.get(field)
    if not value:
        raise NodeFailure.permanent(f"the credential {credential.name!r} has no {field}")
    return value

"""Credentials as nodes get them: by reference, for one run, and concealed in all that the run reports.

A definition names a credential of its workspace; no expression can read one. The engine answers the questions below
from its store.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ropewalk.nodes.failure import NodeFailure


class Credential(Struct, frozen=True):
    """A credential of a workspace, with its secrets. `hosts` are those it is bound to; none: any host."""

    name: str
    type: str
    values: Mapping[str, Any]
    hosts: tuple[str, ...] = ()
    id: str = ""
    secrets: tuple[str, ...] | None = None
    """The texts that are concealed: the values of its secret fields; None: every text of it."""

    def __repr__(self) -> str:
        """Without its values: a traceback may show it."""
        return f"Credential({self.name!r}, {self.type!r})"

    def require_host(self, host: str) -> None:
        """Refuses, for good, a host that the credential is not bound to."""
        if self.hosts and not any(_fits(pattern, host) for pattern in self.hosts):
            raise NodeFailure.permanent(
                f"the credential {self.name!r} is for {', '.join(self.hosts)}, and not for {host}: "
                "name another credential, or bind it to this host too"
            )


def _fits(pattern: str, host: str) -> bool:
    """Whether a host is the one of a pattern, or below it if that begins with `*.`."""
    host, pattern = host.lower().rstrip(".").strip("[]"), pattern.lower().strip("[]")
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


class Token(Struct, frozen=True):
    """An access token; good for `lifetime` seconds, or until a counterpart refuses it.

    `refresh` takes the place of the refresh token that it was got with, if the issuer gave another one.
    """

    value: str
    lifetime: float | None = None
    refresh: str | None = None

    def __repr__(self) -> str:
        return f"Token(lifetime={self.lifetime})"


class Credentials(Protocol):
    """The credentials of all workspaces."""

    async def get(self, workspace: str, name: str) -> Credential:
        """The credential of this name; NodeFailure if there is none, or it cannot be read here."""

    async def require(self, workspace: str, name: str, actors: Sequence[str]) -> None:
        """NodeFailure unless each of these actors, who have a part of the workspace alone, may use the credential."""

    async def token(
        self, workspace: str, credential: Credential, renew: Callable[[], Awaitable[Token]], refused: str = ""
    ) -> str:
        """The access token that all workers share: the kept one while it is good, else what `renew` gives, once.

        `refused` is a token that a counterpart does not take any more.
        """


def slots_of(named: str | Mapping[str, str] | None) -> Mapping[str, str]:
    """The names of credentials by slot, as the `credentials` of a node says them."""
    if named is None:
        return {}
    return {"": named} if isinstance(named, str) else named


def require_type(credential: Credential, types: Sequence[str]) -> None:
    """Refuses, for good, a credential of another type than these; none: any type."""
    if types and credential.type not in types:
        raise NodeFailure.permanent(misfit(credential.name, credential.type, types))


def misfit(name: str, found: str, types: Sequence[str]) -> str:
    """Why a credential does not fit into a slot."""
    return f"the credential {name!r} is of the type {found}, and the node takes {' or '.join(types)}"


def texts_of(values: Mapping[str, Any]) -> list[str]:
    """Every text of a credential that does not say which are secret."""
    return [value for value in values.values() if isinstance(value, str)]

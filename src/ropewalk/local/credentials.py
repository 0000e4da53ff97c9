"""Credentials of a store that this process executes on; see docs/credentials.md."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from ropewalk.core.canonical import JSON
from ropewalk.service import Service

if TYPE_CHECKING:
    from ropewalk.client.credentials import Credential, Trial, UsedCredential

BY: Final = "local"
_PAGE: Final = 200


class CredentialVerbs:
    """What can be done with credentials, by the names that workflows use. No answer has a secret in it."""

    service: Service

    async def credentials(self) -> "AsyncIterator[Credential]":
        """The credentials of the workspace, by name."""
        after = ""
        while found := await self.service.credentials.listed(after=after, limit=_PAGE):
            for each in found:
                yield cast("Credential", each)
            after = found[-1]["name"]

    async def credential(self, name: str) -> "UsedCredential":
        """A credential, and the workflows that use it."""
        return cast("UsedCredential", await self.service.credentials.get(name))

    async def create_credential(self, name: str, type: str, values: Mapping[str, JSON], *,  # noqa: A002
                                hosts: Sequence[str] = ()) -> "Credential":  # fmt: skip
        """Keep a credential under a name that is not taken; `hosts` are those it may be sent to, none: any."""
        return cast("Credential", await self.service.credentials.create(name, type, values, hosts, BY))

    async def change_credential(self, name: str, values: Mapping[str, JSON] | None = None, *,
                                hosts: Sequence[str] | None = None) -> "Credential":  # fmt: skip
        """Set these fields anew and leave the others; None takes a field away, `hosts` are replaced whole."""
        return cast("Credential", await self.service.credentials.change(name, values, hosts, BY))

    async def remove_credential(self, name: str) -> bool:
        """Forget a credential, its secrets and its shares; False if there was none."""
        return await self.service.credentials.remove(name, BY)

    async def test_credential(self, name: str) -> "Trial":
        """Try whether the counterpart takes the credential."""
        return cast("Trial", await self.service.credentials.test(name, BY))

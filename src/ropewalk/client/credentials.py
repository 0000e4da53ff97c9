"""Credentials of a workspace: kept, tried, shared. A secret is sent and never comes back."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict
from urllib.parse import quote

from ropewalk.client.answers import LetGo
from ropewalk.client.talking import Series, Talk, delete, get, patch, post, put, said
from ropewalk.client.verbs import Speaker, listing, verb
from ropewalk.core.canonical import JSON

PATH: Final = "/credentials"


class Credential(TypedDict):
    """A credential. Of each secret it says whether it is stored, or the reference that stands for it."""

    id: str
    name: str
    type: str
    values: dict[str, Any]
    secrets: dict[str, str]
    hosts: list[str]
    revision: int
    createdAt: str
    createdBy: str
    updatedAt: str
    updatedBy: str
    lastUsedAt: str | None


class UsedCredential(Credential):
    """A credential, and the workflows whose published versions name it."""

    usedBy: list[dict[str, Any]]


class CredentialType(TypedDict):
    """A type of credentials; in the schema of its fields a secret one is `writeOnly`."""

    name: str
    title: str
    summary: str
    fields: dict[str, Any]
    canTest: bool


class Trial(TypedDict):
    """What came of trying a credential; `ok` is None if its type cannot be tried."""

    ok: bool | None
    message: str


class Permit(TypedDict):
    """A subject that may use a credential."""

    subject: str
    createdAt: str
    createdBy: str


class CredentialVerbs(Speaker):
    """What can be done with credentials, by the names that workflows use."""

    @listing
    def credentials(self, limit: int | None = None) -> Series[Credential]:
        """The credentials of the workspace, by name."""
        return self._pages(PATH, limit)

    @verb
    def credential_types(self) -> Talk[list[CredentialType]]:
        """Every type of credentials, with the JSON Schema of its fields."""
        answer = yield from self._ask(get("/credential-types"))
        return list(answer["items"])

    @verb
    def credential(self, name: str) -> Talk[UsedCredential]:
        """A credential, and the workflows that use it."""
        return self._ask(get(_address(name)))

    @verb
    def create_credential(self, name: str, type: str, values: Mapping[str, JSON], *,  # noqa: A002
                          hosts: Sequence[str] = ()) -> Talk[Credential]:  # fmt: skip
        """Keep a credential under a name that is not taken; `hosts` are those it may be sent to, none: any."""
        body = {"name": name, "type": type, "values": dict(values), "hosts": list(hosts)}
        return self._ask(post(PATH, body, doubles=True))

    @verb
    def change_credential(self, name: str, values: Mapping[str, JSON] | None = None, *,
                          hosts: Sequence[str] | None = None) -> Talk[Credential]:  # fmt: skip
        """Set these fields anew and leave the others; None takes a field away, `hosts` are replaced whole."""
        wanted = said(values=None if values is None else dict(values), hosts=None if hosts is None else list(hosts))
        return self._ask(patch(_address(name), wanted))

    @verb
    def remove_credential(self, name: str) -> Talk[bool]:
        """Forget a credential, its secrets and its shares; False if there was none."""
        answer = yield from self._ask(delete(_address(name)))
        return bool(answer["changed"])

    @verb
    def test_credential(self, name: str) -> Talk[Trial]:
        """Try whether the counterpart takes the credential."""
        return self._ask(post(_address(name, "test"), {}, repeats=True))

    @listing
    def credential_shares(self, name: str, limit: int | None = None) -> Series[Permit]:
        """Who may use the credential beside the members that may use any, by subject."""
        return self._pages(_address(name, "acl"), limit)

    @verb
    def share_credential(self, name: str, subject: str) -> Talk[Permit]:
        """Let `user:<sub of the token>` or `key:<id>` use it in workflows that are shared with them."""
        return self._ask(put(_address(name, "acl"), {"subject": subject}))

    @verb
    def unshare_credential(self, name: str, subject: str) -> Talk[LetGo]:
        """Let a subject use it no more."""
        return self._ask(delete(_address(name, "acl"), {"subject": subject}))

    @verb
    def rotate_master_key(self) -> Talk[int]:
        """Wrap the keys of all workspaces with the master key of the server; how many another one wrapped."""
        answer = yield from self._ask(post(f"{PATH}/rotate", {}, repeats=True))
        return int(answer["rewrapped"])


def _address(name: str, *more: str) -> str:
    return "/".join([PATH, quote(name, safe=""), *more])

"""Credentials as callers keep them: set, changed, removed, with an audit row each. No answer has a secret in it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import uuid_utils
from pydantic import ValidationError

from ropewalk.core.canonical import JSON, shown
from ropewalk.core.errors import Conflict, InvalidInput, NotFound, Problem
from ropewalk.core.instant import moment, rfc3339
from ropewalk.engines.credentials import StoredCredentials
from ropewalk.engines.references import is_reference
from ropewalk.engines.sealing import Unopened
from ropewalk.engines.vault import Plain, plain_of
from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.credential_trials import TRIALS, tried
from ropewalk.nodes.credential_types import TYPES, CredentialType
from ropewalk.nodes.facilities import Facilities
from ropewalk.nodes.failure import NodeFailure, reason
from ropewalk.service.credential_uses import used_by
from ropewalk.store import audit, credentials
from ropewalk.store.access import Store, Transaction
from ropewalk.store.credentials import Credential
from ropewalk.store.rows import AuditEntry

Json = dict[str, Any]
STORED: Final = "stored"
"""What stands for a secret in answers; a reference stands for itself."""
MOST_HOSTS: Final = 100
NAME: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
NAME_IN_WORDS: Final = "a letter or digit, then letters, digits, _ . -, 128 at most"
SUBJECT: Final = r"user:[^\x00-\x1f\x7f]{1,250}|key:[0-9a-f]{32}"
HOST: Final = r"(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,250}[A-Za-z0-9_])?|\[?[0-9A-Fa-f:.]{2,45}\]?"


class CredentialVerbs:
    """What callers may do with the credentials of a workspace."""

    def __init__(
        self, store: Store, stored: StoredCredentials, workspace: str, facilities: Facilities | None = None
    ) -> None:
        self.store = store
        self.stored = stored
        self.workspace = workspace
        self._facilities = facilities

    async def create(self, name: str, kind: str, values: Mapping[str, JSON], hosts: Sequence[str], by: str
                     ) -> Json:  # fmt: skip
        """Keep a new credential; InvalidInput names every field that does not fit, Conflict a name that is taken."""
        problems = _name_problems(name) + _host_problems(hosts)
        known = type_named(kind)
        plain, secrets = self._split(known, values, problems)
        await self.stored.vault.keys()
        new = _row(self.workspace, name, kind, plain, hosts, by, self.store.now())
        async with self.store.transaction() as tx:
            await credentials.insert(tx, new, await self.stored.vault.sealed(tx, new, secrets))
            await self._note(tx, new, by, "create-credential", None)
        return shown_credential(new, tuple(secrets))

    async def change(self, name: str, values: Mapping[str, JSON | None] | None,
                     hosts: Sequence[str] | None, by: str) -> Json:  # fmt: skip
        """Set these fields anew and leave the others; null takes a field away, and `hosts` are replaced whole."""
        before = await self._found(name)
        kept = plain_of(before.plain)
        opened = await self._opened(before)
        merged = _merged({**kept.values, **kept.references, **opened}, values or {})
        now_hosts = tuple(msgspec.json.decode(before.hosts)) if hosts is None else hosts
        plain, secrets = self._split(type_named(before.type), merged, _host_problems(now_hosts))
        await self.stored.vault.keys()
        after = msgspec.structs.replace(
            before, plain=_json(plain), hosts=_hosts(now_hosts), revision=before.revision + 1,
            updated_at=self.store.now(), updated_by=by,
        )  # fmt: skip
        async with self.store.transaction() as tx:
            await credentials.update(tx, after, await self.stored.vault.sealed(tx, after, secrets))
            await self._note(tx, after, by, "change-credential", before)
        return shown_credential(after, tuple(secrets))

    async def _opened(self, found: Credential) -> dict[str, str]:
        try:
            return await self.stored.vault.opened(self.store, found)
        except Unopened as error:
            raise Conflict(
                f"the credential {found.name!r} cannot be read: {error}; remove it and set it anew"
            ) from error

    async def remove(self, name: str, by: str) -> bool:
        """Forget a credential with its secrets and shares; whether it was this call that did."""
        async with self.store.transaction() as tx:
            found = await credentials.get(tx, self.workspace, name)
            if found is None or not await credentials.remove(tx, self.workspace, found.id):
                return False
            await self._note(tx, found, by, "remove-credential", found, is_gone=True)
        return True

    async def get(self, name: str) -> Json:
        """A credential without its secrets."""
        found = await self._found(name)
        shown = shown_credential(found, tuple(await credentials.fields(self.store, found.id)))
        return shown | {"usedBy": await used_by(self.store, self.workspace, name)}

    async def listed(self, *, after: str = "", limit: int = 50) -> list[Json]:
        """The credentials of a workspace by name, without their secrets; the last name is the cursor to go on."""
        found = await credentials.listed(self.store, self.workspace, after=after, limit=limit)
        return [shown_credential(each, tuple(await credentials.fields(self.store, each.id))) for each in found]

    async def test(self, name: str, by: str) -> Json:
        """Try whether the counterpart takes a credential; `ok` is null if its type cannot be tried."""
        row = await self._found(name)
        if row.type not in TRIALS or self._facilities is None:
            return {"ok": None, "message": f"credentials of the type {row.type} cannot be tried"}
        async with self.store.transaction() as tx:
            await self._note(tx, row, by, "test-credential", row)
        key = str(uuid_utils.uuid7())
        context = NodeContext(
            execution="", workspace=self.workspace, node="test", make_key=lambda: key, now=self.store.now(),
            facilities=self._facilities, get_credentials=lambda: name,
        )  # fmt: skip
        try:
            found = await context.credential()
            assert found is not None, "the context names it"
            return {"ok": True, "message": context.masked(await tried(found, context))}
        except NodeFailure as failure:
            return {"ok": False, "message": context.masked(failure.error.message)}

    async def rotate(self, by: str) -> Json:
        """Wrap the keys of all workspaces with the master key of this process."""
        count = await self.stored.vault.rotate()
        about = (audit.NO_WORKSPACE, by, "rotate-master-key", (await self.stored.vault.keys()).own, None, None)
        async with self.store.transaction() as tx:
            await audit.append(tx, AuditEntry(str(uuid_utils.uuid7()), self.store.now(), *about, str(count)))
        return {"rewrapped": count}

    async def permits(self, name: str, *, after: str = "", limit: int = 50) -> list[Json]:
        """Who may use a credential beside the members that may use any, by subject after a cursor."""
        found = await self._found(name)
        listed = await credentials.permits(self.store, self.workspace, found.id, after=after, limit=limit)
        return [_shown_permit(each) for each in listed]

    async def share(self, name: str, subject: str, by: str) -> Json:
        """Let a subject use a credential in workflows that are shared with it."""
        if not re.fullmatch(SUBJECT, subject):
            raise InvalidInput([Problem(("subject",), "must be user:<sub of the token> or key:<id>")])
        found = await self._found(name)
        permit = credentials.Permit(self.workspace, found.id, subject, self.store.now(), by)
        async with self.store.transaction() as tx:
            if await credentials.permit(tx, permit):
                await self._note_share(tx, found, by, "share-credential", None, subject)
                return _shown_permit(permit)
            kept = await credentials.permit_of(tx, self.workspace, found.id, subject)
        return _shown_permit(kept or permit)

    async def unshare(self, name: str, subject: str, by: str) -> bool:
        """Let a subject use a credential no more; whether it could."""
        found = await self._found(name)
        async with self.store.transaction() as tx:
            changed = await credentials.withdraw(tx, self.workspace, found.id, subject)
            if changed:
                await self._note_share(tx, found, by, "unshare-credential", subject, None)
        return changed

    async def _note_share(self, tx: Transaction, row: Credential, by: str, verb: str, before: str | None,
                          after: str | None) -> None:  # fmt: skip
        about = (self.workspace, by, verb, row.id, before, after, row.name)
        await audit.append(tx, AuditEntry(str(uuid_utils.uuid7()), self.store.now(), *about))

    async def _found(self, name: str) -> Credential:
        found = await credentials.get(self.store, self.workspace, name)
        if found is None:
            raise NotFound(f"there is no credential {name!r}")
        return found

    def _split(self, kind: CredentialType, values: Mapping[str, JSON], problems: list[Problem]
               ) -> tuple[Plain, dict[str, str]]:  # fmt: skip
        """What stands in plain, and the secrets; InvalidInput names all problems, those found before too."""
        checked, wrong = _checked(kind, values)
        secret = {name: checked.pop(name) for name in kind.secrets() if name in checked}
        references = {name: text for name, text in secret.items() if is_reference(text)}
        refusals = ((name, self.stored.references.refusal(text)) for name, text in references.items())
        problems += wrong + [Problem(("values", name), why) for name, why in refusals if why is not None]
        if problems:
            raise InvalidInput(problems)
        return Plain(checked, references), {name: text for name, text in secret.items() if name not in references}

    async def _note(self, tx: Transaction, row: Credential, by: str, verb: str, before: Credential | None, *,
                    is_gone: bool = False) -> None:  # fmt: skip
        was = None if before is None else str(before.revision)
        now = None if is_gone else str(row.revision)
        about = (row.workspace, by, verb, row.id, was, now, row.name)
        await audit.append(tx, AuditEntry(str(uuid_utils.uuid7()), self.store.now(), *about))


def type_named(name: str) -> CredentialType:
    """The type of this name; InvalidInput if there is none."""
    found = TYPES.get(name)
    if found is None:
        raise InvalidInput([Problem(("type",), f"there is no type {shown(name)}; there are {', '.join(TYPES)}")])
    return found


def _merged(before: Mapping[str, JSON], values: Mapping[str, JSON | None]) -> dict[str, JSON]:
    return {name: value for name, value in {**before, **values}.items() if value is not None}


def _checked(kind: CredentialType, values: Mapping[str, JSON]) -> tuple[dict[str, Any], list[Problem]]:
    """The fields with their defaults, by the names that documents have; and what does not fit, without the values."""
    try:
        made = kind.Fields.model_validate(values)
    except ValidationError as refusal:
        found = refusal.errors(include_url=False, include_input=False)
        return {}, [Problem(("values", *each["loc"]), reason(each)) for each in found]
    return made.model_dump(mode="json", by_alias=True, exclude_none=True), []


def _name_problems(name: str) -> list[Problem]:
    return [] if re.fullmatch(NAME, name) else [Problem(("name",), f"must be {NAME_IN_WORDS}")]


def _host_problems(hosts: Sequence[str]) -> list[Problem]:
    problems = [] if len(hosts) <= MOST_HOSTS else [Problem(("hosts",), f"are at most {MOST_HOSTS}")]
    return problems + [
        Problem(("hosts", place), "must be a host like api.example.org, or *.example.org")
        for place, host in enumerate(hosts[:MOST_HOSTS])
        if not re.fullmatch(HOST, host)
    ]


def _row(workspace: str, name: str, kind: str, plain: Plain, hosts: Sequence[str], by: str, now: int) -> Credential:
    new_id = str(uuid_utils.uuid7())
    return Credential(new_id, workspace, name, kind, _json(plain), _hosts(hosts), 1, now, by, now, by)


def _json(plain: Plain) -> str:
    return msgspec.json.encode(plain, order="sorted").decode()


def _hosts(hosts: Sequence[str]) -> str:
    return msgspec.json.encode(list(hosts)).decode()


def shown_credential(row: Credential, stored: Sequence[str]) -> Json:
    """A credential as answers show it: a secret is said to be stored, a reference is told."""
    plain = plain_of(row.plain)
    return {
        "id": row.id,
        "name": row.name,
        "type": row.type,
        "values": plain.values,
        "secrets": dict.fromkeys(stored, STORED) | plain.references,
        "hosts": msgspec.json.decode(row.hosts),
        "revision": row.revision,
        "createdAt": rfc3339(row.created_at),
        "createdBy": row.created_by,
        "updatedAt": rfc3339(row.updated_at),
        "updatedBy": row.updated_by,
        "lastUsedAt": moment(row.last_used_at),
    }


def _shown_permit(permit: credentials.Permit) -> Json:
    return {
        "subject": permit.subject,
        "createdAt": rfc3339(permit.created_at),
        "createdBy": permit.created_by,
    }
